package judge

import (
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// quality is the judge's opinion for the pick: a score, and whether the proxy
// is kept back for failing now. What a target did to everybody is left out; a
// doubtful failure counts here, though it never cools anything.
func quality(c *pool.Case, d pool.Counts) pool.Quality {
	q := c.Proxy.Quality
	ten, hour, today := c.Proxy.Windows.Standings(c.Now, c.Day)
	ten, hour, today = ten.Plus(d), hour.Plus(d), today.Plus(d)
	long := shrunk(hour, shrunk(today, even))
	q.Score, q.Idle = float32(score(ten, long)), float32(score(pool.Standing{}, long))
	q.ScoreUntil = 0
	if q.Score < q.Idle-0.05 {
		q.ScoreUntil = c.Now.Add(10 * time.Minute)
	}
	q.LastClass, q.LastReport = c.Outcome.Class, c.Now
	q.GatedUntil = 0
	if gated(ten, c.Policy.Gate.Below) {
		q.GatedUntil = c.Now.Add(c.Policy.Gate.Retry)
	}
	return q
}

// gated says whether the last ten minutes are bad beyond doubt.
func gated(ten pool.Standing, below float64) bool {
	n := float64(ten.N())
	if float64(ten.OK) >= below*n { // the upper bound lies above the share itself
		return false
	}
	return WilsonHigh(float64(ten.OK), n, wilson95) < below
}

// wilson95 is the z of a 95 % interval.
const wilson95 = 1.96
