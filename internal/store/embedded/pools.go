package embedded

import (
	"context"
	"encoding/json"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// PutPool implements store.Pools.
func (s *Store) PutPool(ctx context.Context, p store.PutPoolParams) (info store.PoolInfo, err error) {
	err = s.apply(ctx, func() error {
		if err := s.putPool(p); err != nil {
			return err
		}
		info = s.info(p.Name)
		return nil
	})
	return info, err
}

// putPool writes the record at once, in a transaction of its own: an operator's
// change is rare, and must not be undone by another operation of the batch.
func (s *Store) putPool(p store.PutPoolParams) error {
	known := s.pools[p.Name]
	version := int64(0)
	if known != nil {
		version = known.state.Policy().Version
	}
	if p.Expect >= 0 && p.Expect != version {
		return store.ErrConflict
	}
	p.Record.Policy.Version = version + 1
	id, err := s.savePool(p.Name, p.Record)
	if err != nil {
		return unavailable(err)
	}
	if known == nil {
		known = s.newPool(p.Name, id, p.Record.Policy)
		s.pools[p.Name] = known
	} else {
		known.state.SetPolicy(s.now(0), p.Record.Policy)
	}
	known.record = p.Record
	return nil
}

func (s *Store) newPool(name string, id int64, policy pool.Policy) *keptPool {
	p := &keptPool{id: id, state: pool.New(name, policy, s.o.Judge)}
	p.state.Collect()
	return p
}

func (s *Store) savePool(name string, r store.PolicyRecord) (id int64, err error) {
	file, err1 := json.Marshal(r.File)
	overrides, err2 := json.Marshal(r.Overrides)
	policy, err3 := json.Marshal(r.Policy)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return 0, err
		}
	}
	err = sqlitex.Execute(s.db, `INSERT INTO pool (name, version, file, overrides, policy) VALUES (?1, ?2, ?3, ?4, ?5)
		ON CONFLICT (name) DO UPDATE SET version = ?2, file = ?3, overrides = ?4, policy = ?5 RETURNING id`,
		&sqlitex.ExecOptions{
			Args:       []any{name, r.Policy.Version, string(file), string(overrides), string(policy)},
			ResultFunc: func(stmt *sqlite.Stmt) error { id = stmt.ColumnInt64(0); return nil },
		})
	return id, err
}

// DeletePool implements store.Pools.
func (s *Store) DeletePool(ctx context.Context, name string) error {
	return s.apply(ctx, func() error {
		p := s.pools[name]
		switch {
		case p == nil:
			return store.ErrNoPool
		case p.state.Counts(s.now(0)).Proxies > 0:
			return store.ErrPoolInUse
		}
		if err := s.erasePool(p.id); err != nil {
			return unavailable(err)
		}
		delete(s.pools, name)
		return nil
	})
}

func (s *Store) erasePool(id int64) (err error) {
	defer sqlitex.Save(s.db)(&err)
	for _, table := range []string{"proxy", "proxy_use", "proxy_judge", "pair", "target", "worker", "lease"} {
		low := id << poolShift
		if err := s.erase("DELETE FROM "+table+" WHERE n >= ? AND n < ?", low, (id+1)<<poolShift); err != nil {
			return err
		}
	}
	for _, table := range []string{"grp", "session", "pool_total"} {
		if err := s.erase("DELETE FROM "+table+" WHERE pool = ?", id); err != nil {
			return err
		}
	}
	return s.erase("DELETE FROM pool WHERE id = ?", id)
}

func (s *Store) erase(query string, args ...any) error {
	return sqlitex.Execute(s.db, query, &sqlitex.ExecOptions{Args: args})
}
