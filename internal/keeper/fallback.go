package keeper

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// acquireAnywhere asks the pool and, when it would refuse, its fallback pools in
// order. They are asked once each, without waiting: the caller waited already as
// long as the pool itself could help. It tells whose answer this is; a refusal
// is always the pool's own.
func (k *Keeper) acquireAnywhere(ctx context.Context, p store.AcquireParams, policy *pool.Policy, wait time.Duration) (tried, string, error) {
	if len(policy.FallbackPools) == 0 {
		res, err := k.acquire(ctx, p, wait)
		return res, p.Pool, err
	}
	if p.CallID != "" {
		leave, err := k.turns.enter(ctx, p.Tenant+"\x00"+p.CallID)
		if err != nil {
			return tried{}, p.Pool, err
		}
		defer leave()
		if res, name, err := k.repeated(ctx, p, policy.FallbackPools); err != nil || len(res.Grants) > 0 {
			return tried{AcquireResult: res}, name, err
		}
	}
	own, err := k.acquire(ctx, p, wait)
	if err != nil || own.Refusal == nil || own.Refusal.Stopped {
		return own, p.Pool, err
	}
	for _, name := range policy.FallbackPools {
		there := p
		there.Pool = name
		if _, ok := k.policy(name); !ok || name == p.Pool {
			continue // not made yet; doctor names it
		}
		res, err := k.acquire(ctx, there, 0)
		if err != nil || len(res.Grants) > 0 {
			return res, name, err
		}
	}
	return own, p.Pool, nil
}

// repeated looks whether one of the pools answered this request id before: a
// repeat must find its leases wherever they came from.
func (k *Keeper) repeated(ctx context.Context, p store.AcquireParams, fallbacks []string) (pool.AcquireResult, string, error) {
	p.Repeat = true
	for _, name := range append([]string{p.Pool}, fallbacks...) {
		there := p
		there.Pool = name
		res, err := k.store.Acquire(ctx, there)
		if errors.Is(err, store.ErrNoPool) {
			continue
		}
		if err != nil || len(res.Grants) > 0 {
			return res, name, err
		}
	}
	return pool.AcquireResult{}, p.Pool, nil
}

// turns lets one caller at a time through, by key.
type turns struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the holder leaves
}

// enter waits for the turn; leave must be called once.
func (t *turns) enter(ctx context.Context, key string) (leave func(), err error) {
	for {
		t.mu.Lock()
		held, busy := t.held[key]
		if !busy {
			if t.held == nil {
				t.held = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			t.held[key] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.held, key)
				t.mu.Unlock()
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
