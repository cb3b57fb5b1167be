// Package storetest is the suite that every store must pass.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/store"
)

// Opened is a store under test.
type Opened struct {
	Store store.Store
	// Reopen closes the store without warning and opens the same data again.
	Reopen func(t *testing.T) store.Store
}

// Run runs the suite. open gives an empty store for each test.
func Run(t *testing.T, open func(t *testing.T) Opened) {
	t.Helper()
	tests := maps.Clone(handTests)
	maps.Copy(tests, map[string]func(*testing.T, *fixture){
		"AcquireReportOnce":         acquireReportOnce,
		"AcquireIsIdempotent":       acquireIsIdempotent,
		"UnknownPool":               unknownPool,
		"HeartbeatExtends":          heartbeatExtends,
		"ExpiryIsNoFailure":         expiryIsNoFailure,
		"LateReportTouchesNothing":  lateReportTouchesNothing,
		"ReleaseLeavesNoTrace":      releaseLeavesNoTrace,
		"FailureCoolsAndComesBack":  failureCoolsAndComesBack,
		"SuspensionEndsByItself":    suspensionEndsByItself,
		"PairRestsAlone":            pairRestsAlone,
		"RateLimitHoldsThePair":     rateLimitHoldsThePair,
		"QuotaHoldsTheGroup":        quotaHoldsTheGroup,
		"SessionsStick":             sessionsStick,
		"TemplateMintsChildren":     templateMintsChildren,
		"RotatingIsNotBenched":      rotatingIsNotBenched,
		"ExpiredProxiesAreNotLent":  expiredProxiesAreNotLent,
		"PauseDrainResume":          pauseDrainResume,
		"RemoveWaitsForTheLease":    removeWaitsForTheLease,
		"NotesCountOnce":            notesCountOnce,
		"FailuresAreKept":           failuresAreKept,
		"PolicyVersions":            policyVersions,
		"SourceTakesOnlyItsOwn":     sourceTakesOnlyItsOwn,
		"SourceSpeaksForItsOwn":     sourceSpeaksForItsOwn,
		"PasswordChangesInPlace":    passwordChangesInPlace,
		"ListedAgainComesBack":      listedAgainComesBack,
		"SourcesAreKept":            sourcesAreKept,
		"SurvivesReopening":         survivesReopening,
		"BudgetsSurvive":            budgetsSurvive,
		"CapacityCounts":            capacityCounts,
		"ExclusiveUnderConcurrency": exclusiveUnderConcurrency,
		"SpecsByPage":               specsByPage,
	})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			opened := open(t)
			f := &fixture{
				t: t, Store: opened.Store, reopen: opened.Reopen,
				// ahead of the store's own clock, which views ask: time never runs backwards inside
				now: opened.Store.Now().Add(48 * time.Hour),
			}
			f.pool("p", unpaced())
			test(t, f)
		})
	}
}

// fixture is a store with an explicit clock.
type fixture struct {
	store.Store
	t      *testing.T
	reopen func(*testing.T) store.Store
	now    pool.Time
}

// unpaced is a policy whose targets are asked as fast as the tests like.
func unpaced() pool.Policy {
	p := pool.DefaultPolicy()
	p.Pacing.Start = p.Pacing.Max
	return p
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) ctx() context.Context { return f.t.Context() }

func (f *fixture) pool(name string, policy pool.Policy) {
	f.t.Helper()
	_, err := f.PutPool(f.ctx(), store.PutPoolParams{Name: name, Record: store.PolicyRecord{Policy: policy}, Expect: -1})
	f.must(err)
}

func spec(n int) pool.Spec {
	return pool.Spec{Proxy: proxy.Proxy{Scheme: "http", Host: fmt.Sprintf("p%d.example", n), Port: 8080, Username: "u", Password: "secret"}}
}

func idOf(s pool.Spec) proxy.ID { return s.Proxy.ID([]byte("k")) }

func (f *fixture) add(specs ...pool.Spec) []proxy.ID {
	f.t.Helper()
	var list []pool.Import
	var ids []proxy.ID
	for _, s := range specs {
		list = append(list, pool.Import{ID: idOf(s), Spec: s})
		ids = append(ids, idOf(s))
	}
	_, err := f.Import(f.ctx(), store.ImportParams{Pool: "p", Now: f.now, Proxies: list})
	f.must(err)
	return ids
}

