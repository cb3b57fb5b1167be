package keeper

import (
	"context"
	"time"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// CapacityRequest asks what a pool can do for a target. What is set replaces what
// is known: a what-if.
type CapacityRequest struct {
	Pool, Target string
	Proxies      *int // static ones, with the pool's cap for such
	Reuse, Hold  *time.Duration
}

// Capacity is the answer, with what it was reckoned from.
type Capacity struct {
	judge.Capacity
	judge.Bounds
	Target string
	// HoldKnown is false when no lease came back yet and Hold is a guess.
	HoldKnown bool
	// NextProxy is how long until a proxy can be granted; below 0 = nobody knows.
	NextProxy time.Duration

	supply judge.Supply
}

// Capacity tells what a pool can do for a target.
func (k *Keeper) Capacity(ctx context.Context, r CapacityRequest) (Capacity, error) {
	setDefault(&r.Pool, DefaultPool)
	target, err := TargetName(r.Target)
	if err != nil {
		return Capacity{}, err
	}
	policy, ok := k.policy(r.Pool)
	if !ok {
		return Capacity{}, store.ErrNoPool
	}
	view, err := k.store.Capacity(ctx, store.CapacityParams{Pool: r.Pool, Target: target})
	if err != nil {
		return Capacity{}, err
	}
	exits, err := k.exits(ctx, r.Pool, &view)
	if err != nil {
		return Capacity{}, err
	}
	c := Capacity{Target: target, Bounds: bounds(&view.SupplyView)}
	c.Hold, c.HoldKnown = k.holds.of(r.Pool, target)
	c.Declared = k.share(ctx, r.Pool).total
	supply := supplyFor(exits, &view)
	if r.Proxies != nil {
		supply = judge.Supply{pool.ExitStatic: {Proxies: *r.Proxies, Slots: *r.Proxies * policy.Cap(pool.ExitStatic)}}
	}
	if r.Reuse != nil {
		c.Reuse = *r.Reuse
	}
	if r.Hold != nil {
		c.Hold, c.HoldKnown = max(*r.Hold, time.Millisecond), true
	}
	if r.Proxies != nil || r.Reuse != nil || r.Hold != nil {
		c.Declared = 0 // a what-if asks for as many workers as it takes
	}
	c.supply = supply
	c.Capacity = judge.CapacityOf(supply, c.Bounds)
	c.NextProxy = nextProxy(&view, c.Hold)
	return c, nil
}

// bounds is what limits the target's throughput, as the store knows it. Hold and
// Declared are the caller's.
func bounds(v *pool.SupplyView) judge.Bounds {
	return judge.Bounds{Reuse: v.Reuse, Limit: v.Limit, Gap: v.Step}
}

// nextProxy is how long until a proxy can be granted.
func nextProxy(view *store.CapacityResult, hold time.Duration) time.Duration {
	if view.Free {
		return 0
	}
	next := time.Duration(-1)
	if view.NextDue > 0 {
		next = max(0, view.NextDue.Sub(view.Now))
	}
	if view.Live > 0 {
		if back := hold / time.Duration(view.Live); next < 0 || back < next {
			next = back
		}
	}
	return next
}

// supplyFor spreads the usable proxies over the kinds of exits as they were
// counted. Faults rest pairs of static proxies only.
func supplyFor(exits *exitCache, view *store.CapacityResult) (s judge.Supply) {
	counted := 0
	for _, e := range exits.counts {
		counted += e.Proxies
	}
	if counted == 0 {
		return s
	}
	for exit, e := range exits.counts {
		n := (e.Proxies*view.Usable + counted/2) / counted
		if pool.Exit(exit) == pool.ExitStatic {
			n = max(0, n-view.Faulty)
		}
		if e.Proxies > 0 {
			s[exit] = judge.Exits{Proxies: n, Slots: n * e.Slots / e.Proxies}
		}
	}
	return s
}

// exitCache is how a pool's usable proxies are spread over the kinds of exits.
// Counting looks at every proxy, so it is done seldom and in parts; how many
// proxies are usable is always fresh.
type exitCache struct {
	at      pool.Time
	proxies int
	counts  [pool.NumExits]pool.ExitCount
}

const (
	exitAge  = 5 * time.Second  // of a pool that one part covers
	exitAges = 30 * time.Second // of a larger one
	exitPart = 20_000
)

func (c *exitCache) fresh(view *store.CapacityResult) bool {
	age := view.Now.Sub(c.at)
	switch {
	case view.Proxies <= exitPart:
		return age < exitAge && c.proxies == view.Proxies
	case c.proxies != view.Proxies:
		return age < shareAge
	default:
		return age < exitAges
	}
}

func (k *Keeper) exits(ctx context.Context, poolName string, view *store.CapacityResult) (*exitCache, error) {
	k.mu.Lock()
	p := k.known[poolName]
	if p == nil {
		k.mu.Unlock()
		return nil, store.ErrNoPool
	}
	if c := p.exits; c != nil && c.fresh(view) {
		k.mu.Unlock()
		return c, nil
	}
	k.mu.Unlock()
	c := &exitCache{at: view.Now, proxies: view.Proxies}
	for from := uint32(0); ; {
		part, err := k.store.Capacity(ctx, store.CapacityParams{Pool: poolName, From: from, Limit: exitPart})
		if err != nil {
			return nil, err
		}
		for i, e := range part.Exits {
			c.counts[i].Proxies += e.Proxies
			c.counts[i].Slots += e.Slots
		}
		if from = part.Next; from == 0 {
			break
		}
	}
	k.mu.Lock()
	p.exits = c
	k.mu.Unlock()
	return c, nil
}

// expected is the throughput in leases a second that a pool should give waiters
// of a target among so many proxies; 0 = not known. most leaves out what the
// target bears: a pace that is low now may rise while somebody waits.
func (k *Keeper) expected(poolName, target string, proxies int) (likely, most float64) {
	hold, known := k.holds.of(poolName, target)
	if !known || proxies == 0 {
		return 0, 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.known[poolName]
	if p == nil {
		return 0, 0
	}
	free := judge.Bounds{Reuse: p.policy.Reuse(target), Hold: hold}
	b := free
	if c, ok := p.carried[target]; ok {
		b.Limit, b.Gap = c.bounds.Limit, c.bounds.Gap
	}
	supply := judge.Supply{pool.ExitStatic: {Proxies: proxies, Slots: proxies * p.exits.slotsPerProxy()}}
	return judge.CapacityOf(supply, b).RPS, judge.CapacityOf(supply, free).RPS
}

// slotsPerProxy is the mean cap in force, as far as it was counted; at least 1.
func (c *exitCache) slotsPerProxy() int {
	proxies, slots := 0, 0
	if c != nil {
		for _, e := range c.counts {
			proxies += e.Proxies
			slots += e.Slots
		}
	}
	if proxies == 0 {
		return 1
	}
	return max(1, slots/proxies)
}
