package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/store"
)

// list imports as the refresh of a source does.
func (f *fixture) list(source string, items ...pool.Import) []pool.Imported {
	f.t.Helper()
	for i := range items {
		items[i].Listed, items[i].Spec.Source = true, source
		items[i].ID = idOf(items[i].Spec)
	}
	res, err := f.Import(f.ctx(), store.ImportParams{Pool: "p", Now: f.now, Proxies: items})
	f.must(err)
	return res
}

func (f *fixture) leave(source string, ids ...proxy.ID) store.LeaveResult {
	f.t.Helper()
	res, err := f.Leave(f.ctx(), store.LeaveParams{Pool: "p", Now: f.now, Source: source, IDs: ids})
	f.must(err)
	return res
}

func (f *fixture) gone(id proxy.ID) bool {
	f.t.Helper()
	_, err := f.Proxy(f.ctx(), "p", id)
	if err != nil && !errors.Is(err, store.ErrNoProxy) {
		f.t.Fatal(err)
	}
	return err != nil
}

func sourceTakesOnlyItsOwn(t *testing.T, f *fixture) {
	own, shared, byHand, leased := spec(1), spec(2), spec(3), spec(4)
	f.add(byHand)
	f.list("a", pool.Import{Spec: own}, pool.Import{Spec: shared}, pool.Import{Spec: byHand})
	f.list("b", pool.Import{Spec: shared})
	f.list("a", pool.Import{Spec: leased})
	g := f.lease(pool.AcquireParams{Select: pool.Selector{Exclude: []proxy.ID{idOf(own), idOf(shared), idOf(byHand)}}})
	ids := []proxy.ID{idOf(own), idOf(shared), idOf(byHand), idOf(leased), {7}}
	dry, err := f.Leave(f.ctx(), store.LeaveParams{Pool: "p", Now: f.now, Source: "a", IDs: ids, DryRun: true})
	f.must(err)
	if want := (store.LeaveResult{Gone: 2, Kept: 2}); dry != want {
		t.Fatalf("dry: %+v", dry)
	}
	if got := f.view(idOf(shared)).Spec.Source; got != "a,b" {
		t.Fatalf("a dry run changed the sources to %q", got)
	}
	if res := f.leave("a", ids...); res != dry {
		t.Fatalf("left %+v, the dry run said %+v", res, dry)
	}
	if got := f.view(idOf(shared)).Spec.Source; got != "b" {
		t.Errorf("shared: %q", got)
	}
	if got := f.view(idOf(byHand)).Spec.Source; got != "" {
		t.Errorf("by hand: %q", got)
	}
	if v := f.view(idOf(leased)); !v.Admin.Remove {
		t.Error("a leased proxy does not drain")
	}
	f.report(g.Lease.Key, pool.ClassOK)
	if !f.gone(idOf(leased)) {
		t.Error("it is not gone with its last lease")
	}
	if res := f.leave("b", ids...); res.Kept != 0 {
		t.Errorf("b keeps %d", res.Kept)
	}
	if f.gone(idOf(byHand)) {
		t.Error("what an operator added is gone")
	}
}

func sourceSpeaksForItsOwn(t *testing.T, f *fixture) {
	s := spec(1)
	s.Region, s.Labels, s.Cap = "de", "tier=gold", 3
	f.list("a", pool.Import{Spec: s})
	other := spec(1)
	other.Region, other.Labels = "us", "tier=lead"
	if got := f.list("b", pool.Import{Spec: other}); got[0] != pool.ImportedUpdated {
		t.Fatalf("a second source: %d", got[0])
	}
	if v := f.view(idOf(s)); v.Spec.Region != "de" || v.Spec.Labels != "tier=gold" || v.Spec.Source != "a,b" {
		t.Fatalf("the second source spoke: %+v", v.Spec)
	}
	if got := f.list("b", pool.Import{Spec: other}); got[0] != pool.ImportedDuplicate {
		t.Fatalf("again: %d", got[0])
	}
	s.Labels, s.Cap = "", 2
	s.Source = "a"
	dry, err := f.Import(f.ctx(), store.ImportParams{
		Pool: "p", Now: f.now, DryRun: true, Proxies: []pool.Import{{ID: idOf(s), Listed: true, Spec: s}, {ID: proxy.ID{1}, Spec: spec(2)}},
	})
	f.must(err)
	if !slices.Equal(dry, []pool.Imported{pool.ImportedUpdated, pool.ImportedNew}) || f.view(idOf(s)).Spec.Labels == "" || !f.gone(proxy.ID{1}) {
		t.Fatalf("a dry run: %v", dry)
	}
	f.list("a", pool.Import{Spec: s})
	if v := f.view(idOf(s)); v.Spec.Labels != "" || v.Spec.Cap != 2 {
		t.Fatalf("what the source no longer says stands: %+v", v.Spec)
	}
	f.add(spec(1)) // by hand, without saying anything
	if v := f.view(idOf(s)); v.Spec.Source != "a,b,hand" || v.Spec.Region != "de" {
		t.Fatalf("by hand: %+v", v.Spec)
	}
	for _, name := range []string{"a", "b", "hand", ""} {
		list, err := f.OfSource(f.ctx(), "p", name)
		f.must(err)
		if len(list) != 1 || list[0].ID != idOf(s) {
			t.Errorf("of %q: %v", name, list)
		}
	}
	f.leave("a", idOf(s))
	f.list("b", pool.Import{Spec: other})
	if v := f.view(idOf(s)); v.Spec.Region != "us" || v.Spec.Source != "b,hand" {
		t.Fatalf("the next in line does not speak: %+v", v.Spec)
	}
}

