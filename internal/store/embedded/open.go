package embedded

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"sync"

	"github.com/gofrs/flock"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

//go:embed schema.sql
var schema string

const (
	// applicationID marks our files: "HOST" in ASCII.
	applicationID = 0x484f5354
	// schemaVersion grows with every change of schema.sql.
	schemaVersion = 1
)

// Options open a store.
type Options struct {
	Path string
	// Full fsyncs every commit, for machines whose power can fail.
	Full bool
	// Judge rules on outcomes.
	Judge pool.Judge
	// Clock is the store's clock.
	Clock func() pool.Time
	// Seed makes the store's choices repeatable in tests; nil = random.
	Seed *uint64
	Log  *slog.Logger
}

// Store is the embedded store. It is safe for concurrent use.
type Store struct {
	o    Options
	lock *flock.Flock
	db   *sqlite.Conn  // the committer's
	read *sqlitex.Pool // queries of records
	keys store.Keys
	rng  *mathrand.Rand // guarded by mu

	mu     sync.Mutex
	pools  map[string]*keptPool
	sink   *sink
	broken bool // memory and file may differ

	queue queue
	done  chan struct{}
	close sync.Once
}

// keptPool is a pool in memory with its number and policy record.
type keptPool struct {
	id     int64
	state  *pool.State
	record store.PolicyRecord
}

var _ store.Store = (*Store)(nil)

// Open opens or makes a store file. Its errors say what is wrong with the file
// and what to do.
func Open(ctx context.Context, o Options) (*Store, error) {
	lock, err := acquireLock(o.Path)
	if err != nil {
		return nil, err
	}
	s := &Store{o: o, lock: lock, done: make(chan struct{}), pools: map[string]*keptPool{}}
	s.queue.init()
	if err := s.open(ctx); err != nil {
		s.shut()
		return nil, err
	}
	go s.commitLoop()
	return s, nil
}

func acquireLock(path string) (*flock.Flock, error) {
	lock := flock.New(path + ".lock")
	ok, err := lock.TryLock()
	switch {
	case err != nil && errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("open store %s: its folder does not exist; make the folder or name another file with --store", path)
	case err != nil:
		return nil, fmt.Errorf("open store %s: cannot make the lock file beside it (is the folder writable?): %w", path, err)
	case !ok:
		return nil, fmt.Errorf("open store %s: another hostler holds this file; stop it, or name another file with --store", path)
	}
	return lock, nil
}

func (s *Store) open(ctx context.Context) error {
	seed := mathrand.Uint64()
	if s.o.Seed != nil {
		seed = *s.o.Seed
	}
	s.rng = mathrand.New(mathrand.NewPCG(seed, seed^0x9e3779b97f4a7c15))
	db, err := openFile(s.o.Path)
	if err != nil {
		return err
	}
	s.db = db
	s.dropOldSnapshots()
	if err := s.prepareFile(); err != nil {
		return err
	}
	s.read, err = sqlitex.NewPool(s.o.Path, sqlitex.PoolOptions{Flags: sqlite.OpenReadWrite | sqlite.OpenWAL, PoolSize: 2})
	if err != nil {
		return fmt.Errorf("open store %s for reading: %w", s.o.Path, err)
	}
	if s.keys, err = s.loadKeys(); err != nil {
		return fmt.Errorf("read the keys of store %s: %w", s.o.Path, err)
	}
	if s.sink, err = newSink(s.db); err != nil {
		return fmt.Errorf("open store %s: %w", s.o.Path, err)
	}
	if err := s.load(); err != nil {
		return fmt.Errorf("read store %s: %w", s.o.Path, err)
	}
	return ctx.Err()
}

// openFile opens the file, or says in a sentence why it cannot.
func openFile(path string) (*sqlite.Conn, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("open store %s: this is a folder; name a file, such as %s/hostler.db", path, path)
	}
	if err := touch(path); err != nil {
		return nil, err
	}
	db, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	return db, nil
}

