package storetest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/store"
)

// handTests are the cases of store.Hand and store.Audits.
var handTests = map[string]func(*testing.T, *fixture){
	"RevokeByFilter":       revokeByFilter,
	"SessionsArePaged":     sessionsArePaged,
	"MovedSessionsLeave":   movedSessionsLeave,
	"GroupsAreReleased":    groupsAreReleased,
	"AuditsAreKept":        auditsAreKept,
	"HandInUnknownPool":    handInUnknownPool,
	"AuditsSurviveRestart": auditsSurviveRestart,
	"FilesAreCopied":       filesAreCopied,
}

func (f *fixture) revoke(filter pool.LeaseFilter, dry bool) store.RevokeResult {
	f.t.Helper()
	res, err := f.Revoke(f.ctx(), store.RevokeParams{Pool: "p", Now: f.now, Filter: filter, DryRun: dry})
	f.must(err)
	return res
}

func (f *fixture) beat(g pool.Grant, worker string) pool.BeatResult {
	f.t.Helper()
	res, err := f.Extend(f.ctx(), store.ExtendParams{Pool: "p", Now: f.now, Worker: worker, Leases: []pool.Beat{{Key: g.Lease.Key}}})
	f.must(err)
	return res[0].Result
}

func revokeByFilter(t *testing.T, f *fixture) {
	ids := f.add(spec(1), spec(2), spec(3))
	a, b := f.lease(pool.AcquireParams{Worker: "a"}), f.lease(pool.AcquireParams{Worker: "b", Session: "s"})
	c := f.lease(pool.AcquireParams{Worker: "b", Target: "other.example"})
	if res := f.revoke(pool.LeaseFilter{Worker: "b"}, true); res.Count != 2 || len(res.First) != 2 || f.beat(b, "b") != pool.BeatOK {
		t.Fatalf("a dry run: %+v", res)
	}
	for _, one := range []struct {
		filter pool.LeaseFilter
		want   int
	}{
		{pool.LeaseFilter{Worker: "nobody"}, 0},
		{pool.LeaseFilter{Short: "AAAAAAAA"}, 0},
		{pool.LeaseFilter{Short: c.Lease.Key.Short()}, 1},
		{pool.LeaseFilter{Target: "other.example"}, 1},
		{pool.LeaseFilter{Session: "s"}, 1},
		{pool.LeaseFilter{Proxy: &a.ID}, 1},
		{pool.LeaseFilter{}, 3},
	} {
		if res := f.revoke(one.filter, true); res.Count != one.want {
			t.Errorf("%+v takes %d, want %d", one.filter, res.Count, one.want)
		}
	}
	if res := f.revoke(pool.LeaseFilter{Worker: "b"}, false); res.Count != 2 || res.First[0].Lease.Key != b.Lease.Key {
		t.Fatalf("revoked %+v", res)
	}
	if f.beat(a, "a") != pool.BeatOK || f.beat(b, "b") != pool.BeatLost || f.beat(c, "b") != pool.BeatLost {
		t.Fatal("the wrong leases ended")
	}
	if got := f.report(b.Lease.Key, pool.ClassProxyDial); got.Result != pool.ResultStale {
		t.Fatalf("a late report: %+v", got)
	}
	for _, id := range ids {
		if v := f.view(id); v.Judge.Streak != 0 || v.Ten.Total != 0 {
			t.Fatalf("the late report counted: %+v", v.Ten)
		}
	}
	f.wait(time.Second)
	f.refused(pool.AcquireParams{Target: "other.example", Select: pool.Selector{Exclude: without(ids, c.ID)}}, pool.ReasonReuseInterval)
}

func without(ids []proxy.ID, id proxy.ID) []proxy.ID {
	return slices.DeleteFunc(slices.Clone(ids), func(x proxy.ID) bool { return x == id })
}