func passwordChangesInPlace(t *testing.T, f *fixture) {
	old := spec(1)
	old.Region = "de"
	f.list("a", pool.Import{Spec: old})
	f.use(pool.ClassOK)
	f.wait(2 * time.Second)
	live := f.lease(pool.AcquireParams{Session: "s"})
	fresh := old
	fresh.Password, fresh.Region = "changed", "us"
	if got := f.list("a", pool.Import{Spec: fresh, Succeeds: idOf(old)}); got[0] != pool.ImportedRenewed {
		t.Fatalf("got %d", got[0])
	}
	if !f.gone(idOf(old)) {
		t.Fatal("the old identity is still there")
	}
	check := func() {
		t.Helper()
		v := f.view(idOf(fresh))
		if v.Spec.Password.Reveal() != "changed" || v.Spec.Region != "us" || v.Mech.InUse != 1 || v.Today.Total != 1 {
			t.Fatalf("the record: %+v, in use %d, %+v", v.Spec, v.Mech.InUse, v.Today)
		}
	}
	check()
	f.Store = f.reopen(t)
	check()
	if got := f.report(live.Lease.Key, pool.ClassOK); got.Result != pool.ResultApplied {
		t.Fatalf("a lease from before: %+v", got)
	}
	res, err := f.Note(f.ctx(), store.NoteParams{Pool: "p", Now: f.now, Worker: "w", Seq: 1, Notes: []pool.Note{{
		Key: live.Lease.Key, Proxy: live.ID, Target: live.Target, Granted: live.Lease.Granted, Fence: live.Lease.Fence, Valid: pool.Valid,
	}}})
	f.must(err)
	if res.Taken != 1 {
		t.Fatal("a note under the old id was not taken")
	}
	f.wait(2 * time.Second)
	if g := f.lease(pool.AcquireParams{Session: "s"}); g.ID != idOf(fresh) || g.Lease.More.Moved || g.Proxy().Password.Reveal() != "changed" {
		t.Fatalf("the session: %+v", g)
	}
	// neither another source's record nor one of another user is taken over
	theirs, stranger := fresh, fresh
	theirs.Password, stranger.Username = "third", "v"
	f.list("b", pool.Import{Spec: theirs, Succeeds: idOf(fresh)})
	f.list("a", pool.Import{Spec: stranger, Succeeds: idOf(fresh)})
	if f.gone(idOf(fresh)) || f.gone(idOf(theirs)) || f.gone(idOf(stranger)) {
		t.Fatal("a record was taken over that must not be")
	}
}

func listedAgainComesBack(t *testing.T, f *fixture) {
	s := spec(1)
	f.list("a", pool.Import{Spec: s})
	f.lease(pool.AcquireParams{})
	f.leave("a", idOf(s))
	if list, err := f.OfSource(f.ctx(), "p", "a"); err != nil || len(list) != 0 {
		t.Fatalf("on its way out, and still listed: %v %v", list, err)
	}
	if got := f.list("b", pool.Import{Spec: s}); got[0] != pool.ImportedUpdated {
		t.Fatalf("got %d", got[0])
	}
	if v := f.view(idOf(s)); v.Admin.Remove || v.Spec.Source != "b" {
		t.Fatalf("%+v %q", v.Admin, v.Spec.Source)
	}
}

func sourcesAreKept(t *testing.T, f *fixture) {
	first := store.PutSourceParams{
		Name: "a", Settings: map[string]string{"url": "https://x.example/", "headers.Authorization": "Bearer ${T}"},
		State: store.SourceState{
			Attempt: f.now, Success: f.now, Next: f.now.Add(time.Hour), Fails: 2, Reason: "r", ETag: `"e"`, LastModified: "l", Sum: "s",
			Listed: 10, Rejected: 3, Held: &store.HeldSet{Digest: "d", Proxies: 4, Seen: 2, At: f.now, List: []byte{0, 1, 2}},
		},
	}
	version, err := f.PutSource(f.ctx(), first)
	f.must(err)
	if _, err := f.PutSource(f.ctx(), first); !errors.Is(err, store.ErrConflict) {
		t.Fatalf("an old version: %v", err)
	}
	_, err = f.PutSource(f.ctx(), store.PutSourceParams{Name: "b"})
	f.must(err)
	f.Store = f.reopen(t)
	get := func() []store.Source {
		list, err := f.Sources(f.ctx())
		f.must(err)
		return list
	}
	want := store.Source{Name: "a", Version: version, Settings: first.Settings, State: first.State}
	if list := get(); len(list) != 2 || list[1].Name != "b" || !cmp.Equal(want, list[0]) {
		t.Fatalf("after reopening: %s", cmp.Diff(want, list[0]))
	}
	state := store.SourceState{Fails: 3}
	f.must(f.PutSourceState(f.ctx(), "a", version, state))
	if err := f.PutSourceState(f.ctx(), "a", version-1, state); !errors.Is(err, store.ErrConflict) {
		t.Fatalf("the state of an old version: %v", err)
	}
	if list := get(); list[0].State.Fails != 3 || list[0].State.Held != nil || list[0].Settings["url"] == "" {
		t.Fatalf("got %+v", list[0])
	}
	f.must(f.DeleteSource(f.ctx(), "a"))
	if err := f.DeleteSource(f.ctx(), "a"); !errors.Is(err, store.ErrNoSource) {
		t.Fatalf("a second time: %v", err)
	}
	if err := f.PutSourceState(f.ctx(), "a", version, state); !errors.Is(err, store.ErrConflict) {
		t.Fatalf("the state of a source that is gone: %v", err)
	}
}
