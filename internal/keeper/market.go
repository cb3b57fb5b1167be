package keeper

import (
	"math"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// market is all who wait for the same proxies on the same target, whatever their
// tenant: they share one throughput, from which waits are estimated.
type market struct {
	waiting map[string]int // by tenant
	size    int
	meter   meter
}

func (q *queue) market(w *waiter) *market {
	m := q.markets[w.market]
	if m == nil {
		q.forgetMarkets()
		m = &market{waiting: map[string]int{}}
		q.markets[w.market] = m
	}
	return m
}

// maxMarkets bounds what is remembered of markets in which nobody waits.
const maxMarkets = 1000

func (q *queue) forgetMarkets() {
	if len(q.markets) < maxMarkets+len(q.lines) {
		return
	}
	for key, m := range q.markets {
		if m.size == 0 {
			delete(q.markets, key)
		}
	}
}

func (m *market) enter(tenant string, now pool.Time) {
	m.meter.run(now, m.size > 0)
	m.size++
	count(m.waiting, tenant, 1)
}

func (m *market) leave(tenant string, now pool.Time) {
	m.meter.run(now, m.size > 0)
	m.size--
	count(m.waiting, tenant, -1)
}

func (m *market) grant(n int, now pool.Time) {
	m.meter.run(now, m.size > 0)
	m.meter.grants += float64(n)
}

// ahead is how many are served before a newcomer of a tenant: those of its own
// before it, and of each other tenant as many, as far as there are.
func (m *market) ahead(tenant string) int {
	mine := m.waiting[tenant]
	n := mine
	for name, waiting := range m.waiting {
		if name != tenant {
			n += min(waiting, mine+1)
		}
	}
	return n
}

// estimate is how long a newcomer of a tenant will wait, at a throughput in leases
// a second; 0 = not known.
func (m *market) estimate(tenant string, rate float64) time.Duration {
	if rate <= 0 {
		return 0
	}
	return seconds(float64(m.ahead(tenant)+1) / rate)
}

// seconds is a duration of that many; longer than a day is cut.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 86_400) * float64(time.Second))
}

// meter measures the leases a second that waiters get, over the time in which
// somebody waited: a pool that nobody waits for shows its demand, not what it
// carries. The past fades, with meterFade.
type meter struct {
	grants, busy float64 // leases, seconds
	at           pool.Time
}

const (
	meterFade = 5 * time.Second
	// priorWeight is how many grants the expected throughput counts for.
	priorWeight = 4
	// provenGrants is how many grants prove a throughput.
	provenGrants = 20
)

// run brings the meter to now; waited says whether somebody waited since.
func (m *meter) run(now pool.Time, waited bool) {
	passed := now.Sub(m.at)
	if m.at == 0 || passed <= 0 {
		m.at = max(m.at, now)
		return
	}
	fade := meterFade.Seconds()
	keep := math.Exp(-passed.Seconds() / fade)
	m.grants *= keep
	m.busy *= keep
	if waited {
		m.busy += fade * (1 - keep)
	}
	m.at = now
}

// rate is the throughput in leases a second, as far as it was measured and beyond
// that as expected; 0 = nothing is known.
func (m *meter) rate(expected float64) float64 {
	if expected > 0 {
		return (m.grants + priorWeight) / (m.busy + priorWeight/expected)
	}
	if m.grants < 2 || m.busy <= 0 {
		return 0
	}
	return m.grants / m.busy
}

// atBest is the highest throughput that must be reckoned with: nobody is refused
// who might be served in time.
func (m *meter) atBest(expected float64) float64 {
	const margin = 1.25
	rate := m.rate(expected)
	if m.grants < provenGrants {
		rate = max(rate, expected)
	}
	return margin * rate
}