func (f *fixture) acquire(a pool.AcquireParams) pool.AcquireResult {
	f.t.Helper()
	if a.Target == "" {
		a.Target = "site.example"
	}
	if a.Worker == "" {
		a.Worker = "w"
	}
	res, err := f.Store.Acquire(f.ctx(), store.AcquireParams{Pool: "p", Now: f.now, AcquireParams: a})
	f.must(err)
	return res
}

func (f *fixture) lease(a pool.AcquireParams) pool.Grant {
	f.t.Helper()
	res := f.acquire(a)
	if res.Refusal != nil {
		f.t.Fatalf("refused: %v", reasons(res.Refusal))
	}
	return res.Grants[0]
}

func reasons(r *pool.Refusal) map[string]int {
	out := map[string]int{}
	for reason, n := range r.Reasons {
		if n > 0 {
			out[pool.Reason(reason).String()] = n
		}
	}
	return out
}

// refused demands a refusal with a reason.
func (f *fixture) refused(a pool.AcquireParams, want pool.Reason) *pool.Refusal {
	f.t.Helper()
	res := f.acquire(a)
	if res.Refusal == nil {
		f.t.Fatalf("granted, want a refusal for %s", want)
	}
	if res.Refusal.Reasons[want] == 0 {
		f.t.Fatalf("refused for %v, want %s", reasons(res.Refusal), want)
	}
	return res.Refusal
}

func (f *fixture) settle(key pool.Key, kind pool.EndKind, o pool.Outcome) pool.Settled {
	f.t.Helper()
	res, err := f.Settle(f.ctx(), store.SettleParams{Pool: "p", Now: f.now, Endings: []pool.Ending{{Key: key, Kind: kind, Outcome: o}}})
	f.must(err)
	return res[0]
}

func (f *fixture) report(key pool.Key, class pool.Class) pool.Settled {
	f.t.Helper()
	return f.settle(key, pool.EndReport, pool.Outcome{Class: class, Elapsed: 200 * time.Millisecond})
}

func (f *fixture) use(class pool.Class) pool.Grant {
	f.t.Helper()
	g := f.lease(pool.AcquireParams{})
	f.report(g.Lease.Key, class)
	return g
}

// first asks for the first of two proxies: of a pool of one no pair rests by
// statistics.
var first = pool.AcquireParams{Select: pool.Selector{Region: "first"}}

func (f *fixture) addTwo() []proxy.ID {
	f.t.Helper()
	s := spec(1)
	s.Region = "first"
	return f.add(s, spec(2))
}

func (f *fixture) useFirst(class pool.Class) pool.Grant {
	f.t.Helper()
	g := f.lease(first)
	f.report(g.Lease.Key, class)
	return g
}

func (f *fixture) wait(d time.Duration) { f.now = f.now.Add(d) }

// view gives a proxy as it is at the fixture's time; stores show their own
// clock's, so the times are looked at and not the words that follow from them.
func (f *fixture) view(id proxy.ID) pool.ProxyView {
	f.t.Helper()
	res, err := f.Proxy(f.ctx(), "p", id)
	f.must(err)
	return res.Proxy
}

func acquireReportOnce(t *testing.T, f *fixture) {
	ids := f.add(spec(1))
	g := f.lease(pool.AcquireParams{})
	if g.ID != ids[0] || g.Proxy().Password.Reveal() != "secret" || g.Lease.Deadline != f.now.Add(30*time.Second) {
		t.Fatalf("unexpected grant %+v", g)
	}
	f.refused(pool.AcquireParams{Target: "other.example"}, pool.ReasonLeased)
	if got := f.report(g.Lease.Key, pool.ClassOK); got.Result != pool.ResultApplied || got.Class != pool.ClassOK {
		t.Fatalf("got %+v", got)
	}
	if got := f.report(g.Lease.Key, pool.ClassProxyDial); got.Result != pool.ResultDuplicate || got.Class != pool.ClassOK {
		t.Fatalf("a repeat got %+v, want the first answer", got)
	}
	v := f.view(ids[0])
	if v.Ten.Total != 1 || v.Ten.OK != 1 || v.Judge.Streak != 0 || v.Mech.InUse != 0 {
		t.Fatalf("counted %+v, streak %d, in use %d", v.Ten, v.Judge.Streak, v.Mech.InUse)
	}
	f.refused(pool.AcquireParams{}, pool.ReasonReuseInterval)
	f.lease(pool.AcquireParams{Target: "other.example"})
}

