package embedded

import (
	"context"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// Revoke implements store.Hand.
func (s *Store) Revoke(ctx context.Context, p store.RevokeParams) (res store.RevokeResult, err error) {
	err = s.inPool(ctx, p.Pool, func(st *pool.State) error {
		res.Count, res.First = st.Revoke(s.now(p.Now), p.Filter, p.DryRun, s.rng)
		return nil
	})
	return res, err
}

// Sessions implements store.Hand.
func (s *Store) Sessions(ctx context.Context, p store.SessionsParams) (res store.SessionsResult, err error) {
	err = s.look(ctx, p.Pool, func(st *pool.State) error {
		res.Sessions, res.More = st.Sessions(s.now(0), pool.SessionFilter{Proxy: p.Proxy, After: p.After, Limit: p.Limit})
		return nil
	})
	return res, err
}

// MoveSession implements store.Hand.
func (s *Store) MoveSession(ctx context.Context, p store.SessionParams) (x pool.Session, err error) {
	err = s.inPool(ctx, p.Pool, func(st *pool.State) error {
		known := false
		if x, known = st.MoveSession(s.now(p.Now), p.Key); !known {
			return store.ErrNoSession
		}
		return nil
	})
	return x, err
}

// ReleaseGroup implements store.Hand.
func (s *Store) ReleaseGroup(ctx context.Context, p store.GroupParams) (held pool.Time, err error) {
	err = s.inPool(ctx, p.Pool, func(st *pool.State) error {
		known := false
		if held, known = st.ReleaseGroup(s.now(p.Now), p.Name); !known {
			return store.ErrNoGroup
		}
		return nil
	})
	return held, err
}
