// Package app builds the daemon: the only place that knows all parts. Tests and
// the demo build the same thing on port 0.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hostler-proxy/hostler/internal/config"
	"github.com/hostler-proxy/hostler/internal/fetch"
	"github.com/hostler-proxy/hostler/internal/httpapi"
	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
	"github.com/hostler-proxy/hostler/internal/store/embedded"
	"github.com/hostler-proxy/hostler/internal/webhook"
)

// Options wire the process; what it does is in the policy file.
type Options struct {
	// Listen is the API's address; port 0 takes a free one.
	Listen string
	// Store is the path of the embedded store.
	Store string
	// FullSync fsyncs every commit.
	FullSync bool
	// Config is the path of the policy file; "" = none.
	Config string
	// Proxies is the path of a list to import at start; "" = none. AllowSpecial
	// takes addresses of private networks from it.
	Proxies      string
	AllowSpecial bool
	// Hosts are further names under which the API may be called without a token.
	Hosts []string
	Log   *slog.Logger
	// RecoverEvery is the longest time between two recovery passes; 5 s if 0.
	RecoverEvery time.Duration
	// Fetcher reads the sources; its zero value uses the process's environment.
	Fetcher fetch.Fetcher
	// Webhook is where events are sent; no URL = nowhere.
	Webhook Webhook
	// Clock replaces the store's clock in tests.
	Clock func() time.Time
}

// Webhook says where events are sent, and which; see webhook.Options.
type Webhook struct {
	URL, Secret string
	Events      []string
	Cooldown    time.Duration
	// Backoff replaces the first wait between two tries in tests.
	Backoff time.Duration
}

// App is the daemon.
type App struct {
	o        Options
	store    store.Store
	keeper   *keeper.Keeper
	webhook  *webhook.Sender // nil = none
	listener net.Listener
	server   *http.Server
	stop     context.CancelFunc
	wg       sync.WaitGroup
	failed   chan error
	once     sync.Once
	active   activity
}

// New opens the store, applies policy and list, and takes the port. Nothing
// serves yet. Its errors say what to do.
func New(ctx context.Context, o Options) (*App, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	a := &App{o: o, failed: make(chan error, 2)}
	if err := a.build(ctx); err != nil {
		a.release()
		return nil, err
	}
	return a, nil
}

func (a *App) build(ctx context.Context) error {
	if strings.Contains(a.o.Store, "://") {
		return &UsageError{"--store " + redactURL(a.o.Store) + ": only a file is possible in this version, such as hostler.db"}
	}
	if err := a.makeWebhook(ctx); err != nil {
		return err
	}
	file, err := a.readConfig()
	if err != nil {
		return err
	}
	st, err := embedded.Open(ctx, embedded.Options{
		Path: a.o.Store, Full: a.o.FullSync, Judge: judge.Rule, Log: a.o.Log,
		Clock: func() pool.Time { return pool.At(a.o.Clock()) },
	})
	if err != nil {
		return err
	}
	a.store = st
	a.keeper, err = keeper.New(ctx, keeper.Options{
		Store: a.store, Log: a.o.Log, RecoverEvery: a.o.RecoverEvery, Fetcher: a.o.Fetcher,
	})
	if err != nil {
		return err
	}
	if file != nil {
		if err := a.apply(ctx, file); err != nil {
			return err
		}
	}
	if err := a.importList(ctx); err != nil {
		return err
	}
	if err := a.checkExposure(ctx); err != nil {
		return err
	}
	if a.listener, err = listen(ctx, a.o.Listen); err != nil {
		return err
	}
	api, err := httpapi.New(ctx, httpapi.Options{
		Keeper: a.keeper, Log: a.o.Log, Hosts: a.o.Hosts, Exposed: !loopback(a.o.Listen),
		Version: Version(), PolicyFile: a.readConfig,
	})
	if err != nil {
		return err
	}
	a.server = &http.Server{
		Handler:           a.active.count(api),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      3 * time.Minute, // an acquire may wait a minute
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(a.o.Log.Handler(), slog.LevelDebug),
	}
	return nil
}

// makeWebhook checks where events are to be sent.
func (a *App) makeWebhook(ctx context.Context) (err error) {
	w := &a.o.Webhook
	if w.URL == "" {
		return nil
	}
	if w.Secret == "" {
		a.o.Log.WarnContext(ctx, "the webhook is not signed: set HOSTLER_WEBHOOK_SECRET, so that its receiver can tell who sends")
	}
	a.webhook, err = webhook.New(webhook.Options{
		URL: w.URL, Secret: w.Secret, Events: w.Events, Cooldown: w.Cooldown, Backoff: w.Backoff, Log: a.o.Log, Now: a.o.Clock,
	})
	if err != nil {
		return &UsageError{"--webhook: " + err.Error()}
	}
	return nil
}

// redactURL keeps the scheme of a store URL: the rest may hold a password.
func redactURL(s string) string {
	scheme, _, _ := strings.Cut(s, "://")
	return scheme + "://..."
}

// UsageError is a mistake in how the daemon was started: exit code 2.
type UsageError struct{ Text string }

// Error gives the sentence.
func (e *UsageError) Error() string { return e.Text }

func (a *App) readConfig() (*config.File, error) {
	if a.o.Config == "" {
		return nil, nil //nolint:nilnil // no file is a possible answer
	}
	text, err := os.ReadFile(a.o.Config)
	if err != nil {
		return nil, &UsageError{fmt.Sprintf("read the policy file: %v; name it with --config", err)}
	}
	file, err := config.Parse(text)
	if err != nil {
		return nil, &UsageError{fmt.Sprintf("policy file %s: %v", a.o.Config, err)}
	}
	return file, nil
}

