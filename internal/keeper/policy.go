package keeper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hostler-proxy/hostler/internal/config"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// Applied says what applying a policy file changed.
type Applied struct {
	// Version is the newest version among the policies that were written or looked at.
	Version int64
	// Changes are by pool or source and setting: pools.NAME.setting.
	Changes []config.Change
	// Kept are settings that the API had edited: they stand over the file's.
	Kept []string
}

// Apply puts a policy file in force, wholly or not at all: every pool's policy
// and every source is checked before the first is written. With dry it only tells.
func (k *Keeper) Apply(ctx context.Context, file *config.File, dry bool) (Applied, error) {
	var out Applied
	plans, err := k.plan(ctx, file)
	if err != nil {
		return out, err
	}
	k.sources.applying.Lock()
	defer k.sources.applying.Unlock()
	sources, err := k.planSources(file)
	if err != nil {
		return out, err
	}
	for _, p := range plans {
		for _, c := range p.changes {
			c.Path = "pools." + p.name + "." + c.Path
			out.Changes = append(out.Changes, c)
		}
		for _, path := range p.kept {
			out.Kept = append(out.Kept, "pools."+p.name+"."+path)
		}
		out.Version = max(out.Version, p.expect)
		if dry || !p.write {
			continue
		}
		info, err := k.putPool(ctx, p.name, p.record, p.expect)
		if err != nil {
			return out, fmt.Errorf("pool %q: %w", p.name, err)
		}
		out.Version = max(out.Version, info.Record.Policy.Version)
	}
	for _, p := range sources {
		out.Changes = append(out.Changes, p.changes...)
		if dry {
			continue
		}
		if err := k.applySource(ctx, p); err != nil {
			return out, fmt.Errorf("source %q: %w", p.name, err)
		}
	}
	return out, nil
}

// plannedPool is what applying would do to one pool.
type plannedPool struct {
	name    string
	record  store.PolicyRecord
	expect  int64
	changes []config.Change
	kept    []string
	write   bool
}

func (k *Keeper) plan(ctx context.Context, file *config.File) ([]plannedPool, error) {
	var plans []plannedPool
	for _, name := range slices.Sorted(maps.Keys(file.Pools)) {
		settings := file.Pools[name]
		p := plannedPool{name: name}
		before := pool.DefaultPolicy()
		info, err := k.store.Pool(ctx, name)
		switch {
		case err == nil:
			before, p.expect, p.record = info.Record.Policy, info.Record.Policy.Version, info.Record
		case !errors.Is(err, store.ErrNoPool):
			return nil, err
		}
		was := config.All(&before, p.record.File, p.record.Overrides)
		p.write = err != nil || !maps.Equal(p.record.File, map[string]string(settings))
		p.record.File = settings
		policy, err := config.Apply(settings, p.record.Overrides)
		if err != nil {
			return nil, fmt.Errorf("pool %q: %w", name, err)
		}
		p.record.Policy = policy
		p.changes = config.DiffSettings(was, config.All(&policy, settings, p.record.Overrides))
		for _, path := range slices.Sorted(maps.Keys(p.record.Overrides)) {
			if said, ok := settings[path]; ok && said != p.record.Overrides[path] {
				p.kept = append(p.kept, path)
			}
		}
		plans = append(plans, p)
	}
	return plans, nil
}

// Override edits settings of a pool over its file; an empty value takes an edit
// back. The pool is made if there is none. It tells what changed.
func (k *Keeper) Override(ctx context.Context, name string, edits config.Settings) (Applied, error) {
	var out Applied
	if err := config.CheckName(name); err != nil {
		return out, &InputError{"pool", err.Error()}
	}
	before := pool.DefaultPolicy()
	record := store.PolicyRecord{}
	expect := int64(0)
	if info, err := k.store.Pool(ctx, name); err == nil {
		record, before, expect = info.Record, info.Record.Policy, info.Record.Policy.Version
	} else if !errors.Is(err, store.ErrNoPool) {
		return out, err
	}
	overrides := maps.Clone(record.Overrides)
	if overrides == nil {
		overrides = map[string]string{}
	}
	for path, value := range edits {
		if value == "" {
			delete(overrides, path)
			continue
		}
		if err := config.Check(path, value); err != nil {
			return out, &InputError{path, strings.ReplaceAll(err.Error(), "\n", "; ")}
		}
		overrides[path] = value
	}
	policy, err := config.Apply(record.File, overrides)
	if err != nil {
		if fault, ok := errors.AsType[*config.Error](err); ok {
			return out, &InputError{fault.Path, fault.Text}
		}
		return out, err
	}
	was := config.All(&before, record.File, record.Overrides)
	record.Overrides, record.Policy = overrides, policy
	info, err := k.putPool(ctx, name, record, expect)
	if err != nil {
		return out, err
	}
	out.Version = info.Record.Policy.Version
	for _, c := range config.DiffSettings(was, config.All(&policy, record.File, overrides)) {
		c.Path = "pools." + name + "." + c.Path
		out.Changes = append(out.Changes, c)
	}
	return out, nil
}

// DeletePool removes an empty pool.
func (k *Keeper) DeletePool(ctx context.Context, name string) error {
	if name == DefaultPool {
		return &InputError{"pool", "the default pool cannot be deleted"}
	}
	if err := k.store.DeletePool(ctx, name); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, name)
	return nil
}

// Wake tells the waiters of a pool that an operator changed something.
func (k *Keeper) Wake(poolName string) { k.wake(poolName) }

// CheckFilterText refuses filter values that nothing can match.
func CheckFilterText(field, value string) error {
	if strings.ContainsRune(value, 0) {
		return &InputError{field, "holds a zero byte"}
	}
	return checkText(field, value, 200)
}

// ApplyText parses a policy file and puts it in force.
func (k *Keeper) ApplyText(ctx context.Context, text []byte, dry bool) (Applied, error) {
	file, err := config.Parse(text)
	if err != nil {
		return Applied{}, err
	}
	return k.Apply(ctx, file, dry)
}
