package keeper

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hostler-proxy/hostler/internal/fetch"
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
	k.sources.fetcher, k.sources.runners = f, map[string]*runner{}
	list, err := k.store.Sources(ctx)
	for _, record := range list {
		k.sources.runners[record.Name] = k.newRunner(record)
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
	k.sources.mu.Lock()
	defer k.sources.mu.Unlock()
	k.sources.running = true
	for _, r := range k.sources.runners {
		k.wg.Go(r.loop)
	}
}

// runner finds a source.
func (k *Keeper) runner(name string) (*runner, error) {
	k.sources.mu.Lock()
	defer k.sources.mu.Unlock()
	r := k.sources.runners[name]
	if r == nil {
		return nil, store.ErrNoSource
	}
	return r, nil
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
	wait := r.left()
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
	case r.left() == 0:
		return true
	}
	return r.source.Kind == source.KindFile && fetch.Stamp(r.source.File) != r.stamp
}

// left is the time until the next fetch by the clock.
func (r *runner) left() time.Duration {
	return source.Left(r.source.Interval, r.record.State.Next.Sub(r.k.store.Now()))
}

// Events of sources.
const (
	eventSourceFailing = "source_failing"
	eventSourceHeld    = "source_held"
	eventSourceOK      = "source_ok"
)
