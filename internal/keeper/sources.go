package keeper

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hostler-proxy/hostler/internal/config"
	"github.com/hostler-proxy/hostler/internal/fetch"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/source"
	"github.com/hostler-proxy/hostler/internal/store"
)

// ErrNoHeldSet is that nothing of a source waits for a word.
var ErrNoHeldSet = errors.New("the source holds no set back")

// sourceBook has the runner of every source.
type sourceBook struct {
	applying sync.Mutex // one change of the settings at a time

	mu      sync.Mutex
	fetcher fetch.Fetcher
	runners map[string]*runner
	running bool
}

// runner runs one source: one fetch at a time, by the clock or by hand.
type runner struct {
	k    *Keeper
	name string
	turn chan struct{} // holds one token; who has it may fetch
	kick chan struct{} // look at the clock anew
	stop context.CancelFunc
	life context.Context //nolint:containedctx // ends with the source or the keeper

	mu      sync.Mutex
	record  store.Source
	source  *source.Source     // nil = its settings cannot be read, see fault
	fault   string             // why
	abandon context.CancelFunc // ends the fetch under way
	hurry   int                // changes of the settings that want the turn
	stamp   string             // of a file, when it was last read
}

// openSources reads what the store keeps. Nothing runs yet.
func (k *Keeper) openSources(ctx context.Context, f fetch.Fetcher) error {
	k.book.fetcher, k.book.runners = f, map[string]*runner{}
	list, err := k.store.Sources(ctx)
	for _, record := range list {
		k.book.runners[record.Name] = k.newRunner(record)
	}
	return err
}

