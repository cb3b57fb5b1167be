package keeper

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/hostler-proxy/hostler/internal/fetch"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/source"
	"github.com/hostler-proxy/hostler/internal/store"
)

// Refreshed says what a refresh of a source did, or would do.
type Refreshed struct {
	Name    string
	DryRun  bool
	Verdict source.Verdict
	Reason  string // why the set in force stays; "" = it does not, or is the same
	Changes SourceChanges
	// Listed is how many different proxies the list has, Duplicates how many
	// lines name one again, Rejects how many are none; Rejected are the first of them.
	Listed, Duplicates, Rejects int
	Rejected                    []proxy.Rejection
	Held                        *store.HeldSet
}

// SourceChanges counts what a list changes in its pool. For a set that is held
// they are what accepting it would do.
type SourceChanges struct {
	Added, Updated, Renewed, Unchanged int
	// Removed proxies go, with their last lease at the latest; Left stay, since
	// others vouch for them too.
	Removed, Left int
}

// RefreshSource fetches a source now, whatever the clock says, and without regard
// to what it knows of the set in force; with dry it only tells.
func (k *Keeper) RefreshSource(ctx context.Context, name string, dry bool) (Refreshed, error) {
	r, err := k.runner(name)
	if err != nil {
		return Refreshed{}, err
	}
	return r.refresh(ctx, refreshMode{whole: true, dry: dry})
}

// AcceptSource puts the set in force that a source holds back.
func (k *Keeper) AcceptSource(ctx context.Context, name string) (Refreshed, error) {
	r, err := k.runner(name)
	if err != nil {
		return Refreshed{}, err
	}
	return r.refresh(ctx, refreshMode{accept: true})
}

// refreshMode is how a refresh differs from that by the clock.
type refreshMode struct {
	whole  bool // an answer "not modified" is not asked for
	dry    bool
	accept bool // take the set that waits, and fetch nothing
}

// refresh is one turn of a source. Who asked may go away; only a change of its
// settings or the end of the daemon breaks it off.
func (r *runner) refresh(ctx context.Context, mode refreshMode) (Refreshed, error) {
	if err := r.takeTurn(ctx, false); err != nil {
		return Refreshed{}, err
	}
	defer r.giveTurn()
	run, abandon := context.WithCancel(r.life)
	defer abandon()
	r.mu.Lock()
	s, record, unreadable := r.source, r.record, r.fault
	r.abandon = abandon
	if r.hurry > 0 {
		abandon()
	}
	if s != nil && s.Kind == source.KindFile && !mode.dry && !mode.accept {
		r.stamp = fetch.Stamp(s.File)
	}
	r.mu.Unlock()
	if s == nil {
		return Refreshed{}, &InputError{"source", unreadable}
	}
	t := &refresh{r: r, s: s, state: record.State, mode: mode, out: Refreshed{Name: r.name, DryRun: mode.dry}}
	err := t.run(run)
	if err != nil && !mode.accept && run.Err() == nil && !mode.dry {
		t.broken(record.State, err)
	}
	if run.Err() != nil {
		if r.life.Err() != nil {
			return t.out, r.ended()
		}
		return t.out, store.ErrConflict
	}
	if (err == nil || !mode.accept) && !mode.dry {
		r.keep(run, record.Version, t.state)
		r.tell(s, &record.State, &t.state, &t.out)
	}
	return t.out, err
}

// keep writes how the source fares. A store that is away does not stop it: the
// next fetch writes again.
func (r *runner) keep(ctx context.Context, version int64, state store.SourceState) {
	r.mu.Lock()
	r.record.State = state
	r.mu.Unlock()
	if err := r.k.store.PutSourceState(ctx, r.name, version, state); err != nil && ctx.Err() == nil {
		r.k.log.WarnContext(ctx, "could not keep how a source fares", "source", r.name, "error", err)
	}
	r.wake()
}

// tell logs what happened, and emits what changed for an operator.
func (r *runner) tell(s *source.Source, before, after *store.SourceState, out *Refreshed) {
	c := &out.Changes
	level := slog.LevelInfo
	if out.Verdict == source.Same {
		level = slog.LevelDebug
	}
	r.k.log.Log(context.Background(), level, "fetched a source", "source", r.name, "result", out.Verdict.String(), "reason", out.Reason, "listed", out.Listed,
		"rejected", out.Rejects, "added", c.Added, "updated", c.Updated, "renewed", c.Renewed, "removed", c.Removed)
	switch {
	case after.Fails == 1 && before.Fails == 0:
		r.k.emit(eventSourceFailing, s.Pool, r.name, after.Reason+"; the set in force stays")
	case after.Held != nil && (before.Held == nil || before.Held.Digest != after.Held.Digest):
		r.k.emit(eventSourceHeld, s.Pool, r.name, after.Reason)
	case after.Fails == 0 && after.Held == nil && (before.Fails > 0 || before.Held != nil):
		r.k.emit(eventSourceOK, s.Pool, r.name, "the source gives a good list again")
	}
}

