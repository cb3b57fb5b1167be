package keeper

import (
	"context"
	"time"
)

// UseOnce lends a proxy to a caller that will not report: the use and the start
// of the pair count, and the slot is held only for the time asked.
func (k *Keeper) UseOnce(ctx context.Context, r AcquireRequest, hold time.Duration) (Lease, *Acquired, error) {
	r.Count = 1
	if hold > 0 {
		r.TTL = max(hold, time.Second)
	}
	a, err := k.Acquire(ctx, r)
	if err != nil {
		return Lease{}, nil, err
	}
	if a.Refusal != nil {
		return Lease{}, &a, nil
	}
	lease := a.Leases[0]
	if hold > 0 {
		k.releaseAfter(lease, hold)
		return lease, nil, nil
	}
	_, err = k.endUse(ctx, lease.ID)
	return lease, nil, err
}

// releaseAfter ends the use when its time is over; should the daemon die before,
// the lease runs out by itself.
func (k *Keeper) releaseAfter(lease Lease, hold time.Duration) {
	k.wg.Go(func() {
		timer := time.NewTimer(hold)
		defer timer.Stop()
		select {
		case <-timer.C:
			if _, err := k.endUse(k.base, lease.ID); err != nil {
				k.log.Warn("could not end a use; its lease runs out by itself", "pool", lease.Pool, "error", err)
			}
		case <-k.base.Done():
		}
	})
}
