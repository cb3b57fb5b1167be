package embedded

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/store"
)

// look runs do on one pool's state outside the batches. What it shows is
// durable, since a batch holds the same lock until its commit stands.
func (s *Store) look(ctx context.Context, name string, do func(*pool.State) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return fmt.Errorf("%w: it is being read again after a failed commit", store.ErrUnavailable)
	}
	p, ok := s.pools[name]
	if !ok {
		return store.ErrNoPool
	}
	return do(p.state)
}

// Proxies implements store.Views.
func (s *Store) Proxies(ctx context.Context, p store.ProxiesParams) (res store.ProxiesResult, err error) {
	err = s.look(ctx, p.Pool, func(st *pool.State) error {
		res.Proxies, res.More = st.List(s.now(0), p.Filter, p.Sort, p.Offset, p.Limit)
		res.Now = st.Now()
		return nil
	})
	return res, err
}

// Proxy implements store.Views.
func (s *Store) Proxy(ctx context.Context, poolName string, id proxy.ID) (res store.ProxyResult, err error) {
	err = s.look(ctx, poolName, func(st *pool.State) error {
		p := st.ProxyByID(id)
		if p == nil {
			return store.ErrNoProxy
		}
		res = store.ProxyResult{Proxy: st.View(s.now(0), p), Pairs: st.Pairs(s.now(0), p), Now: st.Now()}
		return nil
	})
	return res, err
}

// Leases implements store.Views.
func (s *Store) Leases(ctx context.Context, poolName string, limit int) (list []pool.LeaseView, err error) {
	err = s.look(ctx, poolName, func(st *pool.State) error {
		list = st.Leases(s.now(0), limit)
		return nil
	})
	return list, err
}

// Workers implements store.Views.
func (s *Store) Workers(ctx context.Context, poolName string) (res store.WorkersResult, err error) {
	err = s.look(ctx, poolName, func(st *pool.State) error {
		res.Workers = st.Workers()
		res.Moment = store.Moment{Now: st.Now(), Calendar: st.Calendar()}
		return nil
	})
	return res, err
}

// Targets implements store.Views.
func (s *Store) Targets(ctx context.Context, poolName string) (res store.TargetsResult, err error) {
	err = s.look(ctx, poolName, func(st *pool.State) error {
		res.Targets = st.Targets(s.now(0))
		res.Moment = store.Moment{Now: st.Now(), Calendar: st.Calendar()}
		return nil
	})
	return res, err
}

// Groups implements store.Views.
func (s *Store) Groups(ctx context.Context, poolName string) (res store.GroupsResult, err error) {
	err = s.look(ctx, poolName, func(st *pool.State) error {
		res.Groups = st.Groups()
		res.Moment = store.Moment{Now: st.Now(), Calendar: st.Calendar()}
		return nil
	})
	return res, err
}

// Capacity implements store.Views.
func (s *Store) Capacity(ctx context.Context, p store.CapacityParams) (res store.CapacityResult, err error) {
	err = s.look(ctx, p.Pool, func(st *pool.State) error {
		res.SupplyView = st.Supply(s.now(0), p.Target)
		if p.Limit > 0 {
			res.Exits, res.Next = st.CountExits(s.now(0), p.From, p.Limit)
		}
		res.Now = st.Now()
		return nil
	})
	return res, err
}

// Session implements store.Views.
func (s *Store) Session(ctx context.Context, poolName, key string) (x pool.Session, ok bool, err error) {
	err = s.look(ctx, poolName, func(st *pool.State) error {
		x, ok = st.Session(key)
		return nil
	})
	return x, ok, err
}

// ListPools implements store.Pools.
func (s *Store) ListPools(ctx context.Context) ([]store.PoolInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []store.PoolInfo
	for name := range s.pools {
		list = append(list, s.info(name))
	}
	slices.SortFunc(list, func(a, b store.PoolInfo) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Pool implements store.Pools.
func (s *Store) Pool(ctx context.Context, name string) (info store.PoolInfo, err error) {
	err = s.look(ctx, name, func(*pool.State) error {
		info = s.info(name)
		return nil
	})
	return info, err
}

func (s *Store) info(name string) store.PoolInfo {
	p := s.pools[name]
	return store.PoolInfo{
		Name: name, Counts: p.state.Counts(s.now(0)), Totals: p.state.Totals(),
		Record: store.PolicyRecord{
			File: maps.Clone(p.record.File), Overrides: maps.Clone(p.record.Overrides), Policy: p.state.Policy(),
		},
	}
}
