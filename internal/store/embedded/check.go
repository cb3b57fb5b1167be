package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Report is what a check of a store's file found.
type Report struct {
	Schema int64
	// Wrong says what is wrong, a sentence each; empty = nothing.
	Wrong []string
	// Rows are how many records there are.
	Rows []Rows
}

// Rows is how many records of a kind there are.
type Rows struct {
	Kind string
	N    int64
}

// Check looks at a store's file, or at a copy of one, also while a daemon holds
// it: it looks at a copy and changes nothing. The copy is opened as a daemon
// opens it. An error means that it could not look.
func Check(ctx context.Context, o Options) (r Report, err error) {
	if ours, err := r.magic(o.Path); err != nil || !ours {
		return r, err
	}
	copied, drop, err := temporary()
	if err != nil {
		return r, err
	}
	defer drop()
	if err := copyFile(ctx, o.Path, copied); err != nil {
		return r, err
	}
	db, err := sqlite.OpenConn(copied, sqlite.OpenReadWrite)
	if err != nil {
		return r, err
	}
	defer db.Close() //nolint:errcheck // a copy that goes
	db.SetInterrupt(ctx.Done())
	if ours, err := r.identify(db); err != nil || !ours {
		return r, err
	}
	r.structure(db)
	own := o
	own.Path = copied
	if s, err := Open(ctx, own); err != nil {
		r.wrong("it cannot be opened: %s", withoutPath(err, copied))
	} else if err := s.Close(); err != nil {
		return r, err
	}
	r.references(db)
	return r, ctx.Err()
}

// temporary gives a place for a copy, readable by its owner only.
func temporary() (path string, drop func(), err error) {
	dir, err := os.MkdirTemp("", "hostler-")
	if err != nil {
		return "", nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	return filepath.Join(dir, "copy.db"), func() { _ = os.RemoveAll(dir) }, nil
}

func (r *Report) wrong(format string, args ...any) {
	r.Wrong = append(r.Wrong, fmt.Sprintf(format, args...))
}

// magic looks at the first bytes of the file.
func (r *Report) magic(path string) (ours bool, err error) {
	const sqliteHead = "SQLite format 3\x00"
	f, err := os.Open(path) //nolint:gosec // the operator names it
	if err != nil {
		return false, fmt.Errorf("open store %s: %w", path, err)
	}
	defer f.Close() //nolint:errcheck // only read
	head := make([]byte, len(sqliteHead))
	if n, err := io.ReadFull(f, head); n == 0 && errors.Is(err, io.EOF) {
		r.wrong("it is empty")
		return false, nil
	}
	if string(head) != sqliteHead {
		r.wrong("it is not a Hostler store, or its head is damaged")
		return false, nil
	}
	return true, nil
}

// identify says whether it is a store that this version can judge.
func (r *Report) identify(db *sqlite.Conn) (ours bool, err error) {
	app, err := pragma(db, "application_id")
	if err != nil {
		r.wrong("it is not a Hostler store, or its head is damaged")
		return false, nil //nolint:nilerr // that is the finding
	}
	if r.Schema, err = pragma(db, "user_version"); err != nil {
		return false, err
	}
	switch {
	case app == 0:
		r.wrong("it is an SQLite file without a mark of Hostler: empty, or another program's")
	case app != applicationID:
		r.wrong("it belongs to another program (application id %d)", app)
	case r.Schema > schemaVersion:
		r.wrong("a newer hostler wrote it (schema %d, this one knows %d)", r.Schema, schemaVersion)
	default:
		return true, nil
	}
	return false, nil
}

// structure looks at the file's pages and indexes.
func (r *Report) structure(db *sqlite.Conn) {
	err := sqlitex.ExecuteTransient(db, "PRAGMA integrity_check(20)", &sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
		if text := row.ColumnText(0); text != "ok" {
			r.wrong("its structure is damaged: %s", text)
		}
		return nil
	}})
	if err != nil {
		r.wrong("its structure cannot be read: %v", err)
	}
}