func (k *Keeper) newRunner(record store.Source) *runner {
	r := &runner{k: k, name: record.Name, turn: make(chan struct{}, 1), kick: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	r.life, r.stop = context.WithCancel(k.base)
	r.set(record)
	return r
}

// set puts settings in force.
func (r *runner) set(record store.Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record, r.fault, r.stamp = record, "", ""
	s, err := source.Parse(record.Name, record.Settings)
	if err != nil { // another version of ours wrote them
		r.source, r.fault = nil, "its settings cannot be read by this version: "+err.Error()
		return
	}
	r.source = s
}

// startSources lets all sources run.
func (k *Keeper) startSources() {
	k.book.mu.Lock()
	defer k.book.mu.Unlock()
	k.book.running = true
	for _, r := range k.book.runners {
		k.wg.Go(r.loop)
	}
}

// runner finds a source.
func (k *Keeper) runner(name string) (*runner, error) {
	k.book.mu.Lock()
	defer k.book.mu.Unlock()
	r := k.book.runners[name]
	if r == nil {
		return nil, store.ErrNoSource
	}
	return r, nil
}

// plannedSource is what applying a file would do to one source.
type plannedSource struct {
	name     string
	settings map[string]string // nil = it goes
	changes  []config.Change
}

// planSources compares a file with what runs. A file that does not speak of
// sources changes none; one that does names them all.
func (k *Keeper) planSources(file *config.File) ([]plannedSource, error) {
	if file.Sources == nil {
		return nil, nil
	}
	known := map[string]map[string]string{}
	k.book.mu.Lock()
	for name, r := range k.book.runners {
		known[name] = r.settings()
	}
	env := k.book.fetcher.Environment()
	k.book.mu.Unlock()
	var plans []plannedSource
	for _, name := range slices.Sorted(maps.Keys(file.Sources)) {
		settings := map[string]string(file.Sources[name])
		s, err := source.Parse(name, settings)
		if err == nil {
			err = s.Ready(env)
		}
		if err != nil {
			return nil, sourceFault(name, err)
		}
		if old, ok := known[name]; !ok || !maps.Equal(old, settings) {
			plans = append(plans, plannedSource{name, settings, sourceChanges(name, old, settings)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if _, ok := file.Sources[name]; !ok {
			plans = append(plans, plannedSource{name, nil, sourceChanges(name, known[name], nil)})
		}
	}
	return plans, nil
}

func sourceFault(name string, err error) error {
	if field, ok := errors.AsType[*source.FieldError](err); ok {
		return &config.Error{Path: "sources." + name + "." + field.Path, Text: field.Text}
	}
	return &config.Error{Path: "sources." + name, Text: err.Error()}
}

// sourceChanges lists what differs, as it can be shown.
func sourceChanges(name string, old, settings map[string]string) []config.Change {
	before, after := source.Shown(old), source.Shown(settings)
	paths := maps.Clone(settings)
	if paths == nil {
		paths = map[string]string{}
	}
	maps.Copy(paths, old)
	var list []config.Change
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if old[path] == settings[path] {
			continue
		}
		c := config.Change{Path: "sources." + name + "." + path, From: before[path], To: after[path]}
		if c.From == c.To { // the difference is in what is not shown
			c.To += " (changed)"
		}
		list = append(list, c)
	}
	return list
}

// applySource puts one source in force. What it brought in stays in its pool;
// what it waits for is given up, and it is fetched anew.
func (k *Keeper) applySource(ctx context.Context, p plannedSource) error {
	k.book.mu.Lock()
	r := k.book.runners[p.name]
	k.book.mu.Unlock()
	if r == nil {
		r = k.newRunner(store.Source{Name: p.name})
	}
	if err := r.takeTurn(ctx, true); err != nil {
		return err
	}
	defer r.giveTurn()
	if p.settings == nil {
		if err := k.store.DeleteSource(ctx, p.name); err != nil && !errors.Is(err, store.ErrNoSource) {
			return err
		}
		r.stop()
		k.book.mu.Lock()
		delete(k.book.runners, p.name)
		k.book.mu.Unlock()
		return k.stopVouching(ctx, r)
	}
	old := r.snapshot()
	now := k.store.Now()
	state := store.SourceState{Since: now, Attempt: old.State.Attempt, Success: old.State.Success, Next: now, Listed: old.State.Listed, Rejected: old.State.Rejected}
	version, err := k.store.PutSource(ctx, store.PutSourceParams{Name: p.name, Settings: p.settings, State: state, Expect: old.Version})
	if err != nil {
		return err
	}
	if old.Settings != nil && poolOf(old.Settings) != poolOf(p.settings) {
		if err := k.stopVouching(ctx, r); err != nil {
			return err
		}
	}
	r.set(store.Source{Name: p.name, Version: version, Settings: p.settings, State: state})
	k.book.mu.Lock()
	defer k.book.mu.Unlock()
	if k.book.runners[p.name] == nil {
		k.book.runners[p.name] = r
		if k.book.running {
			k.wg.Go(r.loop)
		}
	}
	r.wake()
	return nil
}

func poolOf(settings map[string]string) string {
	if name := settings["pool"]; name != "" {
		return name
	}
	return DefaultPool
}

// stopVouching takes the name of a source that leaves a pool off the proxies that
// others vouch for too. Those that are its alone stay: nothing is lost by an edit.
func (k *Keeper) stopVouching(ctx context.Context, r *runner) error {
	from := poolOf(r.settings())
	own, err := k.store.OfSource(ctx, from, r.name)
	if errors.Is(err, store.ErrNoPool) {
		return nil
	}
	var shared []proxy.ID
	for _, p := range own {
		if p.Spec.Source != r.name {
			shared = append(shared, p.ID)
		}
	}
	for batch := range slices.Chunk(shared, importBatch) {
		if err == nil {
			_, err = k.store.Leave(ctx, store.LeaveParams{Pool: from, Source: r.name, IDs: batch})
		}
	}
	return err
}

func (r *runner) settings() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record.Settings
}

func (r *runner) snapshot() store.Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record
}

func (r *runner) wake() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// takeTurn waits until no fetch of the source is under way; with hurry it ends
// the one that is, and none begins before it.
func (r *runner) takeTurn(ctx context.Context, hurry bool) error {
	if hurry {
		r.mu.Lock()
		r.hurry++
		if r.abandon != nil {
			r.abandon()
		}
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			r.hurry--
			r.mu.Unlock()
		}()
	}
	select {
	case <-r.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-r.life.Done():
		return r.ended()
	}
}

func (r *runner) giveTurn() { r.turn <- struct{}{} }

// ended says why the runner does nothing any more.
func (r *runner) ended() error {
	if r.k.base.Err() != nil {
		return ErrStopping
	}
	return store.ErrNoSource
}

// watchEvery is how often a file is looked at.
const watchEvery = 2 * time.Second

// loop fetches when the time has come, or the file changed.
func (r *runner) loop() {
	for {
		timer := time.NewTimer(r.untilNext())
		select {
		case <-r.life.Done():
			timer.Stop()
			return
		case <-r.kick:
			timer.Stop()
		case <-timer.C:
		}
		if r.due() {
			_, _ = r.refresh(r.life, refreshMode{}) // its outcome is kept and logged
		}
	}
}

func (r *runner) untilNext() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.source == nil {
		return time.Hour
	}
	wait := max(r.record.State.Next.Sub(r.k.store.Now()), 0)
	if r.source.Kind == source.KindFile {
		return min(wait, watchEvery)
	}
	return wait
}

func (r *runner) due() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.source == nil:
		return false
	case r.k.store.Now() >= r.record.State.Next:
		return true
	}
	return r.source.Kind == source.KindFile && fetch.Stamp(r.source.File) != r.stamp
}