// refresh is the work of one turn.
type refresh struct {
	r     *runner
	s     *source.Source
	state store.SourceState
	mode  refreshMode
	out   Refreshed
}

func (t *refresh) run(ctx context.Context) error {
	if t.mode.accept {
		return t.accept(ctx)
	}
	k := t.r.k
	mark := fetch.Mark{ETag: t.state.ETag, LastModified: t.state.LastModified, Sum: t.state.Sum}
	if t.mode.whole || t.s.TTL > 0 { // "not modified" would prolong no life
		mark = fetch.Mark{}
	}
	t.state.Attempt = k.store.Now()
	res, err := k.sources.fetcher.Fetch(ctx, t.s, mark)
	if fault, ok := errors.AsType[*fetch.Error](err); ok {
		return t.decide(ctx, nil, &source.Answer{Fault: fault.Text}, fault)
	} else if err != nil {
		return err
	}
	items, digest := t.items(res.Entries)
	t.out.Listed, t.out.Duplicates = len(items), len(res.Entries)-len(items)
	t.out.Rejects, t.out.Rejected = res.Rejects, res.Rejected
	answer := &source.Answer{Unchanged: res.Unchanged, Proxies: len(items), Rejected: res.Rejects, Digest: digest}
	if len(res.Rejected) > 0 {
		answer.First = res.Rejected[0].Reason
	}
	found := &foundSet{res, items}
	return t.decide(ctx, found, answer, nil)
}

// foundSet is what a fetch brought.
type foundSet struct {
	*fetch.Result
	items []pool.Import
}

// decide lets the judge speak, and does what it says.
func (t *refresh) decide(ctx context.Context, found *foundSet, a *source.Answer, fault *fetch.Error) error {
	own, err := t.own(ctx)
	if err != nil {
		return err
	}
	d := source.Judge(len(own), heldOf(t.state.Held), a)
	t.out.Verdict, t.out.Reason = d.Verdict, d.Reason
	t.state.Reason = d.Reason
	switch d.Verdict {
	case source.Take:
		err = t.put(ctx, found.items, own, t.mode.dry)
		t.state.ETag, t.state.LastModified, t.state.Sum = found.Mark.ETag, found.Mark.LastModified, found.Mark.Sum
		t.state.Listed, t.state.Rejected = len(found.items), found.Rejects
		t.good()
	case source.Same:
		t.out.Listed = t.state.Listed
		t.out.Changes.Unchanged = len(own)
		t.good()
	case source.Hold:
		err = t.hold(ctx, found, own, d.Held)
		t.state.Fails = 0
	case source.Refuse:
		t.state.Fails++
	}
	t.out.Held = t.state.Held
	var asked time.Duration
	if fault != nil {
		asked = fault.After
	}
	t.state.Next = t.r.k.store.Now().Add(source.Wait(t.s.Interval, t.state.Fails, asked, rand.Float64()))
	return err
}

// broken is a turn that the list is not to blame for: the store was away, or the
// pool is full.
func (t *refresh) broken(before store.SourceState, err error) {
	attempt := t.state.Attempt
	t.state = before
	t.state.Attempt = attempt
	t.state.Fails++
	t.state.Reason = "the list could not be put into the pool: " + err.Error()
	t.state.Next = t.r.k.store.Now().Add(source.Wait(t.s.Interval, t.state.Fails, 0, rand.Float64()))
	t.out.Verdict, t.out.Reason = source.Refuse, t.state.Reason
}

func (t *refresh) good() {
	t.state.Success, t.state.Fails, t.state.Reason, t.state.Held = t.r.k.store.Now(), 0, "", nil
}

func heldOf(h *store.HeldSet) *source.Held {
	if h == nil {
		return nil
	}
	return &source.Held{Digest: h.Digest, Proxies: h.Proxies, Seen: h.Seen}
}

// hold keeps a set until it is accepted, and tells what that would do.
func (t *refresh) hold(ctx context.Context, found *foundSet, own []pool.Listed, held *source.Held) error {
	packed, err := source.Pack(found.Entries)
	if err != nil {
		return err
	}
	at := t.state.Attempt
	if old := t.state.Held; old != nil && old.Digest == held.Digest {
		at = old.At
	}
	t.state.Held = &store.HeldSet{Digest: held.Digest, Proxies: held.Proxies, Seen: held.Seen, At: at, List: packed}
	return t.put(ctx, found.items, own, true)
}

// accept takes the set that waits.
func (t *refresh) accept(ctx context.Context) error {
	if t.state.Held == nil {
		return ErrNoHeldSet
	}
	entries, err := source.Unpack(t.state.Held.List)
	if err != nil {
		return err
	}
	own, err := t.own(ctx)
	if err != nil {
		return err
	}
	items, _ := t.items(entries)
	t.out.Verdict, t.out.Listed = source.Take, len(items)
	t.state.Listed, t.state.Rejected = len(items), 0
	t.state.ETag, t.state.LastModified, t.state.Sum = "", "", "" // of the set before
	t.good()
	return t.put(ctx, items, own, false)
}
