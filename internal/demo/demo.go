// Package demo shows the product at work on one machine: the daemon with an
// embedded store, a lab of proxies and sites whose truth is known, and workers
// that are processes of their own, one of which is killed in mid-run.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
	"github.com/hostler-proxy/hostler/internal/lab"
)

// Options make a run.
type Options struct {
	Duration time.Duration
	Workers  int
	Serve    bool   // keep the daemon up afterwards, until ctx ends
	Listen   string // the API's address
	Seed     uint64
	// Executable is this program: workers are started as EXECUTABLE demo-worker.
	Executable string
	Progress   io.Writer // the table; nil = none
	Terminal   bool      // Progress can be redrawn
	Log        *slog.Logger
}

// run is one run of the demo.
type run struct {
	o       Options
	dir     string
	lab     *lab.Lab
	app     *app.App
	api     *client.Client
	feeder  *feeder
	workers []*process
	watch   *watch
	start   time.Time
	sum     Summary
}

// process is a worker.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
}

// Run runs the demo. The summary's Errors say which conditions were not met.
func Run(ctx context.Context, o Options) (*Summary, error) {
	dir, err := os.MkdirTemp("", "hostler-demo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	r := &run{o: o, dir: dir}
	defer r.close()
	if err := r.setUp(ctx); err != nil {
		return nil, err
	}
	if err := r.crawl(ctx); err != nil {
		return nil, err
	}
	if err := r.sumUp(ctx); err != nil {
		return nil, err
	}
	r.check()
	if o.Serve && ctx.Err() == nil {
		r.say("still serving at %s; Ctrl-C ends it", r.app.URL())
		<-ctx.Done()
	}
	return &r.sum, nil
}

func (r *run) say(format string, args ...any) {
	if r.o.Progress != nil {
		_, _ = fmt.Fprintf(r.o.Progress, format+"\n", args...)
	}
}

func (r *run) setUp(ctx context.Context) error {
	var err error
	if r.lab, err = lab.Start(ctx, lab.Demo(r.o.Seed, r.o.Duration)); err != nil {
		return err
	}
	policy := filepath.Join(r.dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(policyFile), 0o600); err != nil {
		return err
	}
	r.app, err = app.New(ctx, app.Options{
		Listen: r.o.Listen, Store: filepath.Join(r.dir, "hostler.db"), Config: policy, Log: r.o.Log,
	})
	if err != nil {
		return err
	}
	r.app.Start(ctx)
	if r.api, err = client.New(r.app.URL()); err != nil {
		return err
	}
	if err := r.importProxies(ctx); err != nil {
		return err
	}
	r.watch = newWatch(r)
	r.say("hostler demo: %d proxies, %d sites, %d workers, %s; API at %s", len(r.lab.Proxies()), len(r.lab.Targets()), r.o.Workers,
		r.o.Duration, r.app.URL())
	r.say("times are scaled for the show: leases 3 s instead of 30 s, cooldowns 2/4/8/16 s instead of 30 s to 10 min")
	return r.startWorkers(ctx)
}

// importProxies brings the lab's list in as a user would; the one that expires says when.
func (r *run) importProxies(ctx context.Context) error {
	var list strings.Builder
	for _, p := range r.lab.Proxies() {
		if p.ExpiresAt.IsZero() {
			fmt.Fprintln(&list, p.URL().String())
			continue
		}
		host, port, _ := net.SplitHostPort(p.Addr)
		fmt.Fprintf(&list, `{"scheme":"http","host":%q,"port":%s,"username":%q,"password":%q,"expires_at":%d}`+"\n",
			host, port, p.Username, p.Password, p.ExpiresAt.Unix())
	}
	res, err := r.api.Import(ctx, strings.NewReader(list.String()), client.ImportOptions{AllowSpecial: true})
	if err != nil {
		return fmt.Errorf("import the lab's proxies: %w", err)
	}
	if res.Accepted != len(r.lab.Proxies()) {
		return fmt.Errorf("import the lab's proxies: %d of %d were accepted: %v", res.Accepted, len(r.lab.Proxies()), res.Rejected)
	}
	return nil
}

// perWorker is how many requests a worker has under way.
const perWorker = 6

func (r *run) startWorkers(ctx context.Context) error {
	var err error
	if r.feeder, err = newFeeder(filepath.Join(r.dir, "requests")); err != nil {
		return err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: r.feeder, ReadHeaderTimeout: 5 * time.Second}
	go server.Serve(ln) //nolint:errcheck // ends with the process's listener
	context.AfterFunc(ctx, func() { _ = server.Close() })
	ca := filepath.Join(r.dir, "lab.pem")
	if err := os.WriteFile(ca, r.lab.CertPEM(), 0o600); err != nil {
		return err
	}
	for i := range r.o.Workers {
		name := fmt.Sprintf("worker-%d", i+1)
		cmd := exec.Command(r.o.Executable, "demo-worker", "--server", r.app.URL(), "--feeder", "http://"+ln.Addr().String(), //nolint:noctx // our own program; stopped by close
			"--name", name, "--concurrency", fmt.Sprint(perWorker), "--ca", ca)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("start a worker: %w", err)
		}
		p := &process{name: name, cmd: cmd, done: make(chan struct{})}
		r.workers = append(r.workers, p)
		go func() {
			_ = cmd.Wait()
			close(p.done)
		}()
	}
	return nil
}