func acquireIsIdempotent(t *testing.T, f *fixture) {
	f.add(spec(1), spec(2))
	first := f.lease(pool.AcquireParams{CallID: "r1", Digest: 7})
	again := f.lease(pool.AcquireParams{CallID: "r1", Digest: 7})
	if first.Lease.Key != again.Lease.Key {
		t.Fatal("the same request id got another lease")
	}
	_, err := f.Store.Acquire(f.ctx(), store.AcquireParams{Pool: "p", Now: f.now, AcquireParams: pool.AcquireParams{CallID: "r1", Digest: 8, Target: "x"}})
	if !errors.Is(err, pool.ErrCallConflict) {
		t.Fatalf("another body: %v", err)
	}
	f.report(first.Lease.Key, pool.ClassOK)
	_, err = f.Store.Acquire(f.ctx(), store.AcquireParams{Pool: "p", Now: f.now, AcquireParams: pool.AcquireParams{CallID: "r1", Digest: 7, Target: "site.example"}})
	if !errors.Is(err, pool.ErrCallEnded) {
		t.Fatalf("after the end: %v", err)
	}
}

func unknownPool(t *testing.T, f *fixture) {
	_, err := f.Store.Acquire(f.ctx(), store.AcquireParams{Pool: "nope", Now: f.now})
	if !errors.Is(err, store.ErrNoPool) {
		t.Fatalf("acquire: %v", err)
	}
	if _, err := f.Pool(f.ctx(), "nope"); !errors.Is(err, store.ErrNoPool) {
		t.Fatalf("pool: %v", err)
	}
	if _, err := f.Proxy(f.ctx(), "p", proxy.ID{1}); !errors.Is(err, store.ErrNoProxy) {
		t.Fatalf("proxy: %v", err)
	}
}

func heartbeatExtends(t *testing.T, f *fixture) {
	f.add(spec(1))
	g := f.lease(pool.AcquireParams{TTL: 10 * time.Second})
	beat := func() pool.Extended {
		res, err := f.Extend(f.ctx(), store.ExtendParams{Pool: "p", Now: f.now, Worker: "w", Leases: []pool.Beat{{Key: g.Lease.Key}}})
		f.must(err)
		return res[0]
	}
	f.wait(9 * time.Second)
	if got := beat(); got.Result != pool.BeatOK || got.Deadline != f.now.Add(10*time.Second) {
		t.Fatalf("got %+v", got)
	}
	for f.now < g.Lease.Hard.Add(-9*time.Second) {
		f.wait(9 * time.Second)
		if got := beat(); got.Result != pool.BeatOK || got.Deadline > g.Lease.Hard {
			t.Fatalf("got %+v, hard limit %d", got, g.Lease.Hard)
		}
	}
	f.wait(5 * time.Second)
	beat()
	if got := beat(); got.Result != pool.BeatMaxLifetime || got.Deadline != g.Lease.Hard {
		t.Fatalf("at the limit: %+v", got)
	}
	res, err := f.Extend(f.ctx(), store.ExtendParams{Pool: "p", Now: f.now, Worker: "w", Leases: []pool.Beat{{Key: pool.Key{9, 9}}}})
	f.must(err)
	if res[0].Result != pool.BeatLost {
		t.Fatalf("a foreign lease: %+v", res[0])
	}
}

func (f *fixture) reclaim() int {
	f.t.Helper()
	res, err := f.Reclaim(f.ctx(), store.ReclaimParams{Pool: "p", Now: f.now, Limit: 100})
	f.must(err)
	return len(res.Ended)
}

func expiryIsNoFailure(t *testing.T, f *fixture) {
	ids := f.add(spec(1))
	f.use(pool.ClassOK)
	f.wait(time.Minute)
	f.use(pool.ClassOK)
	for range 10 {
		f.wait(time.Minute)
		f.lease(pool.AcquireParams{})
		f.wait(31 * time.Second)
		if n := f.reclaim(); n != 0 {
			t.Fatal("reclaimed within the grace")
		}
		f.wait(2 * time.Second)
		if n := f.reclaim(); n != 1 {
			t.Fatalf("reclaimed %d", n)
		}
		f.refused(pool.AcquireParams{}, pool.ReasonReuseInterval) // lock-delay on the pair
	}
	v := f.view(ids[0])
	if v.Judge.Streak != 0 || v.Judge.Level != 0 || v.Judge.State != pool.StatusActive {
		t.Fatalf("ten abandoned leases: %s, streak %d", v.Judge.State, v.Judge.Streak)
	}
	for i := range 3 { // three in a row from two workers ask for a trial
		f.wait(time.Minute)
		f.lease(pool.AcquireParams{Worker: fmt.Sprintf("w%d", i%2)})
		f.wait(33 * time.Second)
		f.reclaim()
	}
	if v = f.view(ids[0]); v.Judge.State != pool.StatusProbation {
		t.Fatalf("abandoned by two workers: %s", v.Judge.State)
	}
}