func sessionsArePaged(t *testing.T, f *fixture) {
	f.add(spec(1), spec(2), spec(3), spec(4), spec(5))
	var first pool.Grant
	for i := range 5 {
		g := f.lease(pool.AcquireParams{Session: fmt.Sprint("s", 4-i), Target: fmt.Sprint("t", i)})
		if i == 0 {
			first = g
		}
	}
	page := func(p store.SessionsParams) string {
		p.Pool = "p"
		res, err := f.Sessions(f.ctx(), p)
		f.must(err)
		var keys []string
		for _, x := range res.Sessions {
			keys = append(keys, x.Key)
		}
		return fmt.Sprint(strings.Join(keys, ""), " ", res.More)
	}
	if got := page(store.SessionsParams{Limit: 3}); got != "s0s1s2 true" {
		t.Error(got)
	}
	if got := page(store.SessionsParams{Limit: 3, After: "s2"}); got != "s3s4 false" {
		t.Error(got)
	}
	if got := page(store.SessionsParams{Limit: 3, Proxy: &first.ID}); got != "s4 false" {
		t.Error(got)
	}
}

func movedSessionsLeave(t *testing.T, f *fixture) {
	f.add(spec(1), spec(2))
	first := f.lease(pool.AcquireParams{Session: "s"})
	x, err := f.MoveSession(f.ctx(), store.SessionParams{Pool: "p", Now: f.now, Key: "s"})
	f.must(err)
	if !x.Sent || x.ProxyID != first.ID || f.beat(first, "w") != pool.BeatOK {
		t.Fatalf("moved %+v", x)
	}
	if _, err := f.MoveSession(f.ctx(), store.SessionParams{Pool: "p", Now: f.now, Key: "nobody"}); !errors.Is(err, store.ErrNoSession) {
		t.Fatalf("an unknown session: %v", err)
	}
	f.report(first.Lease.Key, pool.ClassOK)
	f.wait(time.Minute) // its old proxy is the longest rested again
	f.Store = f.reopen(t)
	second := f.lease(pool.AcquireParams{Session: "s"})
	if second.ID == first.ID || !second.Lease.More.Moved || second.Lease.More.Previous != first.ID {
		t.Fatalf("got %s after %s, moved %v", second.ID, first.ID, second.Lease.More.Moved)
	}
	f.report(second.Lease.Key, pool.ClassOK)
	f.wait(time.Minute)
	if third := f.lease(pool.AcquireParams{Session: "s"}); third.ID != second.ID || third.Lease.More.Moved {
		t.Fatal("it moved once more")
	}
}

func groupsAreReleased(t *testing.T, f *fixture) {
	a := spec(1)
	a.Group = "acct"
	f.add(a)
	g := f.lease(pool.AcquireParams{})
	f.settle(g.Lease.Key, pool.EndReport, pool.Outcome{Class: pool.ClassProxyQuota, RetryAfter: time.Hour})
	f.wait(time.Minute)
	f.refused(pool.AcquireParams{}, pool.ReasonGroupHold)
	release := func(name string) (pool.Time, error) {
		return f.ReleaseGroup(f.ctx(), store.GroupParams{Pool: "p", Now: f.now, Name: name})
	}
	held, err := release("acct")
	f.must(err)
	if want := f.now.Add(59 * time.Minute); held != want {
		t.Fatalf("held until %d, want %d", held, want)
	}
	if held, err = release("acct"); err != nil || held != 0 {
		t.Fatalf("a second time: %d %v", held, err)
	}
	if _, err := release("nobody"); !errors.Is(err, store.ErrNoGroup) {
		t.Fatalf("an unknown group: %v", err)
	}
	f.Store = f.reopen(t)
	f.lease(pool.AcquireParams{})
}