func (a *App) apply(ctx context.Context, file *config.File) error {
	applied, err := a.keeper.Apply(ctx, file, false)
	if err != nil {
		return &UsageError{fmt.Sprintf("policy file %s: %v", a.o.Config, err)}
	}
	a.recordPolicy(ctx, applied.Changes)
	for _, c := range applied.Changes {
		a.o.Log.InfoContext(ctx, "a setting changed", "path", c.Path, "from", c.From, "to", c.To)
	}
	for _, path := range applied.Kept {
		a.o.Log.WarnContext(ctx, "a setting was edited through the API and stands over the file", "path", path)
	}
	return nil
}

// Reload reads the policy file again and applies it, wholly or not at all.
func (a *App) Reload(ctx context.Context) error {
	file, err := a.readConfig()
	if err != nil {
		return err
	}
	if file == nil {
		return &UsageError{"there is no policy file to reload: start with --config FILE"}
	}
	return a.apply(ctx, file)
}

func (a *App) importList(ctx context.Context) error {
	if a.o.Proxies == "" {
		return nil
	}
	f, err := os.Open(a.o.Proxies)
	if err != nil {
		return &UsageError{fmt.Sprintf("read the proxy list: %v; name it with --proxies", err)}
	}
	defer f.Close() //nolint:errcheck // only read
	res, err := a.keeper.Import(ctx, keeper.ImportRequest{Body: f, AllowSpecial: a.o.AllowSpecial})
	if err != nil {
		return fmt.Errorf("import %s: %w", a.o.Proxies, err)
	}
	a.recordImport(ctx, res.Accepted+res.Updated)
	a.o.Log.InfoContext(ctx, "imported the proxy list", "file", a.o.Proxies, "accepted", res.Accepted, "updated", res.Updated,
		"duplicates", res.Duplicates, "rejected", res.Rejections)
	for _, r := range res.Rejected {
		a.o.Log.WarnContext(ctx, "a line of the proxy list was refused", "line", r.Line, "reason", r.Reason)
	}
	return nil
}

// checkExposure refuses to be an open door: without a token only loopback.
func (a *App) checkExposure(ctx context.Context) error {
	tokens, err := a.store.Tokens(ctx)
	if err != nil {
		return err
	}
	if len(tokens) > 0 || loopback(a.o.Listen) {
		return nil
	}
	return &UsageError{fmt.Sprintf("--listen %s is open to other machines and no token is set: make one first with "+
		"hostler token new NAME --role operator --store %s, or listen on 127.0.0.1", a.o.Listen, a.o.Store)}
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &UsageError{fmt.Sprintf("--listen %s: the port is in use, perhaps by another hostler; stop it or take another port", address)}
	case err != nil:
		return nil, &UsageError{fmt.Sprintf("--listen %s: %v", address, err)}
	}
	return l, nil
}

// Keeper gives the service, for the demo and for tests.
func (a *App) Keeper() *keeper.Keeper { return a.keeper }

// Addr is the address that the API listens on.
func (a *App) Addr() string { return a.listener.Addr().String() }

// URL is the API's base URL.
func (a *App) URL() string { return "http://" + a.Addr() }

// Start begins to serve and to recover.
func (a *App) Start(ctx context.Context) {
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.stop = stop
	a.wg.Go(func() {
		if err := a.keeper.Run(run); err != nil {
			a.failed <- err
		}
	})
	if a.webhook != nil {
		a.wg.Go(func() { a.webhook.Run(run, a.keeper) })
	}
	a.wg.Go(func() {
		if err := a.server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
			a.failed <- fmt.Errorf("serve the API: %w", err)
		}
	})
	a.o.Log.InfoContext(ctx, "hostler is ready", "api", a.URL(), "store", a.o.Store)
}

// Failed gives the error of a part that ended by itself.
func (a *App) Failed() <-chan error { return a.failed }

// Stop lets waiters go, ends what is under way within the context's time, and
// closes the store. It is safe to call twice.
func (a *App) Stop(ctx context.Context) error {
	var err error
	a.once.Do(func() {
		if a.stop != nil {
			a.stop() // waiters get their 503 before the server waits for them
		}
		if a.server != nil {
			if err = a.server.Shutdown(ctx); err != nil {
				_ = a.server.Close()
				err = fmt.Errorf("%d requests were cut off: %w", a.active.now.Load(), err)
			}
		}
		a.wg.Wait()
		a.release()
	})
	return err
}

func (a *App) release() {
	if a.keeper != nil {
		a.keeper.Close()
	}
	if a.listener != nil {
		_ = a.listener.Close()
	}
	if a.store != nil {
		_ = a.store.Close()
	}
}

// StopTimeout is how long a stop may take: below what service managers grant.
const StopTimeout = 8 * time.Second

// Run serves until ctx ends or a part fails; hup reloads the policy file.
func (a *App) Run(ctx context.Context, hup <-chan os.Signal) error {
	a.Start(ctx)
	var failed error
	for done := false; !done; {
		select {
		case <-ctx.Done():
			done = true
		case failed = <-a.failed:
			done = true
		case <-hup:
			if err := a.Reload(ctx); err != nil {
				a.o.Log.ErrorContext(ctx, "the reload failed; the old policy stays", "error", err)
			} else {
				a.o.Log.InfoContext(ctx, "reloaded the policy file", "file", a.o.Config)
			}
		}
	}
	a.o.Log.InfoContext(ctx, "stopping")
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopTimeout)
	defer cancel()
	return errors.Join(failed, a.Stop(last))
}
