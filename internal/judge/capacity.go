package judge

import (
	"math"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// Exits are the proxies of one kind of exit that may serve a target.
type Exits struct {
	Proxies int
	Slots   int // live leases that they may have at once: the sum of their caps
}

// Supply is what a pool has for a target, by [pool.Exit].
type Supply [pool.NumExits]Exits

// Bounds are what limits a target's throughput beside the supply.
type Bounds struct {
	Reuse time.Duration // least time between two starts of a pair
	Hold  time.Duration // mean time that a lease is held, above 0
	Limit int           // most requests at once on the target; 0 = no bound
	Gap   time.Duration // least time between two starts on the target; 0 = none
	// Declared is how many requests at once the workers say they can have; 0 = not known.
	Declared int
}

// Limiter is what bounds a capacity first.
type Limiter string

// The limiters.
const (
	ByProxies Limiter = "proxies" // more proxies, or shorter requests
	ByReuse   Limiter = "reuse"   // the reuse interval
	ByTarget  Limiter = "target"  // what the target bears
	ByWorkers Limiter = "workers" // there are too few of them
)

// Capacity is what a pool can do for a target.
type Capacity struct {
	Proxies     int
	Slots       int
	PerProxy    float64 // slots a proxy
	RPS         float64 // starts a second, at the most
	Concurrency int     // requests at once at that throughput
	Workers     int     // requests at once that are worth offering; more would only wait
	LimitedBy   Limiter
}

// spare is the share of workers beyond Little's law that keeps the proxies busy
// though no two requests take the same time.
const spare = 1.1

// CapacityOf estimates what a supply can do within bounds (docs/capacity.md):
// a static proxy starts once in max(reuse interval, hold / cap), other exits as
// often as their caps allow; then the target's and the workers' bounds cut.
func CapacityOf(s Supply, b Bounds) Capacity {
	hold := max(b.Hold, time.Millisecond).Seconds()
	c := Capacity{LimitedBy: ByProxies}
	reused := 0.0
	for exit, e := range s {
		c.Proxies += e.Proxies
		c.Slots += e.Slots
		rate := float64(e.Slots) / hold
		if resting := float64(e.Proxies) / b.Reuse.Seconds(); pool.Exit(exit) == pool.ExitStatic && b.Reuse > 0 && resting < rate {
			rate = resting
			reused = rate
		}
		c.RPS += rate
	}
	if c.Proxies == 0 {
		return c
	}
	c.PerProxy = float64(c.Slots) / float64(c.Proxies)
	if reused > c.RPS/2 {
		c.LimitedBy = ByReuse
	}
	c.cut(float64(b.Limit)/hold, b.Limit > 0, ByTarget)
	c.cut(1/b.Gap.Seconds(), b.Gap > 0, ByTarget)
	c.Workers = min(ceil(spare*c.RPS*hold), c.Slots)
	c.cut(float64(b.Declared)/hold, b.Declared > 0, ByWorkers)
	c.Concurrency = min(ceil(c.RPS*hold), c.Slots)
	return c
}

func (c *Capacity) cut(rate float64, holds bool, by Limiter) {
	if holds && rate < c.RPS {
		c.RPS, c.LimitedBy = rate, by
	}
}

// ceil rounds up what is above a whole number by more than a rounding error.
func ceil(x float64) int { return int(math.Ceil(x - 1e-9)) }
