package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/internal/app"
)

type storeCmd struct {
	Check  storeCheckCmd  `cmd:"" help:"Say whether a store's file, or a backup of one, is whole."`
	Backup storeBackupCmd `cmd:"" help:"Copy the store into a file, while the daemon runs or without it."`
	Export storeExportCmd `cmd:"" help:"Write all that the store holds as JSON lines."`
	Import storeImportCmd `cmd:"" help:"Make a new store of an export."`
}

type storeCheckCmd struct {
	File string `arg:"" optional:"" help:"The file." default:"hostler.db"`
}

// Run checks a file; it succeeds if nothing is wrong.
func (c *storeCheckCmd) Run(ctx context.Context, e *env) error {
	r, err := app.CheckStore(ctx, c.File)
	if err != nil {
		return err
	}
	if err := e.printReport(c.File, &r); err != nil {
		return err
	}
	if len(r.Wrong) > 0 {
		return errNotMet
	}
	return nil
}

func (e *env) printReport(file string, r *app.Report) error {
	if e.cli.JSON {
		rows, wrong := map[string]int64{}, r.Wrong
		for _, kind := range r.Rows {
			rows[strings.ReplaceAll(kind.Kind, " ", "_")] = kind.N
		}
		if wrong == nil {
			wrong = []string{}
		}
		return e.printJSON(map[string]any{"file": file, "ok": len(wrong) == 0, "schema": r.Schema, "wrong": wrong, "rows": rows})
	}
	for _, text := range r.Wrong {
		e.printf("wrong: %s\n", printable(text))
	}
	var parts []string
	for _, kind := range r.Rows {
		parts = append(parts, fmt.Sprintf("%d %s", kind.N, kind.Kind))
	}
	if len(parts) > 0 {
		e.printf("%s\n", strings.Join(parts, ", "))
	}
	if len(r.Wrong) == 0 {
		e.printf("%s is whole\n", printable(file))
		return nil
	}
	e.printf("%s is not as it should be: keep it, and go on with the last good backup\n", printable(file))
	return nil
}

type storeBackupCmd struct {
	File  string `arg:"" help:"The file to make; it holds all secrets, so keep it as safe as the store."`
	Store string `help:"Copy this file of a daemon that does not run, instead of asking one." placeholder:"FILE"`
	Force bool   `help:"Replace the file if it is there."`
}

// Run makes a backup, and looks whether it is whole before it gets its name.
func (c *storeBackupCmd) Run(ctx context.Context, e *env) error {
	var r app.Report
	began := time.Now()
	err := app.WriteWhole(c.File, c.Force, func(name string) error {
		if err := e.copyStore(ctx, c.Store, name); err != nil {
			return err
		}
		var err error
		if r, err = app.CheckStore(ctx, name); err == nil && len(r.Wrong) > 0 {
			err = fmt.Errorf("the copy is not whole, and was not kept: %s", printable(strings.Join(r.Wrong, "; ")))
		}
		return err
	})
	if err != nil {
		return err
	}
	info, err := os.Stat(c.File)
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"file": c.File, "bytes": info.Size(), "checked": true})
	}
	e.printf("%s: %.1f MB in %s, checked\n", printable(c.File), float64(info.Size())/1e6, time.Since(began).Round(10*time.Millisecond))
	return nil
}

// copyStore copies the store of a file, or "" that of the running daemon.
func (e *env) copyStore(ctx context.Context, store, to string) error {
	if store != "" {
		return app.CopyStore(ctx, store, to)
	}
	api, err := e.client()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_TRUNC, 0) //nolint:gosec // made by us
	if err != nil {
		return err
	}
	p := e.progress("copied", "MB")
	_, err = api.Backup(ctx, &counting{w: f, p: p, scale: 1e6})
	p.end()
	return errors.Join(err, f.Close())
}

