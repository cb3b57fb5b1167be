package embedded

import (
	"context"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// inPool runs do on one pool's state in the next batch.
func (s *Store) inPool(ctx context.Context, name string, do func(*pool.State) error) error {
	return s.apply(ctx, func() error {
		p, ok := s.pools[name]
		if !ok {
			return store.ErrNoPool
		}
		return do(p.state)
	})
}

// Acquire implements store.Leasing.
func (s *Store) Acquire(ctx context.Context, p store.AcquireParams) (res pool.AcquireResult, err error) {
	err = s.inPool(ctx, p.Pool, func(st *pool.State) error {
		res, err = st.Acquire(s.now(p.Now), p.AcquireParams, s.rng)
		return err
	})
	if err != nil {
		return pool.AcquireResult{}, err
	}
	return res, nil
}

// Extend implements store.Leasing.
func (s *Store) Extend(ctx context.Context, p store.ExtendParams) (res []pool.Extended, err error) {
	err = s.inPool(ctx, p.Pool, func(st *pool.State) error {
		res = st.Extend(s.now(p.Now), p.Tenant, p.Worker, p.Concurrency, p.Leases)
		return nil
	})
	return res, err
}

// Settle implements store.Leasing.
func (s *Store) Settle(ctx context.Context, p store.SettleParams) (res []pool.Settled, err error) {
	err = s.inPool(ctx, p.Pool, func(st *pool.State) error {
		res = st.Settle(s.now(p.Now), p.Endings, s.rng)
		return nil
	})
	return res, err
}

// Note implements store.Leasing.
func (s *Store) Note(ctx context.Context, p store.NoteParams) (res store.NoteResult, err error) {
	err = s.inPool(ctx, p.Pool, func(st *pool.State) error {
		res.Taken, res.Duplicate = st.Note(s.now(p.Now), p.Tenant, p.Worker, p.Seq, p.Notes, s.rng)
		return nil
	})
	return res, err
}

// Reclaim implements store.Leasing.
func (s *Store) Reclaim(ctx context.Context, p store.ReclaimParams) (res store.ReclaimResult, err error) {
	err = s.inPool(ctx, p.Pool, func(st *pool.State) error {
		res.Ended = st.Reclaim(s.now(p.Now), p.Limit, s.rng)
		res.Next = st.NextExpiry()
		return nil
	})
	return res, err
}

// Sweep implements store.Leasing.
func (s *Store) Sweep(ctx context.Context, p store.SweepParams) (mended int, err error) {
	err = s.inPool(ctx, p.Pool, func(st *pool.State) error {
		mended = st.Sweep(s.now(p.Now), p.Limit)
		return s.prune(p.Pool, s.now(p.Now))
	})
	return mended, err
}

// Import implements store.Supply.
func (s *Store) Import(ctx context.Context, p store.ImportParams) (res []pool.Imported, err error) {
	err = s.inPool(ctx, p.Pool, func(st *pool.State) error {
		if p.DryRun {
			res = st.TryImport(s.now(p.Now), p.Proxies)
		} else {
			res = st.Import(s.now(p.Now), p.Proxies)
		}
		return nil
	})
	return res, err
}

// Patch implements store.Supply.
func (s *Store) Patch(ctx context.Context, p store.PatchParams) (count int, err error) {
	err = s.inPool(ctx, p.Pool, func(st *pool.State) error {
		count, err = st.Patch(s.now(p.Now), p.Filter, p.Patch, p.DryRun)
		if err == nil && count == 0 && p.Filter.ID != nil {
			return store.ErrNoProxy
		}
		return err
	})
	return count, err
}

// Remove implements store.Supply.
func (s *Store) Remove(ctx context.Context, p store.RemoveParams) (count int, err error) {
	err = s.inPool(ctx, p.Pool, func(st *pool.State) error {
		count = st.Remove(s.now(p.Now), p.Filter)
		if count == 0 && p.Filter.ID != nil {
			return store.ErrNoProxy
		}
		return nil
	})
	return count, err
}

// EndSession implements store.Views.
func (s *Store) EndSession(ctx context.Context, poolName, key string) (known bool, err error) {
	err = s.inPool(ctx, poolName, func(st *pool.State) error {
		known = st.EndSession(s.now(0), key)
		return nil
	})
	return known, err
}

// AddFailure implements store.Records.
func (s *Store) AddFailure(ctx context.Context, poolName string, f pool.Failure) error {
	return s.inPool(ctx, poolName, func(st *pool.State) error {
		st.AddFailure(f)
		return nil
	})
}
