package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
	"github.com/hostler-proxy/hostler/internal/redislist"
)

type proxiesImportCmd struct {
	importFlags
	shapeFlags
	List          string `arg:"" help:"The list's file; - is standard input. With --from-redis the key that holds it."`
	Source        string `help:"Name of the list's source." placeholder:"NAME"`
	FromRedis     string `help:"Take over what a key of this Redis holds: a list, set, zset, hash or string. It is only read." placeholder:"URL"`
	RedisPassword string `hidden:"" env:"HOSTLER_REDIS_PASSWORD" help:"Password of that Redis, for a URL without one."`
}

// shapeFlags say what a list does not say itself.
type shapeFlags struct {
	Format    string            `help:"Form of the list: auto, lines, url, hostport, userpass, csv, json or jsonl." enum:"auto,lines,url,hostport,userpass,csv,json,jsonl" default:"auto"`
	Columns   []string          `help:"Header of a CSV list that has none, such as host,port or http,https,socks4,socks5." placeholder:"NAMES"`
	MapScheme map[string]string `help:"Take proxies of one scheme for those of another, such as https=http." placeholder:"FROM=TO"`
}

// Run imports a list and tells what became of its lines.
func (c *proxiesImportCmd) Run(ctx context.Context, e *env) error {
	o := c.options(c.Source)
	o.Format, o.Columns, o.MapScheme = c.Format, c.Columns, c.MapScheme
	if c.FromRedis != "" {
		return c.fromRedis(ctx, e, o)
	}
	list := e.in
	if c.List != "-" {
		f, err := os.Open(c.List)
		if err != nil {
			return &app.UsageError{Text: err.Error()}
		}
		defer f.Close() //nolint:errcheck // only read
		list = f
	}
	return e.importList(ctx, list, o)
}

// fromRedis sends on what Redis gives, piece by piece.
func (c *proxiesImportCmd) fromRedis(ctx context.Context, e *env, o client.ImportOptions) error {
	source, err := redislist.Open(ctx, c.FromRedis, c.RedisPassword, c.List)
	if err != nil {
		return err
	}
	defer source.Close()
	if o.Format == "auto" || source.Kind() != "string" {
		o.Format = source.Format()
	}
	out, in := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = in.CloseWithError(source.Copy(ctx, in)) // never fails
	}()
	err = e.importList(ctx, out, o)
	_ = out.Close() // ends a copy that nobody reads any more
	<-done
	return err
}

// importList sends a list and prints what became of its lines.
func (e *env) importList(ctx context.Context, list io.Reader, o client.ImportOptions) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	watched, done := e.watch(list)
	res, err := api.Import(ctx, watched, o)
	done()
	if err != nil {
		return err
	}
	if e.cli.JSON {
		if err := e.printJSON(res); err != nil {
			return err
		}
	} else {
		e.printImported(res)
	}
	if res.Accepted+res.Updated+res.Duplicates == 0 {
		return errors.New("no line gave a proxy")
	}
	return nil
}

func (e *env) printImported(res *client.Imported) {
	const most = 20
	e.printf("%d accepted, %d updated, %d duplicates, %d rejected\n", res.Accepted, res.Updated, res.Duplicates, res.Rejections)
	for i, r := range res.Rejected[:min(most, len(res.Rejected))] {
		e.printf("  line %d: %s\n", r.Line, printable(r.Reason))
		if i == most-1 && res.Rejections > most {
			e.printf("  ... and %d more; --json lists the first thousand\n", res.Rejections-most)
		}
	}
	for _, r := range res.Ignored[:min(most, len(res.Ignored))] {
		e.printf("  ignored from line %d on: %s\n", r.Line, printable(r.Reason))
	}
}

type proxiesExportCmd struct {
	filterFlags
	Format    string `help:"Form of the list: url, hostport, userpass, csv, json or jsonl; url unless --json is given." enum:",url,hostport,userpass,csv,json,jsonl" default:""`
	Passwords bool   `help:"Write the passwords too: without them the list does not come in again as the same proxies. Needs the role operator."`
	Output    string `short:"o" help:"Write into a file that only its owner can read." placeholder:"FILE"`
}

// Run writes proxies out as a list.
func (c *proxiesExportCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	o := client.ExportOptions{ProxyFilter: c.filter(), Format: c.Format, Passwords: c.Passwords}
	if e.cli.JSON {
		o.Format = cmp.Or(o.Format, "json")
	}
	if c.Output == "" {
		return api.Export(ctx, o, e.out)
	}
	return intoFile(c.Output, func(to io.Writer) error { return api.Export(ctx, o, to) })
}

// intoFile writes a file whole or not at all; only its owner can read it. What is
// no file, such as a pipe, is written as it comes.
func intoFile(name string, write func(io.Writer) error) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0) //nolint:gosec // what the user names
		if err != nil {
			return &app.UsageError{Text: fmt.Sprintf("-o %s: %v", name, err)}
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".hostler-*") // made with mode 0600
	if err != nil {
		return &app.UsageError{Text: fmt.Sprintf("-o %s: %v", name, err)}
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it is of no use
	}
	return err
}