func lateReportTouchesNothing(t *testing.T, f *fixture) {
	ids := f.add(spec(1))
	first := f.lease(pool.AcquireParams{})
	f.wait(33 * time.Second)
	f.reclaim()
	f.wait(10 * time.Second)
	second := f.lease(pool.AcquireParams{})
	if second.Lease.Fence <= first.Lease.Fence {
		t.Fatal("the fence did not grow")
	}
	if got := f.report(first.Lease.Key, pool.ClassProxyDial); got.Result != pool.ResultStale {
		t.Fatalf("got %+v", got)
	}
	v := f.view(ids[0])
	if v.Mech.InUse != 1 || v.Judge.Streak != 0 || v.Ten.Total != 1 {
		t.Fatalf("in use %d, streak %d, counted %d", v.Mech.InUse, v.Judge.Streak, v.Ten.Total)
	}
	f.report(first.Lease.Key, pool.ClassProxyDial)
	if v := f.view(ids[0]); v.Ten.Total != 1 {
		t.Fatal("a late report was counted twice")
	}
	if got := f.report(second.Lease.Key, pool.ClassOK); got.Result != pool.ResultApplied {
		t.Fatalf("the holder: %+v", got)
	}
}

func releaseLeavesNoTrace(t *testing.T, f *fixture) {
	ids := f.add(spec(1))
	g := f.lease(pool.AcquireParams{})
	if got := f.settle(g.Lease.Key, pool.EndRelease, pool.Outcome{}); got.Result != pool.ResultApplied {
		t.Fatalf("got %+v", got)
	}
	if v := f.view(ids[0]); v.Ten.Total != 0 {
		t.Fatalf("counted %+v", v.Ten)
	}
	f.lease(pool.AcquireParams{}) // no rest: it was never used
}

func failureCoolsAndComesBack(t *testing.T, f *fixture) {
	ids := f.add(spec(1))
	for n, base := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute} {
		f.use(pool.ClassProxyDial)
		v := f.view(ids[0])
		rest := v.Judge.Slots[pool.CauseFailure].Sub(f.now)
		if v.Judge.State != pool.StatusCooling || rest < base || rest > base*12/10 {
			t.Fatalf("failure %d: %s for %s", n+1, v.Judge.State, rest)
		}
		r := f.refused(pool.AcquireParams{}, pool.ReasonCooling)
		if r.NextDue != v.Judge.Slots[pool.CauseFailure] {
			t.Fatalf("next due %d, want %d", r.NextDue, v.Judge.Slots[pool.CauseFailure])
		}
		f.now = v.Judge.Slots[pool.CauseFailure]
	}
	trial := f.lease(pool.AcquireParams{})
	f.refused(pool.AcquireParams{Target: "other.example"}, pool.ReasonProbation) // one trial at a time
	f.report(trial.Lease.Key, pool.ClassClientFault)                             // neutral: the probe opens again
	f.wait(2 * time.Second)
	f.use(pool.ClassOK)
	f.wait(2 * time.Second)
	f.use(pool.ClassOK)
	if v := f.view(ids[0]); v.Judge.State != pool.StatusActive || v.Judge.Streak != 0 {
		t.Fatalf("after two good trials: %s, streak %d", v.Judge.State, v.Judge.Streak)
	}
}

func suspensionEndsByItself(t *testing.T, f *fixture) {
	ids := f.add(spec(1))
	for range 5 {
		f.use(pool.ClassProxyAuth)
		f.now = f.view(ids[0]).Judge.Slots[pool.CauseFailure]
	}
	v := f.view(ids[0])
	if v.Judge.State != pool.StatusSuspended || v.Judge.Streak != 5 {
		t.Fatalf("%s, streak %d", v.Judge.State, v.Judge.Streak)
	}
	f.use(pool.ClassProxyAuth) // the trial after it
	if rest := f.view(ids[0]).Judge.Slots[pool.CauseFailure].Sub(f.now); rest < 2*time.Hour {
		t.Fatalf("the second suspension lasts %s", rest)
	}
}