// orphans are rows that name what does not exist. The upper half of a row's
// number is its pool.
var orphans = []struct{ rows, query string }{
	{"uses of proxies that do not exist", "FROM proxy_use WHERE n NOT IN (SELECT n FROM proxy)"},
	{"judgements of proxies that do not exist", "FROM proxy_judge WHERE n NOT IN (SELECT n FROM proxy)"},
	{"proxies without counts of uses", "FROM proxy WHERE n NOT IN (SELECT n FROM proxy_use)"},
	{"proxies without a judgement", "FROM proxy WHERE n NOT IN (SELECT n FROM proxy_judge)"},
	{"proxies that stand twice", "FROM (SELECT 1 FROM proxy GROUP BY n >> 44, id HAVING count(*) > 1)"},
	{"pairs of proxies that do not exist", "FROM pair WHERE (n >> 44 << 44 | proxy) NOT IN (SELECT n FROM proxy)"},
	{"pairs of targets that do not exist", "FROM pair WHERE (n >> 44 << 44 | target) NOT IN (SELECT n FROM target)"},
	{"sessions of proxies that do not exist", "FROM session WHERE (pool << 44 | proxy) NOT IN (SELECT n FROM proxy)"},
	{"live leases of proxies that do not exist", "FROM lease WHERE ended = 0 AND (n >> 44 << 44 | proxy) NOT IN (SELECT n FROM proxy)"},
	{"live leases for targets that do not exist", "FROM lease WHERE ended = 0 AND (n >> 44 << 44 | target) NOT IN (SELECT n FROM target)"},
	{"live leases of workers that do not exist", "FROM lease WHERE ended = 0 AND (n >> 44 << 44 | worker) NOT IN (SELECT n FROM worker)"},
	{"leases whose key is not whole", "FROM lease WHERE length(key) <> 16"},
	{"proxies of pools that do not exist", "FROM proxy WHERE n >> 44 NOT IN (SELECT id FROM pool)"},
	{"targets of pools that do not exist", "FROM target WHERE n >> 44 NOT IN (SELECT id FROM pool)"},
	{"workers of pools that do not exist", "FROM worker WHERE n >> 44 NOT IN (SELECT id FROM pool)"},
	{"leases of pools that do not exist", "FROM lease WHERE n >> 44 NOT IN (SELECT id FROM pool)"},
	{"groups of pools that do not exist", "FROM grp WHERE pool NOT IN (SELECT id FROM pool)"},
	{"sessions of pools that do not exist", "FROM session WHERE pool NOT IN (SELECT id FROM pool)"},
	{"totals of pools that do not exist", "FROM pool_total WHERE pool NOT IN (SELECT id FROM pool)"},
	{"tokens without a whole hash", "FROM token WHERE length(hash) <> 32"},
	{"keys that are not whole", "FROM meta WHERE key IN ('id_key', 'lease_key') AND length(value) <> 32"},
}

var kinds = []Rows{
	{"pools", 0},
	{"proxies", 0},
	{"targets", 0},
	{"groups", 0},
	{"workers", 0},
	{"sessions", 0},
	{"live leases", 0},
	{"failures", 0},
	{"tokens", 0},
	{"audit records", 0},
}

var countOf = map[string]string{
	"pools": "FROM pool", "proxies": "FROM proxy", "targets": "FROM target", "groups": "FROM grp", "workers": "FROM worker",
	"sessions": "FROM session", "live leases": "FROM lease WHERE ended = 0", "failures": "FROM failure", "tokens": "FROM token",
	"audit records": "FROM audit",
}

// references counts, and looks for rows that name what does not exist.
func (r *Report) references(db *sqlite.Conn) {
	for _, o := range orphans {
		n, err := count(db, "SELECT count(*) "+o.query)
		switch {
		case err != nil:
			r.wrong("%s cannot be looked for: %v", o.rows, err)
		case n > 0:
			r.wrong("%d %s", n, o.rows)
		}
	}
	for _, kind := range kinds {
		if n, err := count(db, "SELECT count(*) "+countOf[kind.Kind]); err == nil {
			r.Rows = append(r.Rows, Rows{kind.Kind, n})
		}
	}
}
