package keeper

import (
	"context"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// RevokeLeases takes back all live leases of a pool that the filter takes; with
// dry it only tells. What came free goes to the waiters.
func (k *Keeper) RevokeLeases(ctx context.Context, poolName string, f pool.LeaseFilter, dry bool) (store.RevokeResult, error) {
	res, err := k.store.Revoke(ctx, store.RevokeParams{Pool: poolName, Filter: f, DryRun: dry})
	if err == nil && !dry && res.Count > 0 {
		k.wake(poolName)
	}
	return res, err
}

// ReleaseGroup ends a group's hold and serves those that waited for it. It tells
// until when the group was held, 0 = it was not.
func (k *Keeper) ReleaseGroup(ctx context.Context, poolName, group string) (pool.Time, error) {
	held, err := k.store.ReleaseGroup(ctx, store.GroupParams{Pool: poolName, Name: group})
	if err == nil {
		k.wake(poolName)
	}
	return held, err
}

// MoveSession has a session's next lease go to another proxy. A waiter that
// stands in line for the session's own proxy is tried anew.
func (k *Keeper) MoveSession(ctx context.Context, poolName, key string) (pool.Session, error) {
	x, err := k.store.MoveSession(ctx, store.SessionParams{Pool: poolName, Key: key})
	if err == nil {
		k.wake(poolName)
	}
	return x, err
}

// EndSession forgets a session; its live leases go on. It tells whether there
// was one.
func (k *Keeper) EndSession(ctx context.Context, poolName, key string) (bool, error) {
	known, err := k.store.EndSession(ctx, poolName, key)
	if err == nil && known {
		k.wake(poolName)
	}
	return known, err
}