func pairRestsAlone(t *testing.T, f *fixture) {
	ids := f.addTwo()
	f.useFirst(pool.ClassBlockedHard)
	f.wait(5 * time.Second)
	f.refused(first, pool.ReasonPairCooling)
	g := f.lease(pool.AcquireParams{Target: "other.example", Select: first.Select})
	f.report(g.Lease.Key, pool.ClassOK)
	if v := f.view(ids[0]); v.Judge.Streak != 0 || v.Judge.State == pool.StatusCooling {
		t.Fatalf("a 403 cooled the proxy: %s", v.Judge.State)
	}
	relaxed := f.lease(pool.AcquireParams{LeastBad: true, Select: first.Select})
	if !relaxed.Lease.More.Relaxed {
		t.Fatal("least_bad does not say what it relaxed")
	}
}

func rateLimitHoldsThePair(t *testing.T, f *fixture) {
	f.add(spec(1))
	g := f.lease(pool.AcquireParams{})
	f.settle(g.Lease.Key, pool.EndReport, pool.Outcome{Class: pool.ClassRateLimited, Status: 429, RetryAfter: 2 * time.Minute})
	f.wait(119 * time.Second)
	f.refused(pool.AcquireParams{LeastBad: true}, pool.ReasonPairCooling) // not relaxed: the site said when
	f.wait(time.Second)
	g = f.lease(pool.AcquireParams{})
	f.report(g.Lease.Key, pool.ClassRateLimited) // says nothing: the second step of 60 s
	f.wait(119 * time.Second)
	f.refused(pool.AcquireParams{}, pool.ReasonPairCooling)
	f.wait(2 * time.Second)
	f.lease(pool.AcquireParams{})
}

func quotaHoldsTheGroup(t *testing.T, f *fixture) {
	a, b, c := spec(1), spec(2), spec(3)
	a.Group, b.Group = "acct", "acct"
	f.add(a, b, c)
	g := f.lease(pool.AcquireParams{Select: pool.Selector{Group: "acct"}})
	f.report(g.Lease.Key, pool.ClassProxyQuota)
	f.wait(5 * time.Second)
	f.refused(pool.AcquireParams{Select: pool.Selector{Group: "acct"}}, pool.ReasonGroupHold)
	if g := f.lease(pool.AcquireParams{}); g.ID != idOf(c) {
		t.Fatal("the other group was held too")
	}
	f.wait(time.Minute)
	f.lease(pool.AcquireParams{Select: pool.Selector{Group: "acct"}})
}

func sessionsStick(t *testing.T, f *fixture) {
	f.add(spec(1), spec(2), spec(3))
	home := f.lease(pool.AcquireParams{Session: "s"})
	f.report(home.Lease.Key, pool.ClassOK)
	for range 5 {
		f.refused(pool.AcquireParams{Session: "s"}, pool.ReasonReuseInterval) // it waits for its own
		f.wait(time.Second)
		g := f.lease(pool.AcquireParams{Session: "s"})
		if g.ID != home.ID || g.Lease.More.Moved {
			t.Fatal("the session left its proxy")
		}
		f.report(g.Lease.Key, pool.ClassOK)
	}
	f.wait(time.Second)
	g := f.lease(pool.AcquireParams{Session: "s"})
	f.report(g.Lease.Key, pool.ClassProxyDial)
	moved := f.lease(pool.AcquireParams{Session: "s"})
	if moved.ID == home.ID || !moved.Lease.More.Moved || moved.Lease.More.Previous != home.ID {
		t.Fatalf("after a failure: moved %v from %s", moved.Lease.More.Moved, moved.Lease.More.Previous)
	}
}

