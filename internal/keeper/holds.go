package keeper

import (
	"sync"
	"time"
)

// holds remembers how long leases are held on the average, by pool and target,
// newer ones counting more. It is the d of docs/capacity.md.
type holds struct {
	mu   sync.Mutex
	mean map[holdKey]*hold
}

// holdKey names a target of a pool; "" = all targets.
type holdKey struct{ pool, target string }

type hold struct {
	mean time.Duration
	n    int // leases, to holdWeight
}

const (
	// holdWeight is over how many leases the mean goes, about.
	holdWeight = 64
	// maxHolds bounds the targets remembered.
	maxHolds = 20_000
	// usualHold is what is reckoned with until a lease has come back.
	usualHold = time.Second
)

// add notes that a lease was held.
func (h *holds) add(poolName, target string, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mean == nil || len(h.mean) > maxHolds {
		h.mean = map[holdKey]*hold{}
	}
	for _, key := range []holdKey{{poolName, target}, {poolName, ""}} {
		x := h.mean[key]
		if x == nil {
			x = &hold{}
			h.mean[key] = x
		}
		x.n = min(x.n+1, holdWeight)
		x.mean += (max(d, 0) - x.mean) / time.Duration(x.n)
	}
}

// of is the mean on a target, or else in the pool; known is false when nothing
// came back yet.
func (h *holds) of(poolName, target string) (mean time.Duration, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range []holdKey{{poolName, target}, {poolName, ""}} {
		if x := h.mean[key]; x != nil {
			return max(x.mean, time.Millisecond), true
		}
	}
	return usualHold, false
}

// held notes the end of a lease that was used.
func (k *Keeper) held(t *token) {
	k.holds.add(t.Pool, t.Target, k.store.Now().Sub(t.Granted))
}
