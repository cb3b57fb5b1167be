package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store/embedded"
)

// Report is what a check of a store found.
type Report = embedded.Report

// storeOptions open a store file as the daemon does, without its log.
func storeOptions(path string) embedded.Options {
	return embedded.Options{
		Path: path, Judge: judge.Rule, Log: slog.New(slog.DiscardHandler), Clock: func() pool.Time { return pool.At(time.Now()) },
	}
}

// CheckStore looks at a store's file, also while a daemon holds it.
func CheckStore(ctx context.Context, path string) (Report, error) {
	return embedded.Check(ctx, storeOptions(path))
}

// ExportStore writes all that a store's file holds, also while a daemon holds it.
func ExportStore(ctx context.Context, path string, w io.Writer, secrets bool, progress func(done, total int64)) error {
	return embedded.Export(ctx, storeOptions(path), w, secrets, progress)
}

// ImportStore makes a store of an export.
func ImportStore(ctx context.Context, path string, r io.Reader, progress func(done, total int64)) (rows int64, err error) {
	return embedded.Restore(ctx, storeOptions(path), r, progress)
}

// CopyStore copies a store that no daemon holds.
func CopyStore(ctx context.Context, from, to string) error { return embedded.CopyFile(ctx, from, to) }

// WriteWhole makes a file that is there whole and durable, or not at all: fill
// gets the name of a file beside it to write, readable by its owner only. A file
// that is there is replaced only with force.
func WriteWhole(path string, force bool, fill func(name string) error) error {
	if err := mayWrite(path, force); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	name := f.Name()
	defer os.Remove(name) //nolint:errcheck // it is gone when all went well
	if err := errors.Join(f.Close(), fill(name)); err != nil {
		return err
	}
	if err := syncFile(name); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := mayWrite(path, force); err != nil { // it took a while
		return err
	}
	if err := os.Rename(name, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_ = syncFile(filepath.Dir(path)) // not every system can
	return nil
}

func mayWrite(path string, force bool) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("write %s: %w", path, err)
	case info.IsDir():
		return &UsageError{fmt.Sprintf("%s is a folder: name a file", path)}
	case !force:
		return &UsageError{fmt.Sprintf("%s exists: name another file, or say --force to replace it", path)}
	}
	return mayReplace(path)
}

// mayReplace refuses a store that is in use, or whose last writes stand beside
// it: they would be taken for those of what replaces it.
func mayReplace(path string) error {
	if embedded.Held(path) {
		return &UsageError{fmt.Sprintf("%s is the store of a running hostler: name another file", path)}
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		return &UsageError{fmt.Sprintf("%s is a store that was not closed (%s-wal lies beside it): name another file", path, path)}
	}
	return nil
}

func syncFile(name string) error {
	f, err := os.Open(name) //nolint:gosec // made by us
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
