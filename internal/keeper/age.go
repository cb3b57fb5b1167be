package keeper

import (
	"math"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// ageControl notices a line that stands: when even the shortest wait of a whole
// interval was too long, waiting has stopped to be a buffer for bursts and only
// makes everybody late. It then sheds one waiter, and with each interval that does
// not help the next comes sooner (the control law of CoDel).
type ageControl struct {
	from  pool.Time     // begin of the interval
	least time.Duration // shortest wait in it; below 0 = nobody was served
	shed  int           // in a row
	next  pool.Time     // when the next is shed; 0 = the line does not stand
}

const (
	ageInterval = 10 * time.Second
	ageTarget   = time.Second
)

// served notes how long somebody waited for a lease.
func (a *ageControl) served(wait time.Duration, now pool.Time) {
	if a.from == 0 {
		*a = ageControl{from: now, least: -1}
	}
	if a.least < 0 || wait < a.least {
		a.least = wait
	}
	if wait <= ageTarget {
		a.next, a.shed = 0, 0 // it moves
	}
}

// idle forgets all: nobody waits.
func (a *ageControl) idle() { *a = ageControl{} }

// due says whether somebody must be shed now.
func (a *ageControl) due(now pool.Time) bool {
	if a.from == 0 {
		return false
	}
	if now.Sub(a.from) >= ageInterval {
		if stands := a.least > ageTarget; !stands {
			a.next, a.shed = 0, 0
		} else if a.next == 0 {
			a.next = now
		}
		a.from, a.least = now, -1
	}
	if a.next == 0 || now < a.next {
		return false
	}
	a.shed++
	a.next = now.Add(time.Duration(float64(ageInterval) / math.Sqrt(float64(a.shed))))
	return true
}
