package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// scanLimit bounds how many rows one query of failures looks at.
const scanLimit = 50_000

// Failures implements store.Records.
func (s *Store) Failures(ctx context.Context, q store.FailureQuery) (res store.FailureResult, err error) {
	wait, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	conn, err := s.read.Take(wait)
	if err != nil {
		return res, fmt.Errorf("%w: no connection is free for the query", store.ErrUnavailable)
	}
	defer s.read.Put(conn)

	where, args := condition(q)
	floor, err := scanFloor(conn, q)
	if err != nil {
		return res, unavailable(err)
	}
	query := "SELECT * FROM failure WHERE n >= ? AND " + where + " ORDER BY n DESC LIMIT ?"
	err = sqlitex.Execute(conn, query, &sqlitex.ExecOptions{
		Args: append(append([]any{floor.n}, args...), q.Limit+1),
		ResultFunc: func(stmt *sqlite.Stmt) error {
			res.Failures = append(res.Failures, failureRow(stmt))
			return nil
		},
	})
	if err != nil {
		return res, unavailable(err)
	}
	if len(res.Failures) > q.Limit {
		res.Failures, res.More = res.Failures[:q.Limit], true
	} else if floor.at != 0 {
		res.ScannedUntil, res.ScannedTo = floor.at, floor.n
	}
	return res, nil
}

// condition turns a query into SQL.
func condition(q store.FailureQuery) (where string, args []any) {
	var parts []string
	add := func(part string, arg any) {
		parts = append(parts, part)
		args = append(args, arg)
	}
	for column, value := range map[string]string{"pool": q.Pool, "worker": q.Worker, "proxy": q.Proxy, "target": q.Target} {
		if value != "" {
			add(column+" = ?", value)
		}
	}
	if q.Class != pool.ClassNone {
		add("class = ?", q.Class.String())
	}
	if q.Final != nil {
		add("final = ?", bit(*q.Final))
	}
	if q.Since != 0 {
		add("at >= ?", int64(q.Since))
	}
	if q.Before != 0 {
		add("n < ?", q.Before)
	}
	return and(parts), args
}

// failureFloor is the oldest row of a scan.
type failureFloor struct {
	n  int64
	at pool.Time
}

// scanFloor finds the oldest row that a query may look at.
func scanFloor(conn *sqlite.Conn, q store.FailureQuery) (f failureFloor, err error) {
	top := q.Before
	if top == 0 {
		top = 1 << 62
	}
	err = sqlitex.Execute(conn, "SELECT n, at FROM failure WHERE n < ? ORDER BY n DESC LIMIT 1 OFFSET ?", &sqlitex.ExecOptions{
		Args: []any{top, scanLimit},
		ResultFunc: func(stmt *sqlite.Stmt) error {
			f = failureFloor{stmt.ColumnInt64(0), pool.Time(stmt.ColumnInt64(1))}
			return nil
		},
	})
	return f, err
}

func failureRow(stmt *sqlite.Stmt) store.FailureRow {
	text, num := stmt.GetText, stmt.GetInt64
	class, _ := pool.ParseClass(text("class"))
	fault, _ := pool.ParseFault(text("fault"))
	row := store.FailureRow{N: num("n"), Failure: pool.Failure{
		At: pool.Time(num("at")), Worker: text("worker"), Target: text("target"), Proxy: text("proxy"), Lease: text("lease"),
		Class: class, Fault: fault, Phase: text("phase"), Error: text("error"), Status: int(num("status")),
		Elapsed: millis(num("elapsed")), Final: num("final") != 0, Reason: text("reason"), Waited: millis(num("waited")),
		Request: pool.Request{
			Fingerprint: text("fingerprint"), URL: text("url"), Method: text("method"), Attempt: int(num("attempt")),
		},
	}}
	_ = json.Unmarshal([]byte(text("attempts")), &row.Attempts) // written by us; a damaged list reads as none
	return row
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// prune drops failure records of a pool that are too old or too many, a bounded
// number at a time. Numbers grow with time, so the first record that is young
// enough ends the search; and the count is taken only if there can be too many.
func (s *Store) prune(name string, now pool.Time) error {
	keep := s.pools[name].state.Policy().Failures
	err := s.execute(`DELETE FROM failure WHERE n IN (SELECT n FROM failure WHERE pool = ?1 AND n < coalesce(
		(SELECT n FROM failure WHERE pool = ?1 AND at >= ?2 ORDER BY n LIMIT 1), 1 << 62) ORDER BY n LIMIT 10000)`,
		[]any{name, int64(now.Add(-keep.Age))}, nil)
	if err != nil {
		return err
	}
	return s.execute(`DELETE FROM failure WHERE (SELECT max(n) - min(n) FROM failure) >= ?2 AND n IN (
		SELECT n FROM failure WHERE pool = ?1 AND n <
		(SELECT n FROM failure WHERE pool = ?1 ORDER BY n DESC LIMIT 1 OFFSET ?2) ORDER BY n LIMIT 10000)`,
		[]any{name, keep.Max - 1}, nil)
}

// Tokens implements store.Records.
func (s *Store) Tokens(ctx context.Context) (list []store.Token, err error) {
	err = s.apply(ctx, func() error {
		return s.execute("SELECT name, role, hash, created FROM token ORDER BY name", nil, func(stmt *sqlite.Stmt) error {
			hash := make([]byte, stmt.ColumnLen(2))
			stmt.ColumnBytes(2, hash)
			list = append(list, store.Token{
				Name: stmt.ColumnText(0), Role: stmt.ColumnText(1), Hash: hash, Created: pool.Time(stmt.ColumnInt64(3)).Std(),
			})
			return nil
		})
	})
	return list, err
}

// PutToken implements store.Records.
func (s *Store) PutToken(ctx context.Context, t store.Token) error {
	return s.apply(ctx, func() error {
		return s.execute("INSERT OR REPLACE INTO token (name, role, hash, created) VALUES (?, ?, ?, ?)",
			[]any{t.Name, t.Role, t.Hash, int64(pool.At(t.Created))}, nil)
	})
}

// DeleteToken implements store.Records.
func (s *Store) DeleteToken(ctx context.Context, name string) (known bool, err error) {
	err = s.apply(ctx, func() error {
		err := s.execute("DELETE FROM token WHERE name = ?", []any{name}, nil)
		known = s.db.Changes() > 0
		return err
	})
	return known, err
}

func (s *Store) execute(query string, args []any, row func(*sqlite.Stmt) error) error {
	return unavailable(sqlitex.Execute(s.db, query, &sqlitex.ExecOptions{Args: args, ResultFunc: row}))
}

func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %v", store.ErrUnavailable, err) //nolint:errorlint // see fail
}

func and(conditions []string) string {
	if len(conditions) == 0 {
		return "1"
	}
	return strings.Join(conditions, " AND ")
}
