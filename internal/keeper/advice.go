package keeper

import (
	"context"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// share is what advice is made of: the pool's proxies in service, and what its
// workers declared. It is kept for a second: advice need not be fresher.
type share struct {
	at          pool.Time
	proxies     int
	concurrency map[string]int // by tenant and worker
	total       int
}

const shareAge = time.Second

// advise tells a worker its fair share of the pool on a target: so many requests
// at once, so long between two starts. The pool carries one start per proxy and
// reuse interval (docs/policy.md, capacity); workers share it by the concurrency
// that they declared, those that declared none count as 1.
func (k *Keeper) advise(ctx context.Context, poolName, target, tenant, worker string) Advice {
	s, policy := k.share(ctx, poolName)
	mine := max(1, s.concurrency[tenant+"\x00"+worker])
	total := max(mine, s.total)
	fair := float64(s.proxies) * float64(mine) / float64(total)
	advice := Advice{Target: target, Concurrency: max(1, int(fair))}
	if reuse := policy.Reuse(target); reuse > 0 && fair > 0 {
		advice.StartGap = time.Duration(float64(reuse) / fair).Truncate(time.Millisecond)
	}
	return advice
}

func (k *Keeper) share(ctx context.Context, poolName string) (share, pool.Policy) {
	now := k.store.Now()
	k.mu.Lock()
	p := k.known[poolName]
	if p == nil {
		k.mu.Unlock()
		return share{}, pool.DefaultPolicy()
	}
	s, policy := p.share, p.policy
	k.mu.Unlock()
	if s.at != 0 && now.Sub(s.at) < shareAge {
		return s, policy
	}
	s = k.newShare(ctx, poolName, now)
	k.mu.Lock()
	p.share = s
	k.mu.Unlock()
	return s, policy
}

// activeWithin is how lately a worker must have been seen to get a share.
const activeWithin = time.Minute

func (k *Keeper) newShare(ctx context.Context, poolName string, now pool.Time) share {
	s := share{at: now, concurrency: map[string]int{}}
	info, err := k.store.Pool(ctx, poolName)
	if err != nil {
		return s
	}
	c := info.Counts
	s.proxies = c.Status[pool.StatusNew] + c.Status[pool.StatusActive] + c.Status[pool.StatusProbation]
	workers, err := k.store.Workers(ctx, poolName)
	if err != nil {
		return s
	}
	for _, w := range workers.Workers {
		if now.Sub(w.LastSeen) > activeWithin {
			break // sorted by last seen
		}
		n := max(1, w.Concurrency)
		s.concurrency[w.Tenant+"\x00"+w.Name] = n
		s.total += n
	}
	return s
}