// touch makes the file readable by its owner only: it holds proxy passwords.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator names it
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("open store %s: no permission to write; make the file writable for this user, or name another with --store", path)
		}
		return fmt.Errorf("open store %s: %w", path, err)
	}
	return f.Close()
}

// prepareFile checks whose file it is and brings it to the schema.
func (s *Store) prepareFile() error {
	path := s.o.Path
	app, err := pragma(s.db, "application_id")
	if err != nil {
		return fmt.Errorf("open store %s: this is not a Hostler store, or it is damaged (%w); name another file with --store", path, err)
	}
	version, err := pragma(s.db, "user_version")
	if err != nil {
		return err
	}
	tables, err := count(s.db, "SELECT count(*) FROM sqlite_master")
	if err != nil {
		return err
	}
	switch {
	case app == 0 && tables == 0:
		if err := s.create(); err != nil {
			return fmt.Errorf("make store %s: %w", path, err)
		}
	case app != applicationID:
		return fmt.Errorf("open store %s: this SQLite file belongs to another program; name another file with --store", path)
	case version > schemaVersion:
		return fmt.Errorf("open store %s: a newer hostler wrote it (schema %d, this one knows %d); use that version", path, version, schemaVersion)
	}
	return s.tune()
}

// create makes the tables in one transaction, so that a half-made file is never seen.
func (s *Store) create() error {
	return sqlitex.ExecScript(s.db, fmt.Sprintf("%s\nPRAGMA application_id = %d; PRAGMA user_version = %d;",
		schema, applicationID, schemaVersion))
}

func (s *Store) tune() error {
	sync := "NORMAL"
	if s.o.Full {
		sync = "FULL"
	}
	for _, p := range []string{
		"journal_mode = WAL", "synchronous = " + sync, "temp_store = MEMORY", "cache_size = -16384",
		"wal_autocheckpoint = 32768", "foreign_keys = OFF",
	} {
		if err := sqlitex.ExecuteTransient(s.db, "PRAGMA "+p, nil); err != nil {
			return fmt.Errorf("open store %s: cannot write to it (%s): %w", s.o.Path, p, err)
		}
	}
	return nil
}

func (s *Store) loadKeys() (store.Keys, error) {
	id, err := s.key("id_key")
	if err != nil {
		return store.Keys{}, err
	}
	lease, err := s.key("lease_key")
	return store.Keys{ID: id, Lease: lease}, err
}

// key reads a secret, made on first use.
func (s *Store) key(name string) ([]byte, error) {
	var value []byte
	err := sqlitex.Execute(s.db, "SELECT value FROM meta WHERE key = ?", &sqlitex.ExecOptions{
		Args: []any{name},
		ResultFunc: func(stmt *sqlite.Stmt) error {
			value = make([]byte, stmt.ColumnLen(0))
			stmt.ColumnBytes(0, value)
			return nil
		},
	})
	if err != nil || len(value) == 32 {
		return value, err
	}
	value = make([]byte, 32)
	if _, err := rand.Read(value); err != nil {
		return nil, err
	}
	return value, sqlitex.Execute(s.db, "INSERT INTO meta (key, value) VALUES (?, ?)", &sqlitex.ExecOptions{Args: []any{name, value}})
}

// Close commits what is queued and releases the file.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.queue.close()
		<-s.done
		s.shut()
	})
	return nil
}

func (s *Store) shut() {
	if s.read != nil {
		_ = s.read.Close()
	}
	if s.db != nil {
		_ = s.db.Close()
	}
	_ = s.lock.Unlock()
}

// Keys gives the store's secrets.
func (s *Store) Keys(context.Context) (store.Keys, error) { return s.keys, nil }

// Now is the store's clock.
func (s *Store) Now() pool.Time { return s.o.Clock() }

func pragma(db *sqlite.Conn, name string) (int64, error) { return count(db, "PRAGMA "+name) }

func count(db *sqlite.Conn, query string) (int64, error) {
	var n int64
	err := sqlitex.ExecuteTransient(db, query, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		n = stmt.ColumnInt64(0)
		return nil
	}})
	return n, err
}
