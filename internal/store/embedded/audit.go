package embedded

import (
	"context"
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// AddAudit implements store.Audits. Each record takes the oldest with it that
// are too many, and some of those that are too old.
func (s *Store) AddAudit(ctx context.Context, a store.Audit) error {
	return s.apply(ctx, func() error {
		if a.At == 0 {
			a.At = s.now(0)
		}
		err := s.execute(`INSERT INTO audit (at, who, peer, act, pool, what, count, result) VALUES (`+marks(8)+`)`,
			[]any{int64(a.At), a.Who, a.Peer, a.Act, a.Pool, a.What, a.Count, a.Result}, nil)
		if err != nil {
			return err
		}
		if err := s.execute("DELETE FROM audit WHERE n <= (SELECT max(n) FROM audit) - ?", []any{store.AuditMax}, nil); err != nil {
			return err
		}
		return s.execute("DELETE FROM audit WHERE n IN (SELECT n FROM audit ORDER BY n LIMIT 100) AND at < ?",
			[]any{int64(a.At.Add(-store.AuditAge))}, nil)
	})
}

// Audits implements store.Audits.
func (s *Store) Audits(ctx context.Context, q store.AuditQuery) (res store.AuditResult, err error) {
	wait, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	conn, err := s.read.Take(wait)
	if err != nil {
		return res, fmt.Errorf("%w: no connection is free for the query", store.ErrUnavailable)
	}
	defer s.read.Put(conn)
	before := q.Before
	if before == 0 {
		before = 1 << 62
	}
	err = sqlitex.Execute(conn, `SELECT * FROM audit WHERE n < ?1 AND at >= ?2 AND (?3 = '' OR act = ?3) AND (?4 = '' OR who = ?4)
		ORDER BY n DESC LIMIT ?5`, &sqlitex.ExecOptions{
		Args: []any{before, int64(q.Since), q.Act, q.Who, q.Limit + 1},
		ResultFunc: func(r *sqlite.Stmt) error {
			text := r.GetText
			res.Audits = append(res.Audits, store.Audit{
				N: r.GetInt64("n"), At: pool.Time(r.GetInt64("at")), Who: text("who"), Peer: text("peer"), Act: text("act"),
				Pool: text("pool"), What: text("what"), Count: int(r.GetInt64("count")), Result: text("result"),
			})
			return nil
		},
	})
	if err != nil {
		return res, unavailable(err)
	}
	if len(res.Audits) > q.Limit {
		res.Audits, res.More = res.Audits[:q.Limit], true
	}
	return res, nil
}