func templateMintsChildren(t *testing.T, f *fixture) {
	s := spec(1)
	s.Username, s.Exit, s.Region = "acct-{session}-{country}", pool.ExitTemplate, "de"
	f.add(s)
	for range 2 {
		f.use(pool.ClassOK)
	}
	a := f.lease(pool.AcquireParams{Session: "a"})
	if a.Proxy().Username == s.Username || a.Proxy().Username != "acct-"+a.Lease.More.Child+"-de" {
		t.Fatalf("username %q", a.Proxy().Username)
	}
	f.report(a.Lease.Key, pool.ClassOK)
	again := f.lease(pool.AcquireParams{Session: "a"})
	if again.Proxy().Username != a.Proxy().Username {
		t.Fatal("the same session got another child")
	}
	f.report(again.Lease.Key, pool.ClassBlockedHard)
	fresh := f.lease(pool.AcquireParams{Session: "a"})
	if fresh.Proxy().Username == a.Proxy().Username || !fresh.Lease.More.Moved {
		t.Fatal("a burnt child was used again")
	}
	f.report(fresh.Lease.Key, pool.ClassOK)
	x, y := f.use(pool.ClassOK), f.use(pool.ClassOK)
	if x.Proxy().Username == y.Proxy().Username {
		t.Fatal("leases without a session share a child")
	}
}

func rotatingIsNotBenched(t *testing.T, f *fixture) {
	s := spec(1)
	s.Exit = pool.ExitRotating
	ids := f.add(s)
	for range 20 {
		f.wait(20 * time.Second) // the target is slowed down, the proxy is not benched
		f.use(pool.ClassBlockedHard)
		f.wait(20 * time.Second)
		f.use(pool.ClassTamper)
		f.wait(20 * time.Second)
		f.use(pool.ClassOK)
	}
	f.wait(20 * time.Second)
	if v := f.view(ids[0]); v.Judge.State != pool.StatusActive || v.Judge.Earned < 2 {
		t.Fatalf("%s with an earned cap of %d", v.Judge.State, v.Judge.Earned)
	}
	f.use(pool.ClassProxyDial)
	if v := f.view(ids[0]); v.Judge.State != pool.StatusCooling {
		t.Fatalf("its own dial failure: %s", v.Judge.State)
	}
}

func expiredProxiesAreNotLent(t *testing.T, f *fixture) {
	s := spec(1)
	s.ExpiresAt = f.now.Add(time.Minute)
	f.add(s)
	f.use(pool.ClassOK)
	f.wait(time.Minute)
	f.refused(pool.AcquireParams{}, pool.ReasonExpired)
	s.ExpiresAt = f.now.Add(time.Hour)
	f.add(s) // the list says it lives longer
	f.lease(pool.AcquireParams{})
}

func (f *fixture) patch(id proxy.ID, state pool.Status, until pool.Time) {
	f.t.Helper()
	_, err := f.Patch(f.ctx(), store.PatchParams{
		Pool: "p", Now: f.now, Filter: pool.Filter{ID: &id}, Patch: pool.Patch{State: &state, Reason: "by hand", Until: until},
	})
	f.must(err)
}

func pauseDrainResume(t *testing.T, f *fixture) {
	ids := f.add(spec(1))
	f.use(pool.ClassOK)
	f.wait(time.Minute)
	f.patch(ids[0], pool.StatusDisabled, f.now.Add(time.Minute))
	f.refused(pool.AcquireParams{}, pool.ReasonDisabled)
	f.wait(time.Minute)
	g := f.lease(pool.AcquireParams{}) // until is over
	f.patch(ids[0], pool.StatusDraining, 0)
	if got := f.report(g.Lease.Key, pool.ClassOK); got.Result != pool.ResultApplied {
		t.Fatal("draining took the lease away")
	}
	f.wait(time.Hour)
	f.refused(pool.AcquireParams{}, pool.ReasonDraining)
	f.patch(ids[0], pool.StatusActive, 0)
	if v := f.view(ids[0]); v.Judge.State != pool.StatusProbation {
		t.Fatalf("resumed to %s", v.Judge.State)
	}
	f.lease(pool.AcquireParams{})
}

func removeWaitsForTheLease(t *testing.T, f *fixture) {
	ids := f.add(spec(1))
	g := f.lease(pool.AcquireParams{})
	n, err := f.Remove(f.ctx(), store.RemoveParams{Pool: "p", Now: f.now, Filter: pool.Filter{ID: &ids[0]}})
	f.must(err)
	if n != 1 {
		t.Fatalf("removed %d", n)
	}
	f.view(ids[0]) // still there
	f.report(g.Lease.Key, pool.ClassOK)
	if _, err := f.Proxy(f.ctx(), "p", ids[0]); !errors.Is(err, store.ErrNoProxy) {
		t.Fatalf("after its last lease: %v", err)
	}
	if _, err := f.Remove(f.ctx(), store.RemoveParams{Pool: "p", Now: f.now, Filter: pool.Filter{ID: &ids[0]}}); !errors.Is(err, store.ErrNoProxy) {
		t.Fatalf("a second time: %v", err)
	}
}

