// Package keeper is the service: it lends proxies, waits for them on behalf of
// callers, takes reports, recovers what was lost, and owns all loops and clocks.
// Stores below it are mechanics; faces above it (HTTP API, gateway) translate.
package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostler-proxy/hostler/internal/config"
	"github.com/hostler-proxy/hostler/internal/fetch"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/rules"
	"github.com/hostler-proxy/hostler/internal/store"
)

// DefaultPool is the pool of callers that name none.
const DefaultPool = "default"

// Options make a keeper.
type Options struct {
	Store store.Store
	Log   *slog.Logger
	// RecoverEvery is the longest time between two recovery passes; 5 s if 0.
	RecoverEvery time.Duration
	// Fetcher reads the sources of proxies.
	Fetcher fetch.Fetcher
}

// Keeper is the service. It is safe for concurrent use.
type Keeper struct {
	store store.Store
	log   *slog.Logger
	keys  store.Keys
	every time.Duration

	mu    sync.Mutex
	rooms map[string]*room // waiters, by pool
	known map[string]*knownPool
	pass  pool.Time // end of the last recovery pass
	stop  context.CancelFunc
	base  context.Context //nolint:containedctx // waiters' tries outlive their callers; Close ends them
	wg    sync.WaitGroup
	ready bool
	asks  atomic.Int64 // acquires ever

	turns   turns // of acquires that several pools may answer
	events  events
	sources sourceBook
	holds   holds
	seen    map[string]*seen // by pool; the loop's own
	marks   map[string]int   // of budgets, by pool and group; the loop's own

	pages   pages   // what good answers look like, by target
	parsers parsers // where data stopped being valid
}

// knownPool is what the keeper remembers of a pool between operations.
type knownPool struct {
	policy  pool.Policy
	share   *share
	carried map[string]carried // by target
	exits   *exitCache
	book    *rules.Book
}

// New makes a keeper over a store, and the default pool if there is none.
func New(ctx context.Context, o Options) (*Keeper, error) {
	keys, err := o.Store.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the store's keys: %w", err)
	}
	if o.RecoverEvery == 0 {
		o.RecoverEvery = 5 * time.Second
	}
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	k := &Keeper{
		store: o.Store, log: o.Log, keys: keys, every: o.RecoverEvery, rooms: map[string]*room{}, known: map[string]*knownPool{},
		marks: map[string]int{}, seen: map[string]*seen{}, base: base, stop: stop, pages: newPages(), parsers: newParsers(),
	}
	pools, err := o.Store.ListPools(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the pools: %w", err)
	}
	for _, p := range pools {
		k.known[p.Name] = &knownPool{policy: p.Record.Policy, book: k.bookOf(p.Name, &p.Record)}
	}
	if k.known[DefaultPool] == nil {
		if err := k.EnsurePool(ctx, DefaultPool); err != nil {
			return nil, fmt.Errorf("make the pool %q: %w", DefaultPool, err)
		}
	}
	if err := k.openSources(ctx, o.Fetcher); err != nil {
		return nil, fmt.Errorf("read the sources: %w", err)
	}
	return k, nil
}

// EnsurePool makes a pool with the default policy if there is none of that name.
func (k *Keeper) EnsurePool(ctx context.Context, name string) error {
	if _, ok := k.policy(name); ok {
		return nil
	}
	if err := config.CheckName(name); err != nil {
		return &InputError{Field: "pool", Text: err.Error()}
	}
	_, err := k.putPool(ctx, name, store.PolicyRecord{Policy: pool.DefaultPolicy()}, 0)
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

// putPool writes a pool's policy and remembers it.
func (k *Keeper) putPool(ctx context.Context, name string, r store.PolicyRecord, expect int64) (store.PoolInfo, error) {
	info, err := k.store.PutPool(ctx, store.PutPoolParams{Name: name, Record: r, Expect: expect})
	if err != nil {
		return info, err
	}
	k.mu.Lock()
	k.known[name] = &knownPool{policy: info.Record.Policy, book: k.bookOf(name, &r)}
	k.mu.Unlock()
	k.wake(name)
	return info, nil
}

// policy gives the policy in force of a pool.
func (k *Keeper) policy(name string) (pool.Policy, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok := k.known[name]
	if !ok {
		return pool.Policy{}, false
	}
	return p.policy, true
}

func (k *Keeper) poolNames() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var names []string
	for name := range k.known {
		names = append(names, name)
	}
	return names
}

// Store gives the store, for views that need no service.
func (k *Keeper) Store() store.Store { return k.store }

// Run recovers and sweeps until ctx ends, then lets all waiters go.
func (k *Keeper) Run(ctx context.Context) error {
	k.mu.Lock()
	k.ready = true
	k.mu.Unlock()
	k.startSources()
	sweep := time.NewTicker(30 * time.Second)
	defer sweep.Stop()
	watch := time.NewTicker(2 * time.Second)
	defer watch.Stop()
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			k.Close()
			return nil
		case <-next.C:
			next.Reset(k.recoverAll(ctx))
		case <-watch.C:
			k.watchVerdicts(ctx)
		case <-sweep.C:
			k.sweepAll(ctx)
		}
	}
}

// Close lets all waiters go and waits for what runs on their behalf.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.ready = false
	k.mu.Unlock()
	k.stop()
	k.wg.Wait()
}

// Stopping is closed when the keeper goes.
func (k *Keeper) Stopping() <-chan struct{} { return k.base.Done() }

// Ready says whether the keeper can serve: the store answers, and recovery runs.
func (k *Keeper) Ready(ctx context.Context) error {
	if _, err := k.store.ListPools(ctx); err != nil {
		return err
	}
	k.mu.Lock()
	ready, pass := k.ready, k.pass
	k.mu.Unlock()
	if !ready {
		return errors.New("the keeper is not running")
	}
	if pass != 0 && k.store.Now().Sub(pass) > 3*k.every+10*time.Second {
		return fmt.Errorf("the last recovery pass ended %s ago", k.store.Now().Sub(pass).Round(time.Second))
	}
	return nil
}

// jitter spreads retries: a random time below d.
func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}

// InputError is a request that cannot be served as it is.
type InputError struct {
	Field string
	Text  string
}

// Error gives the field and the fault.
func (e *InputError) Error() string { return e.Field + ": " + e.Text }