// rate is how many requests are issued a second.
const rate = 25

// crawl issues requests over the run, kills a worker in the middle, and lets the
// rest be finished.
func (r *run) crawl(ctx context.Context) error {
	r.start = time.Now()
	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { r.watch.run(watching) })
	wg.Go(func() { r.killOne(watching) })
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	targets := r.lab.Targets()
	for n := 0; time.Since(r.start) < r.o.Duration; n++ {
		t := targets[n%len(targets)]
		r.feeder.add(t.Name, t.URL, time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return r.drain(ctx)
}

// drainLimit is how long the rest may take after the last request was issued.
const drainLimit = 15 * time.Second

func (r *run) drain(ctx context.Context) error {
	limit := time.Now().Add(drainLimit)
	for r.feeder.pending() > 0 && time.Now().Before(limit) {
		r.feeder.expire(time.Now())
		pause(ctx, 100*time.Millisecond)
	}
	r.feeder.close()
	for _, p := range r.workers {
		select {
		case <-p.done:
		case <-time.After(10 * time.Second):
			r.sum.Errors = append(r.sum.Errors, p.name+" did not go home")
			_ = p.cmd.Process.Kill()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	// leases of the killed worker may still run
	for limit = time.Now().Add(ttl + 7*time.Second); time.Now().Before(limit); {
		leases, err := r.api.Leases(ctx, "", 100)
		if err == nil && len(leases) == 0 {
			return nil
		}
		pause(ctx, 100*time.Millisecond)
	}
	return ctx.Err()
}

// killOne kills a worker with -9 while it holds leases, and measures how long
// they take to come back.
func (r *run) killOne(ctx context.Context) {
	if len(r.workers) < 2 {
		return
	}
	pause(ctx, r.o.Duration*45/100)
	victim := r.workers[1]
	r.sum.Recovered.Worker = victim.name
	var held map[string]bool
	for len(held) == 0 && ctx.Err() == nil {
		held = r.leasesOf(ctx, victim.name)
	}
	_ = victim.cmd.Process.Kill()
	killed := time.Now()
	<-victim.done
	held = r.leasesOf(ctx, victim.name) // what it holds now, nobody will report
	r.sum.Recovered.Leases = len(held)
	r.say("%s was killed with -9 while it held %d leases", victim.name, len(held))
	r.feeder.drop(victim.name)
	for len(r.leasesOf(ctx, victim.name)) > 0 && ctx.Err() == nil {
		pause(ctx, 20*time.Millisecond)
	}
	r.sum.Recovered.AfterMS = time.Since(killed).Milliseconds()
	r.say("its leases were back after %d ms", r.sum.Recovered.AfterMS)
}

func (r *run) leasesOf(ctx context.Context, worker string) map[string]bool {
	held := map[string]bool{}
	leases, err := r.api.Leases(ctx, "", 1000)
	if err != nil {
		return held
	}
	for _, l := range leases {
		if l.Worker == worker {
			held[l.Lease] = true
		}
	}
	return held
}

func (r *run) close() {
	for _, p := range r.workers {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	if r.app != nil {
		ctx, cancel := context.WithTimeout(context.Background(), app.StopTimeout)
		defer cancel()
		if err := r.app.Stop(ctx); err != nil && !errors.Is(err, context.Canceled) {
			r.o.Log.Warn("the daemon did not stop cleanly", "error", err)
		}
	}
	if r.lab != nil {
		_ = r.lab.Close()
	}
}
