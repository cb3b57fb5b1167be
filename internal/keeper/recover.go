package keeper

import (
	"context"
	"time"

	"github.com/hostler-proxy/hostler/internal/store"
)

// reclaimLimit is the most leases that one pass of a store ends at once.
const reclaimLimit = 100

// recoverAll ends overdue leases in all pools, and tells when to come again: at
// the latest after the pass interval, sooner when a lease falls due.
func (k *Keeper) recoverAll(ctx context.Context) time.Duration {
	wait := k.every
	for _, name := range k.poolNames() {
		wait = min(wait, k.recoverPool(ctx, name))
	}
	k.watchBudgets(ctx)
	k.watchParsers(ctx)
	k.mu.Lock()
	k.pass = k.store.Now()
	k.mu.Unlock()
	return max(wait, 50*time.Millisecond)
}

func (k *Keeper) recoverPool(ctx context.Context, name string) time.Duration {
	for {
		res, err := k.store.Reclaim(ctx, store.ReclaimParams{Pool: name, Limit: reclaimLimit})
		if err != nil {
			if ctx.Err() == nil {
				k.log.WarnContext(ctx, "recovery failed; it is tried again", "pool", name, "error", err)
			}
			return k.every
		}
		for _, l := range res.Ended {
			k.log.InfoContext(ctx, "recovered a lease that nobody ended", "pool", name, "worker", l.Worker,
				"target", l.Target, "proxy", l.ProxyID.String(), "lease", l.Lease.Key.Short(),
				"held_ms", l.Lease.Deadline.Sub(l.Lease.Granted).Milliseconds())
		}
		k.cameBack(name, len(res.Ended))
		if len(res.Ended) < reclaimLimit {
			if res.Next == 0 {
				return k.every
			}
			return res.Next.Sub(k.store.Now())
		}
	}
}

// sweepLimit bounds how many proxies one sweep looks at: a part of a large pool
// every half minute, a small pool whole.
const sweepLimit = 50_000

func (k *Keeper) sweepAll(ctx context.Context) {
	for _, name := range k.poolNames() {
		mended, err := k.store.Sweep(ctx, store.SweepParams{Pool: name, Limit: sweepLimit})
		if err != nil && ctx.Err() == nil {
			k.log.WarnContext(ctx, "the sweep failed; it is tried again", "pool", name, "error", err)
		}
		if mended > 0 {
			k.log.ErrorContext(ctx, "the sweep mended records that did not fit together", "pool", name, "mended", mended)
			k.wake(name)
		}
	}
}
