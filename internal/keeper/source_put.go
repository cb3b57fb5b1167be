package keeper

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/source"
	"github.com/hostler-proxy/hostler/internal/store"
)

// own lists what the source has in its pool.
func (t *refresh) own(ctx context.Context) ([]pool.Listed, error) {
	list, err := t.r.k.store.OfSource(ctx, t.s.Pool, t.r.name)
	if errors.Is(err, store.ErrNoPool) {
		return nil, nil
	}
	return list, err
}

// items makes imports of entries, each proxy once, and a digest of the set.
func (t *refresh) items(entries []proxy.Entry) (items []pool.Import, digest string) {
	req := ImportRequest{
		Pool: t.s.Pool, Exit: t.s.Exit, Region: t.s.Region, Group: t.s.Group, Source: t.r.name, Labels: t.s.Labels, Cap: t.s.Cap, TTL: t.s.TTL,
	}
	seen := make(map[proxy.ID]bool, len(entries))
	ids := make([]proxy.ID, 0, len(entries))
	for _, e := range entries {
		item := t.r.k.spec(&req, e)
		if seen[item.ID] {
			continue
		}
		seen[item.ID] = true
		if t.s.Kind == source.KindPreset && t.s.Exit == "" {
			item.Spec.Exit = source.ExitOf(item.Spec.Proxy)
		}
		item.Listed = true
		items, ids = append(items, item), append(ids, item.ID)
	}
	slices.SortFunc(ids, func(a, b proxy.ID) int { return slices.Compare(a[:], b[:]) })
	sum := sha256.New()
	for _, id := range ids {
		sum.Write(id[:])
	}
	return items, hex.EncodeToString(sum.Sum(nil))
}

// put makes the pool hold what the list has: new ones come in before old ones
// go, so that a broken-off turn leaves too many proxies rather than too few.
func (t *refresh) put(ctx context.Context, items []pool.Import, own []pool.Listed, dry bool) error {
	k := t.r.k
	missing := succeed(items, own)
	renewed := map[proxy.ID]bool{}
	if !dry {
		if err := k.EnsurePool(ctx, t.s.Pool); err != nil {
			return err
		}
		defer k.wake(t.s.Pool)
	}
	for batch := range slices.Chunk(items, importBatch) {
		done, err := k.store.Import(ctx, store.ImportParams{Pool: t.s.Pool, Proxies: batch, DryRun: dry})
		if errors.Is(err, store.ErrNoPool) {
			t.out.Changes.Added += len(batch)
			continue
		}
		if err != nil {
			return err
		}
		if err := t.out.Changes.count(done); err != nil {
			return err
		}
		for i, d := range done {
			if d == pool.ImportedRenewed {
				renewed[batch[i].Succeeds] = true
			}
		}
	}
	missing = slices.DeleteFunc(missing, func(id proxy.ID) bool { return renewed[id] }) // its record goes on
	for batch := range slices.Chunk(missing, importBatch) {
		res, err := k.store.Leave(ctx, store.LeaveParams{Pool: t.s.Pool, Source: t.r.name, IDs: batch, DryRun: dry})
		if err != nil {
			return err
		}
		t.out.Changes.Removed += res.Gone
		t.out.Changes.Left += res.Kept
	}
	return nil
}

func (c *SourceChanges) count(done []pool.Imported) error {
	for _, d := range done {
		switch d {
		case pool.ImportedNew:
			c.Added++
		case pool.ImportedUpdated:
			c.Updated++
		case pool.ImportedRenewed:
			c.Renewed++
		case pool.ImportedDuplicate:
			c.Unchanged++
		case pool.ImportedFull:
			return &InputError{"source", "the pool is full: it cannot hold more proxies"}
		}
	}
	return nil
}

// succeed finds what the list no longer has, and lets a new proxy take over the
// record of one that differs in nothing but the password. It does so only where
// one left and one came: of several, nobody knows which is which.
func succeed(items []pool.Import, own []pool.Listed) (missing []proxy.ID) {
	listed := make(map[proxy.ID]bool, len(items))
	for i := range items {
		listed[items[i].ID] = true
	}
	known := make(map[proxy.ID]bool, len(own))
	left := map[proxy.Proxy][]proxy.ID{}
	for _, p := range own {
		known[p.ID] = true
		if !listed[p.ID] {
			missing = append(missing, p.ID)
			left[account(p.Spec.Proxy)] = append(left[account(p.Spec.Proxy)], p.ID)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	came := map[proxy.Proxy][]int{}
	for i := range items {
		if key := account(items[i].Spec.Proxy); !known[items[i].ID] && len(left[key]) == 1 {
			came[key] = append(came[key], i)
		}
	}
	for key, at := range came {
		if len(at) == 1 {
			items[at[0]].Succeeds = left[key][0]
		}
	}
	return missing
}

// account is a proxy without its password.
func account(p proxy.Proxy) proxy.Proxy {
	p.Password = ""
	return p
}
