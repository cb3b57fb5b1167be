package keeper

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/hostler-proxy/hostler/internal/config"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/source"
	"github.com/hostler-proxy/hostler/internal/store"
)

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
	k.sources.mu.Lock()
	for name, r := range k.sources.runners {
		known[name] = r.settings()
	}
	env := k.sources.fetcher.Environment()
	k.sources.mu.Unlock()
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
	k.sources.mu.Lock()
	r := k.sources.runners[p.name]
	k.sources.mu.Unlock()
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
		k.sources.mu.Lock()
		delete(k.sources.runners, p.name)
		k.sources.mu.Unlock()
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
	k.sources.mu.Lock()
	defer k.sources.mu.Unlock()
	if k.sources.runners[p.name] == nil {
		k.sources.runners[p.name] = r
		if k.sources.running {
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
