package keeper

import (
	"context"
	"time"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
)

// share is how a pool's workers divide it: by the concurrency that they declared;
// those that declared none count as 1. It is kept for a second: advice need not
// be fresher.
type share struct {
	at          pool.Time
	concurrency map[workerName]int
	total       int
}

type workerName struct{ tenant, worker string }

// carried is what a pool can do for a target, kept as long as a share.
type carried struct {
	at pool.Time
	judge.Capacity
	bounds judge.Bounds
}

const (
	shareAge = time.Second
	// maxCarried bounds the targets whose capacity is kept.
	maxCarried = 10_000
	// activeWithin is how lately a worker must have been seen to get a share.
	activeWithin = time.Minute
)

// advise tells a worker its fair share of what the pool can do for a target: so
// many requests at once and, where the reuse interval or the target bounds the
// rate, so long between two starts (docs/capacity.md). declared is what the worker
// says just now; 0 = nothing.
func (k *Keeper) advise(ctx context.Context, poolName, target string, who workerName, declared int) Advice {
	s := k.share(ctx, poolName)
	c := k.carries(ctx, poolName, target)
	known := s.concurrency[who]
	mine := max(1, known)
	if declared > 0 {
		mine = declared
	}
	return adviceFrom(target, &c, float64(mine)/float64(s.total-known+mine))
}

// adviceFrom is a share of a capacity.
func adviceFrom(target string, c *judge.Capacity, fair float64) Advice {
	a := Advice{Target: target, Concurrency: max(1, int(float64(c.Workers)*fair))}
	if rate := c.RPS * fair; rate > 0 && (c.LimitedBy == judge.ByReuse || c.LimitedBy == judge.ByTarget) {
		a.StartGap = seconds(1 / rate).Truncate(time.Millisecond)
	}
	return a
}

// share gives how the pool is shared. While one caller makes it anew the others
// go by the old one.
func (k *Keeper) share(ctx context.Context, poolName string) *share {
	now := k.store.Now()
	k.mu.Lock()
	p := k.known[poolName]
	if p == nil {
		k.mu.Unlock()
		return &share{}
	}
	s := p.share
	if s != nil && now.Sub(s.at) < shareAge {
		k.mu.Unlock()
		return s
	}
	if s != nil {
		old := *s
		old.at = now
		p.share = &old
	}
	k.mu.Unlock()
	s = k.newShare(ctx, poolName, now)
	k.mu.Lock()
	p.share = s
	k.mu.Unlock()
	return s
}

func (k *Keeper) newShare(ctx context.Context, poolName string, now pool.Time) *share {
	s := &share{at: now, concurrency: map[workerName]int{}}
	workers, err := k.store.Workers(ctx, poolName)
	if err != nil {
		return s
	}
	for _, w := range workers.Workers {
		if now.Sub(w.LastSeen) > activeWithin {
			break // sorted by last seen
		}
		n := max(1, w.Concurrency)
		s.concurrency[workerName{w.Tenant, w.Name}] = n
		s.total += n
	}
	return s
}

// carries gives the capacity of a pool for a target, whatever its workers declared.
func (k *Keeper) carries(ctx context.Context, poolName, target string) judge.Capacity {
	now := k.store.Now()
	k.mu.Lock()
	p := k.known[poolName]
	if p == nil {
		k.mu.Unlock()
		return judge.Capacity{}
	}
	old, ok := p.carried[target]
	if ok && now.Sub(old.at) < shareAge {
		k.mu.Unlock()
		return old.Capacity
	}
	if p.carried == nil || len(p.carried) > maxCarried {
		p.carried = map[string]carried{}
	}
	if ok {
		p.carried[target] = carried{now, old.Capacity, old.bounds} // for the others, meanwhile
	}
	k.mu.Unlock()
	c, err := k.Capacity(ctx, CapacityRequest{Pool: poolName, Target: target})
	if err != nil {
		return old.Capacity
	}
	c.Declared = 0
	fresh := judge.CapacityOf(c.supply, c.Bounds)
	k.mu.Lock()
	p.carried[target] = carried{now, fresh, c.Bounds}
	k.mu.Unlock()
	return fresh
}
