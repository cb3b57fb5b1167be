package keeper

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/source"
	"github.com/hostler-proxy/hostler/internal/store"
)

// SourceView is a source as people look at it.
type SourceView struct {
	Name, Kind, Pool string
	// From is the file, the URL without userinfo and query, or the preset.
	From     string
	Interval time.Duration
	// Health is ok, held, failing or never (fetched).
	Health string
	// Stale says that there was no good fetch for three intervals.
	Stale   bool
	Proxies int // that it vouches for
	State   store.SourceState
}

// Sources shows all sources, by name.
func (k *Keeper) Sources(ctx context.Context) ([]SourceView, error) {
	k.sources.mu.Lock()
	runners := maps.Clone(k.sources.runners)
	k.sources.mu.Unlock()
	var list []SourceView
	for _, name := range slices.Sorted(maps.Keys(runners)) {
		v := runners[name].view(k.store.Now())
		n, err := k.store.Patch(ctx, store.PatchParams{Pool: v.Pool, Filter: pool.Filter{Source: name}, DryRun: true})
		if err != nil && !errors.Is(err, store.ErrNoPool) {
			return nil, err
		}
		v.Proxies = n
		list = append(list, v)
	}
	return list, nil
}

// SourceSettings gives the settings of all sources as they can be shown.
func (k *Keeper) SourceSettings() map[string]map[string]string {
	k.sources.mu.Lock()
	defer k.sources.mu.Unlock()
	out := map[string]map[string]string{}
	for name, r := range k.sources.runners {
		out[name] = source.Shown(r.settings())
	}
	return out
}

func (r *runner) view(now pool.Time) SourceView {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := r.record.State
	v := SourceView{Name: r.name, Pool: DefaultPool, Health: health(&st), State: st}
	if r.source == nil {
		v.Health, v.State.Reason = "failing", r.fault
		return v
	}
	v.Kind, v.Pool, v.From, v.Interval = string(r.source.Kind), r.source.Pool, r.source.Where(), r.source.Interval
	v.Stale = source.Stale(v.Interval, now.Sub(max(st.Since, st.Success)))
	return v
}

func health(st *store.SourceState) string {
	switch {
	case st.Fails > 0:
		return "failing"
	case st.Held != nil:
		return "held"
	case st.Success == 0:
		return "never"
	}
	return "ok"
}
