package keeper

import (
	"cmp"
	"slices"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// WaitingLine is who of one tenant waits for the same proxies on a target.
type WaitingLine struct {
	Tenant, Target, Session string
	Selector                pool.Selector
	Count                   int
	Oldest                  time.Duration // that its first has waited
	// Estimate is how long who comes now will wait; 0 = not known.
	Estimate time.Duration
	// Refusal is why its first was not served when it was tried last; nil = it was not yet.
	Refusal *pool.Refusal
}

// Waiters lists who waits in a pool, longest first.
func (k *Keeper) Waiters(poolName string) ([]WaitingLine, error) {
	if _, ok := k.policy(poolName); !ok {
		return nil, store.ErrNoPool
	}
	k.mu.Lock()
	r := k.rooms[poolName]
	k.mu.Unlock()
	if r == nil {
		return nil, nil
	}
	return r.list(), nil
}

func (r *room) list() []WaitingLine {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.k.store.Now()
	found := map[lineKey]*WaitingLine{}
	for _, l := range r.q.lines {
		w := l.head()
		key := lineKey{w.tenant(), w.market} // exclusions make lines of their own, and nobody wants to see each
		v := found[key]
		if v == nil {
			s := standing{refusal: l.refusal}
			r.estimate(w, &s)
			v = &WaitingLine{
				Tenant: w.tenant(), Target: w.params.Target, Session: w.params.Session, Selector: w.params.Select,
				Estimate: s.estimate, Refusal: l.refusal,
			}
			v.Selector.Exclude = nil
			found[key] = v
		}
		v.Count += l.waiters.Len()
		v.Oldest = max(v.Oldest, now.Sub(w.since))
	}
	list := make([]WaitingLine, 0, len(found))
	for _, v := range found {
		list = append(list, *v)
	}
	slices.SortFunc(list, func(a, b WaitingLine) int {
		return cmp.Or(cmp.Compare(b.Oldest, a.Oldest), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Target, b.Target),
			cmp.Compare(a.Selector.Class(), b.Selector.Class()), cmp.Compare(a.Session, b.Session))
	})
	return list
}