type storeExportCmd struct {
	File      string `arg:"" help:"The file to make; - is standard output."`
	Store     string `help:"Export this file, instead of asking a daemon for its store; one may hold it." placeholder:"FILE"`
	Passwords bool   `help:"With proxy passwords and the store's keys: only such an export can be imported."`
	Force     bool   `help:"Replace the file if it is there."`
}

// Run exports a store.
func (c *storeExportCmd) Run(ctx context.Context, e *env) error {
	return e.withStoreFile(ctx, c.Store, func(store string) error {
		p := e.progress("exported", "rows")
		defer p.end()
		if c.File == "-" {
			return app.ExportStore(ctx, store, e.out, c.Passwords, p.set)
		}
		err := app.WriteWhole(c.File, c.Force, func(name string) error {
			f, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0) //nolint:gosec // made by us
			if err != nil {
				return err
			}
			return errors.Join(app.ExportStore(ctx, store, f, c.Passwords, p.set), f.Close())
		})
		if err != nil {
			return err
		}
		p.end()
		if e.cli.JSON {
			return e.printJSON(map[string]any{"file": c.File, "rows": p.done, "passwords": c.Passwords})
		}
		e.printf("%s: %d rows\n", printable(c.File), p.done)
		return nil
	})
}

// withStoreFile gives a store's file: the one that is named, or a passing copy
// of the running daemon's.
func (e *env) withStoreFile(ctx context.Context, store string, do func(file string) error) error {
	if store != "" {
		return do(store)
	}
	f, err := os.CreateTemp("", "hostler-*.db") // readable by its owner only
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // the system cleans up too
	if err := errors.Join(f.Close(), e.copyStore(ctx, "", f.Name())); err != nil {
		return err
	}
	return do(f.Name())
}

type storeImportCmd struct {
	File  string `arg:"" help:"The export; - is standard input."`
	Store string `help:"The store to make; no daemon may hold it, and nothing may be in it." default:"hostler.db" placeholder:"FILE"`
}

// Run imports an export, wholly or not at all.
func (c *storeImportCmd) Run(ctx context.Context, e *env) error {
	in := e.in
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return &app.UsageError{Text: err.Error()}
		}
		defer f.Close() //nolint:errcheck // only read
		in = f
	}
	p := e.progress("imported", "rows")
	rows, err := app.ImportStore(ctx, c.Store, in, p.set)
	p.end()
	if err != nil {
		return fmt.Errorf("nothing was imported: %w", err)
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"store": c.Store, "rows": rows})
	}
	e.printf("%s: %d rows\n", printable(c.Store), rows)
	return nil
}

// progress shows how far a long act is, on a terminal only.
type progress struct {
	out       io.Writer // nil = nobody looks
	verb, of  string
	shown     time.Time
	done      int64
	something bool
}

func (e *env) progress(verb, of string) *progress {
	p := &progress{verb: verb, of: of, shown: time.Now()}
	if terminal(e.errs) {
		p.out = e.errs
	}
	return p
}

// set tells how much is done, of how much; 0 = not known.
func (p *progress) set(done, total int64) {
	p.done = done
	if p.out == nil || time.Since(p.shown) < redraw {
		return
	}
	p.shown, p.something = time.Now(), true
	if total > 0 {
		const width = 30
		full := int(done * width / total)
		_, _ = fmt.Fprintf(p.out, "\r[%s%s] %d of %d %s", strings.Repeat("#", full), strings.Repeat(".", width-full), done, total, p.of)
		return
	}
	_, _ = fmt.Fprintf(p.out, "\r%s %d %s", p.verb, done, p.of)
}

// end clears the line.
func (p *progress) end() {
	if p.something {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
		p.something = false
	}
}

// counting tells a progress what was written.
type counting struct {
	w     io.Writer
	p     *progress
	n     int64
	scale int64
}

// Write writes on.
func (c *counting) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	c.p.set(c.n/c.scale, 0)
	return n, err
}
