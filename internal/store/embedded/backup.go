package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/hostler-proxy/hostler/internal/store"
)

var _ store.File = (*Store)(nil)

// Snapshot implements store.File. The copy lies beside the store, where there is
// room for it if anywhere, and readable by its owner only.
func (s *Store) Snapshot(ctx context.Context) (store.Snapshot, error) {
	f, err := os.CreateTemp(filepath.Dir(s.o.Path), filepath.Base(s.o.Path)+snapshotMark+"*")
	if err != nil {
		return nil, fmt.Errorf("%w: a copy of the store cannot be made beside it: %v", store.ErrUnavailable, err) //nolint:errorlint // see fail
	}
	snap := &snapshot{File: f}
	if err := copyFile(ctx, s.o.Path, f.Name()); err != nil {
		_ = snap.Close()
		return nil, fmt.Errorf("%w: the store could not be copied: %v", store.ErrUnavailable, err) //nolint:errorlint // see fail
	}
	info, err := f.Stat()
	if err != nil {
		_ = snap.Close()
		return nil, err
	}
	snap.size = info.Size()
	_ = os.Remove(f.Name()) // where that is possible nothing is left behind even if we are killed
	return snap, nil
}

const snapshotMark = ".snapshot-"

// dropOldSnapshots removes what a daemon left that was killed while copying; the
// store's lock says that it is not at it now.
func (s *Store) dropOldSnapshots() {
	left, _ := filepath.Glob(escapeGlob(s.o.Path) + snapshotMark + "*")
	for _, name := range left {
		_ = os.Remove(name)
	}
}

func escapeGlob(path string) string {
	var b []rune
	for _, r := range path {
		switch r {
		case '*', '?', '[', '\\':
			b = append(b, '[', r, ']')
		default:
			b = append(b, r)
		}
	}
	return string(b)
}

type snapshot struct {
	*os.File
	size int64
}

// Size is how many bytes the copy has.
func (s *snapshot) Size() int64 { return s.size }

// Close lets the copy go.
func (s *snapshot) Close() error {
	err := s.File.Close()
	if gone := os.Remove(s.Name()); gone != nil && !errors.Is(gone, fs.ErrNotExist) && err == nil {
		err = gone
	}
	return err
}

// CopyFile copies a store that no daemon holds: it takes the store's lock first.
// The copy holds everything that was acknowledged, and needs no other file.
func CopyFile(ctx context.Context, from, to string) error {
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("open store %s: %w", from, err)
	}
	lock, err := acquireLock(from)
	if err != nil {
		return err
	}
	defer lock.Unlock() //nolint:errcheck // the process lets go of it in any case
	return copyFile(ctx, from, to)
}

// Held says whether a daemon holds a store's file.
func Held(path string) bool {
	if _, err := os.Stat(path + ".lock"); err != nil {
		return false
	}
	lock, err := acquireLock(path)
	if err != nil {
		return true
	}
	_ = lock.Unlock()
	return false
}

// copyPages is how many pages are copied between two looks at the context.
const copyPages = 4096

// copyFile copies a store page by page, as it is at one moment: writers go on
// meanwhile, and what they write is not in the copy. Batches that are not yet
// folded into the tables are copied with the rest.
func copyFile(ctx context.Context, from, to string) error {
	src, err := openSource(from)
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // only read
	src.SetInterrupt(ctx.Done())
	end, err := holdMoment(src)
	if err != nil {
		return notAStore(from, err)
	}
	defer end()
	dst, err := sqlite.OpenConn(to, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	defer dst.Close()                                                                      //nolint:errcheck // closed with a look at the error below
	if err := sqlitex.ExecuteTransient(dst, "PRAGMA synchronous = OFF", nil); err != nil { // who keeps the copy syncs it
		return err
	}
	if err := copyPagesOf(ctx, src, dst); err != nil {
		return err
	}
	// a copy that says WAL could not be opened where nothing can be written beside it
	if err := sqlitex.ExecuteTransient(dst, "PRAGMA journal_mode = DELETE", nil); err != nil {
		return notAStore(from, err)
	}
	return dst.Close()
}

func copyPagesOf(ctx context.Context, src, dst *sqlite.Conn) error {
	b, err := sqlite.NewBackup(dst, "main", src, "main")
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		if more, err = b.Step(copyPages); err == nil {
			err = ctx.Err()
		}
	}
	return errors.Join(err, b.Close())
}

// holdMoment opens a read transaction, so that all that follows sees one moment.
func holdMoment(db *sqlite.Conn) (end func(), err error) {
	if err := sqlitex.ExecuteTransient(db, "BEGIN", nil); err != nil {
		return nil, err
	}
	if _, err := count(db, "SELECT count(*) FROM sqlite_master"); err != nil {
		return nil, err
	}
	return func() { _ = sqlitex.ExecuteTransient(db, "ROLLBACK", nil) }, nil
}

// openSource opens a file to read it; it is never made.
func openSource(path string) (*sqlite.Conn, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open store %s: %w", path, err)
	case info.IsDir():
		return nil, fmt.Errorf("open store %s: this is a folder; name a file, such as %s/hostler.db", path, path)
	}
	// Closing a connection that may write folds what a killed daemon left into the
	// file. That is the next daemon's to do: where there is any, only read.
	flags := sqlite.OpenReadWrite
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		flags = sqlite.OpenReadOnly
	}
	db, err := sqlite.OpenConn(path, flags)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	return db, nil
}

func notAStore(path string, err error) error {
	return fmt.Errorf("open store %s: this is not a Hostler store, or it is damaged: %w", path, err)
}
