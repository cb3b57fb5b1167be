package embedded

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// quickLook bounds how long Inspect looks at the file's structure.
const quickLook = 5 * time.Second

// Inspect implements store.File. The write that it tries changes nothing that
// anybody reads.
func (s *Store) Inspect(ctx context.Context) (h store.FileHealth, err error) {
	if err := ctx.Err(); err != nil {
		return h, err
	}
	h = store.FileHealth{Path: s.o.Path, Free: diskFree(filepath.Dir(s.o.Path))}
	for _, name := range []string{s.o.Path, s.o.Path + "-wal"} {
		if info, err := os.Stat(name); err == nil {
			h.Bytes += info.Size()
			h.Written = max(h.Written, pool.At(info.ModTime()))
		}
	}
	began := time.Now() //nolint:forbidigo // how long a write takes is no time of the store's
	h.WriteErr = s.apply(ctx, func() error { return s.execute("UPDATE meta SET value = value", nil, nil) })
	h.WriteTime = time.Since(began) //nolint:forbidigo // as above
	h.Damage, h.Looked = s.quickCheck(ctx)
	return h, nil
}

// quickCheck looks at the file's structure as long as its time lasts.
func (s *Store) quickCheck(ctx context.Context) (damage string, whole bool) {
	ctx, cancel := context.WithTimeout(ctx, quickLook)
	defer cancel()
	conn, err := openSource(s.o.Path) // its own: those for queries must not wait for this
	if err != nil {
		return err.Error(), true
	}
	defer conn.Close() //nolint:errcheck // only read
	conn.SetInterrupt(ctx.Done())
	err = sqlitex.ExecuteTransient(conn, "PRAGMA quick_check(1)", &sqlitex.ExecOptions{ResultFunc: func(r *sqlite.Stmt) error {
		if text := r.ColumnText(0); text != "ok" {
			damage = text
		}
		return nil
	}})
	switch {
	case err != nil && ctx.Err() != nil:
		return "", false
	case err != nil:
		return err.Error(), true
	default:
		return damage, true
	}
}