func auditsAreKept(t *testing.T, f *fixture) {
	for i := range 5 {
		act := "proxies.patch"
		if i == 3 {
			act = "lease.revoke"
		}
		f.must(f.AddAudit(f.ctx(), store.Audit{
			At: f.now.Add(time.Duration(i) * time.Minute), Who: fmt.Sprint("op", i%2), Peer: "192.0.2.1", Act: act, Pool: "p",
			What: fmt.Sprint("what ", i), Count: i, Result: "done",
		}))
	}
	f.must(f.AddAudit(f.ctx(), store.Audit{Act: "store.backup", Result: "done"})) // stamped by the store
	get := func(q store.AuditQuery) store.AuditResult {
		q.Limit = max(q.Limit, 3)
		res, err := f.Audits(f.ctx(), q)
		f.must(err)
		return res
	}
	res := get(store.AuditQuery{})
	if len(res.Audits) != 3 || !res.More || res.Audits[0].Act != "store.backup" || res.Audits[0].At == 0 {
		t.Fatalf("the newest: %+v", res)
	}
	want := store.Audit{
		N: res.Audits[1].N, At: f.now.Add(4 * time.Minute), Who: "op0", Peer: "192.0.2.1", Act: "proxies.patch", Pool: "p",
		What: "what 4", Count: 4, Result: "done",
	}
	if res.Audits[1] != want {
		t.Errorf("got %+v, want %+v", res.Audits[1], want)
	}
	if older := get(store.AuditQuery{Before: res.Audits[2].N}); len(older.Audits) != 3 || older.More || older.Audits[0].What != "what 2" {
		t.Errorf("the next page: %+v", older)
	}
	if one := get(store.AuditQuery{Act: "lease.revoke"}); len(one.Audits) != 1 || one.Audits[0].Count != 3 {
		t.Errorf("by act: %+v", one)
	}
	if two := get(store.AuditQuery{Who: "op1"}); len(two.Audits) != 2 {
		t.Errorf("by who: %+v", two)
	}
	if late := get(store.AuditQuery{Since: f.now.Add(4 * time.Minute)}); len(late.Audits) != 1 {
		t.Errorf("since: %+v", late)
	}
	f.must(f.AddAudit(f.ctx(), store.Audit{At: f.now.Add(store.AuditAge + 3*time.Minute), Act: "later", Result: "done"}))
	if left := get(store.AuditQuery{Limit: 10}); len(left.Audits) != 3 {
		t.Errorf("after 90 days %d are left: %+v", len(left.Audits), left)
	}
}

func auditsSurviveRestart(t *testing.T, f *fixture) {
	f.must(f.AddAudit(f.ctx(), store.Audit{Act: "token.new", What: "crawl", Result: "done"}))
	f.Store = f.reopen(t)
	res, err := f.Audits(f.ctx(), store.AuditQuery{Limit: 1})
	f.must(err)
	if len(res.Audits) != 1 || res.Audits[0].What != "crawl" {
		t.Fatalf("got %+v", res)
	}
}

func handInUnknownPool(t *testing.T, f *fixture) {
	_, err1 := f.Revoke(f.ctx(), store.RevokeParams{Pool: "none"})
	_, err2 := f.Sessions(f.ctx(), store.SessionsParams{Pool: "none", Limit: 1})
	_, err3 := f.MoveSession(f.ctx(), store.SessionParams{Pool: "none", Key: "s"})
	_, err4 := f.ReleaseGroup(f.ctx(), store.GroupParams{Pool: "none", Name: "g"})
	for i, err := range []error{err1, err2, err3, err4} {
		if !errors.Is(err, store.ErrNoPool) {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
}

// filesAreCopied looks only at stores that live in a file.
func filesAreCopied(t *testing.T, f *fixture) {
	file, ok := f.Store.(store.File)
	if !ok {
		t.Skip("this store is not a file")
	}
	f.add(spec(1))
	snap, err := file.Snapshot(f.ctx())
	f.must(err)
	f.lease(pool.AcquireParams{}) // the store goes on beside it
	n, err := io.Copy(io.Discard, snap)
	f.must(err)
	f.must(snap.Close())
	if n == 0 || n != snap.Size() {
		t.Fatalf("read %d of %d bytes", n, snap.Size())
	}
	h, err := file.Inspect(f.ctx())
	f.must(err)
	if h.WriteErr != nil || h.Damage != "" || h.Bytes == 0 || h.Written == 0 {
		t.Fatalf("a good store: %+v", h)
	}
}