func notesCountOnce(t *testing.T, f *fixture) {
	ids := f.addTwo()
	g := f.useFirst(pool.ClassOK)
	note := func(seq int64, n pool.Note) store.NoteResult {
		n.Key, n.Proxy, n.Target, n.Granted, n.Fence = g.Lease.Key, g.ID, g.Target, g.Lease.Granted, g.Lease.Fence
		res, err := f.Note(f.ctx(), store.NoteParams{Pool: "p", Now: f.now, Worker: "w", Seq: seq, Notes: []pool.Note{n}})
		f.must(err)
		return res
	}
	note(1, pool.Note{Valid: pool.Invalid})
	if res := note(1, pool.Note{Valid: pool.Invalid}); !res.Duplicate {
		t.Fatal("a batch was taken twice")
	}
	v := f.view(ids[0])
	if v.Ten.Invalid != 1 || v.Ten.OK != 1 || v.Judge.Streak != 0 {
		t.Fatalf("an invalid page: %+v", v.Ten)
	}
	f.wait(5 * time.Second)
	note(2, pool.Note{Ban: true})
	if v := f.view(ids[0]); v.Ten.OK != 0 || v.Ten.Total != 1 || v.Judge.State == pool.StatusCooling {
		t.Fatalf("a ban: %+v, %s", v.Ten, v.Judge.State)
	}
	f.refused(first, pool.ReasonPairCooling)
	f.lease(pool.AcquireParams{Target: "other.example", Select: first.Select})
}

func failuresAreKept(t *testing.T, f *fixture) {
	f.add(spec(1))
	g := f.lease(pool.AcquireParams{Worker: "w7", Request: pool.Request{Fingerprint: "fp", URL: "http://site.example/x", Attempt: 2}})
	f.settle(g.Lease.Key, pool.EndReport, pool.Outcome{Class: pool.ClassProxyDial, Phase: "proxy_dial", Error: "refused"})
	f.must(f.AddFailure(f.ctx(), "p", pool.Failure{At: f.now, Worker: "w8", Target: "site.example", Final: true, Reason: "gave up", Attempts: []string{"a", "b"}}))
	get := func(q store.FailureQuery) []store.FailureRow {
		q.Pool, q.Limit = "p", max(q.Limit, 1)
		res, err := f.Failures(f.ctx(), q)
		f.must(err)
		return res.Failures
	}
	all := get(store.FailureQuery{Limit: 10})
	if len(all) != 2 || !all[0].Final || all[0].Reason != "gave up" || len(all[0].Attempts) != 2 {
		t.Fatalf("got %+v", all)
	}
	one := get(store.FailureQuery{Worker: "w7", Class: pool.ClassProxyDial, Target: "site.example", Proxy: g.ID.String()})
	if len(one) != 1 || one[0].Request.Fingerprint != "fp" || one[0].Request.Attempt != 2 || one[0].Error != "refused" || one[0].Lease != g.Lease.Key.Short() {
		t.Fatalf("got %+v", one)
	}
	if older := get(store.FailureQuery{Before: all[0].N, Limit: 10}); len(older) != 1 {
		t.Fatalf("before the newest: %+v", older)
	}
}

func policyVersions(t *testing.T, f *fixture) {
	info, err := f.Pool(f.ctx(), "p")
	f.must(err)
	policy := info.Record.Policy
	policy.TTL = 7 * time.Second
	put := func(expect int64) error {
		_, err := f.PutPool(f.ctx(), store.PutPoolParams{
			Name: "p", Expect: expect, Record: store.PolicyRecord{Policy: policy, Overrides: map[string]string{"ttl": "7s"}},
		})
		return err
	}
	f.must(put(policy.Version))
	if err := put(policy.Version); !errors.Is(err, store.ErrConflict) {
		t.Fatalf("an old version: %v", err)
	}
	f.add(spec(1))
	if g := f.lease(pool.AcquireParams{}); g.Lease.TTL != 7*time.Second {
		t.Fatalf("ttl %s", g.Lease.TTL)
	}
	if err := f.DeletePool(f.ctx(), "p"); !errors.Is(err, store.ErrPoolInUse) {
		t.Fatalf("a pool with proxies: %v", err)
	}
	f.pool("q", policy)
	f.must(f.DeletePool(f.ctx(), "q"))
}

func survivesReopening(t *testing.T, f *fixture) {
	s := spec(2)
	s.Labels, s.Region, s.Group, s.Cap = "a=b", "de", "g", 3
	ids := f.add(spec(1), s, spec(3))
	f.patch(ids[2], pool.StatusDisabled, 0)
	first := f.lease(pool.AcquireParams{CallID: "c1", Digest: 1, Session: "s", Target: "a.example"})
	f.report(first.Lease.Key, pool.ClassProxyDial)
	second := f.lease(pool.AcquireParams{CallID: "c2", Digest: 2, Request: pool.Request{URL: "http://x/", Attempt: 4}})
	before := map[proxy.ID]pool.ProxyView{}
	for _, id := range ids {
		before[id] = f.view(id)
	}
	info, err := f.Pool(f.ctx(), "p")
	f.must(err)
	f.Store = f.reopen(t)
	if again, err := f.Pool(f.ctx(), "p"); err != nil || again.Totals != info.Totals || info.Totals.Granted != 2 {
		t.Fatalf("the pool's totals were %+v and are %+v, %v", info.Totals, again.Totals, err)
	}
	for _, id := range ids {
		was, is := before[id], f.view(id)
		if *was.Spec != *is.Spec || was.Recent != is.Recent || was.Admin != is.Admin || was.Judge != is.Judge || was.Mech != is.Mech || was.Quality != is.Quality {
			t.Fatalf("the record changed:\n%+v\n%+v", was, is)
		}
		if was.Today != is.Today {
			t.Fatalf("windows changed: %+v to %+v", was.Today, is.Today)
		}
	}
	if got := f.report(first.Lease.Key, pool.ClassOK); got.Result != pool.ResultDuplicate || got.Class != pool.ClassProxyDial {
		t.Fatalf("the ended lease: %+v", got)
	}
	again := f.lease(pool.AcquireParams{CallID: "c2", Digest: 2, Request: pool.Request{URL: "http://x/", Attempt: 4}})
	if again.Lease.Key != second.Lease.Key || again.Lease.Deadline != second.Lease.Deadline || again.Lease.More.Request.Attempt != 4 {
		t.Fatalf("the live lease: %+v", again.Lease)
	}
	if got := f.report(second.Lease.Key, pool.ClassOK); got.Result != pool.ResultApplied {
		t.Fatalf("its report: %+v", got)
	}
}

func exclusiveUnderConcurrency(t *testing.T, f *fixture) {
	const proxies, callers, rounds = 8, 32, 30
	for i := range proxies {
		f.add(spec(i))
	}
	var mu sync.Mutex
	held := map[proxy.ID]int{}
	seen := map[pool.Key]bool{}
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range rounds {
				res, err := f.Store.Acquire(context.Background(), store.AcquireParams{Pool: "p", AcquireParams: pool.AcquireParams{
					Target: fmt.Sprintf("t%d-%d.example", c, i), Worker: "w",
				}})
				if err != nil {
					t.Error(err)
					return
				}
				if res.Refusal != nil {
					continue
				}
				g := res.Grants[0]
				mu.Lock()
				if held[g.ID]++; held[g.ID] > 1 {
					t.Errorf("proxy %s has %d holders", g.ID, held[g.ID])
				}
				if seen[g.Lease.Key] {
					t.Errorf("lease %v twice", g.Lease.Key)
				}
				seen[g.Lease.Key] = true
				mu.Unlock()
				runtime.Gosched() // hold it while others try
				mu.Lock()
				held[g.ID]--
				mu.Unlock()
				if _, err := f.Settle(context.Background(), store.SettleParams{Pool: "p", Endings: []pool.Ending{{
					Key: g.Lease.Key, Outcome: pool.Outcome{Class: pool.ClassOK},
				}}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	info, err := f.Pool(f.ctx(), "p")
	f.must(err)
	if info.Counts.Live != 0 || info.Counts.Leased != 0 {
		t.Fatalf("%d leases are left", info.Counts.Live)
	}
}
