package pool_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
)

// machine plays operations on a State and keeps a simple account beside it, from
// which the invariants of docs/policy.md are checked after every step.
type machine struct {
	t      *rapid.T
	st     *pool.State
	now    pool.Time
	rng    *rand.Rand
	policy pool.Policy
	ids    []proxy.ID
	exits  map[proxy.ID]pool.Exit

	live     map[pool.Key]*account
	ended    []*account
	fences   map[proxy.ID]int64
	starts   map[pairKey]pool.Time
	applied  map[pool.Class]int64
	deadline map[pool.Key]pool.Time
	oracle   map[proxy.ID][]event
	clock    pool.Time // the newest that the state was told
	calls    map[string]*account
	kept     *kept
	n        int
}

type pairKey struct {
	id     proxy.ID
	target string
}

type account struct {
	key     pool.Key
	id      proxy.ID
	target  string
	granted pool.Time
	hard    pool.Time
	fence   int64
	call    string
	ended   bool
	kind    pool.EndKind
}

type event struct {
	at pool.Time
	ok bool
}

var machineTargets = []string{"a.example", "b.example", "c.example"}

func newMachine(t *rapid.T) *machine {
	p := pool.DefaultPolicy()
	p.ReuseInterval = rapid.SampledFrom([]time.Duration{0, time.Second, 30 * time.Second}).Draw(t, "reuse")
	p.Caps.Static = rapid.IntRange(1, 4).Draw(t, "cap")
	m := &machine{
		t: t, st: pool.New("test", p, judge.Rule), now: pool.At(time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)), policy: p,
		rng:  rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)),
		live: map[pool.Key]*account{}, fences: map[proxy.ID]int64{}, starts: map[pairKey]pool.Time{},
		applied: map[pool.Class]int64{}, deadline: map[pool.Key]pool.Time{}, oracle: map[proxy.ID][]event{},
		exits: map[proxy.ID]pool.Exit{}, calls: map[string]*account{}, kept: newKept(),
	}
	m.st.Collect()
	m.add(rapid.IntRange(1, 12).Draw(t, "proxies"))
	return m
}

func (m *machine) time() pool.Time {
	m.clock = max(m.clock, m.now)
	return m.now
}

func (m *machine) add(count int) {
	var list []pool.Import
	for range count {
		m.n++
		spec := pool.Spec{
			Proxy:  proxy.Proxy{Scheme: "http", Host: fmt.Sprintf("h%d.example", m.n), Port: 80, Username: "u"},
			Region: rapid.SampledFrom([]string{"de", "us"}).Draw(m.t, "region"),
			Group:  rapid.SampledFrom([]string{"", "g1", "g2"}).Draw(m.t, "group"),
			Exit:   rapid.SampledFrom([]pool.Exit{pool.ExitStatic, pool.ExitStatic, pool.ExitStatic, pool.ExitRotating, pool.ExitTemplate}).Draw(m.t, "exit"),
		}
		if rapid.IntRange(0, 9).Draw(m.t, "expires") == 0 {
			spec.ExpiresAt = m.now.Add(time.Duration(rapid.IntRange(1, 600).Draw(m.t, "life")) * time.Second)
		}
		id := spec.Proxy.ID(nil)
		m.ids = append(m.ids, id)
		m.exits[id] = spec.Exit
		list = append(list, pool.Import{ID: id, Spec: spec})
	}
	m.st.Import(m.time(), list)
}

func (m *machine) Add(*rapid.T) { m.add(1) }

func (m *machine) Acquire(t *rapid.T) {
	a := pool.AcquireParams{
		Target: rapid.SampledFrom(machineTargets).Draw(t, "target"), Tenant: "t",
		Worker: rapid.SampledFrom([]string{"w1", "w2", "w3"}).Draw(t, "worker"),
		Count:  rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(t, "count"),
		TTL:    time.Duration(rapid.IntRange(1, 60).Draw(t, "ttl")) * time.Second,
	}
	if rapid.IntRange(0, 3).Draw(t, "selective") == 0 {
		a.Select.Region = rapid.SampledFrom([]string{"de", "us", "xx"}).Draw(t, "wanted")
	}
	if rapid.IntRange(0, 4).Draw(t, "sticky") == 0 {
		a.Session = rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "session")
	}
	if rapid.IntRange(0, 3).Draw(t, "named") == 0 {
		a.CallID = fmt.Sprintf("call%d", rapid.IntRange(0, 20).Draw(t, "call"))
		a.Count = 1
	}
	if rapid.IntRange(0, 6).Draw(t, "desperate") == 0 {
		a.LeastBad = true
	}
	before, target := m.snapshot(), m.target(a.Target)
	sess, _ := m.st.Session(a.Session)
	res, err := m.st.Acquire(m.time(), a, m.rng)
	m.lapse()
	if err != nil {
		known := m.calls[a.CallID]
		if a.CallID == "" || known == nil {
			t.Fatalf("acquire: %v", err)
		}
		return
	}
	if res.Refusal != nil {
		m.checkRefusal(t, res.Refusal, &a)
		return
	}
	for i, g := range res.Grants {
		if m.live[g.Lease.Key] == nil {
			m.checkPace(t, target, i)
		}
		m.granted(t, &g, &a, before)
		if m.live[g.Lease.Key] == nil { // not the answer to a repeat
			m.checkSent(t, &sess, &g)
		}
	}
}

// target is the record of a target before an acquire.
func (m *machine) target(name string) *pool.TargetView {
	list := m.st.Targets(m.time())
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// checkPace holds the i-th grant of an acquire against the target's pace (I7).
func (m *machine) checkPace(t *rapid.T, v *pool.TargetView, i int) {
	if v == nil {
		return
	}
	a := &v.Judge
	switch now := m.st.Now(); {
	case a.Probe.Open() && (i > 0 || a.Probe.At > now):
		t.Fatalf("started on a target that is %s, the next probe is due at %d, now is %d", a.Verdict, a.Probe.At, now)
	case a.Probe.Open():
	case v.InFlight+i >= v.Limit && m.inFlight(v.Name) >= v.Limit:
		t.Fatalf("started with %d under way and a limit of %d", v.InFlight+i, v.Limit)
	case a.Pace.Hold > now:
		t.Fatal("started although the target said when to come back")
	case v.NextStart > now:
		t.Fatalf("started %d ms before the pace allows", v.NextStart-now)
	}
}

// inFlight counts the live leases on a target after an acquire: those that it
// reclaimed first do not count.
func (m *machine) inFlight(target string) int {
	n := 0
	for _, acc := range m.live {
		if acc.target == target {
			n++
		}
	}
	return n
}

// snapshot keeps what must hold at the moment of a grant.
func (m *machine) snapshot() map[proxy.ID]pool.ProxyView {
	out := map[proxy.ID]pool.ProxyView{}
	for _, id := range m.ids {
		if p := m.st.ProxyByID(id); p != nil {
			out[id] = m.st.View(m.time(), p)
		}
	}
	return out
}

func (m *machine) granted(t *rapid.T, g *pool.Grant, a *pool.AcquireParams, before map[proxy.ID]pool.ProxyView) {
	key := g.Lease.Key
	if old := m.live[key]; old != nil { // I11: the same request id, the same lease
		if a.CallID == "" || old.call != a.CallID {
			t.Fatalf("the lease %v was granted twice", key)
		}
		return
	}
	v := m.st.View(m.time(), m.st.ProxyByID(g.ID))
	if v.Mech.InUse > before[g.ID].CapNow { // I1
		t.Fatalf("proxy %s has %d leases and a cap of %d (%s)", g.ID, v.Mech.InUse, before[g.ID].CapNow, before[g.ID].Status)
	}
	if s := before[g.ID].Status; s > pool.StatusActive { // I5, I27
		t.Fatalf("granted a proxy that is %s", s)
	}
	if g.Lease.Fence <= m.fences[g.ID] { // I4
		t.Fatalf("fence %d after %d", g.Lease.Fence, m.fences[g.ID])
	}
	m.fences[g.ID] = g.Lease.Fence
	if m.exits[g.ID] == pool.ExitStatic { // I6
		pair := pairKey{g.ID, a.Target}
		if last, ok := m.starts[pair]; ok && g.Lease.Granted < last.Add(m.policy.ReuseInterval) {
			t.Fatalf("pair started %s after its last start", g.Lease.Granted.Sub(last))
		}
		m.starts[pair] = g.Lease.Granted
	}
	if a.Select.Region != "" && g.Spec.Region != a.Select.Region {
		t.Fatalf("asked for %s, got %s", a.Select.Region, g.Spec.Region)
	}
	acc := &account{
		key: key, id: g.ID, target: a.Target, granted: g.Lease.Granted, hard: g.Lease.Hard, fence: g.Lease.Fence, call: a.CallID,
	}
	m.live[key] = acc
	m.deadline[key] = g.Lease.Deadline
	if a.CallID != "" {
		m.calls[a.CallID] = acc
	}
}

// checkRefusal compares "none is free" with a look at every proxy.
func (m *machine) checkRefusal(t *rapid.T, r *pool.Refusal, a *pool.AcquireParams) {
	if paced := r.Reasons[pool.ReasonTargetPaced] + r.Reasons[pool.ReasonOffline]; r.Exact && a.Session == "" && paced == 0 {
		for _, id := range m.ids {
			p := m.st.ProxyByID(id)
			if p == nil || a.Select.Region != "" && p.Spec.Region != a.Select.Region {
				continue
			}
			if m.free(p, a.Target) {
				t.Fatalf("refused although %s is free for %s", id, a.Target)
			}
		}
	}
	sum := 0
	for _, n := range r.Reasons {
		if n < 0 {
			t.Fatalf("a reason counts below 0: %v", r.Reasons)
		}
		sum += n
	}
	if total := m.st.Counts(m.time()).Proxies; sum != total {
		t.Fatalf("the reasons add up to %d of %d proxies: %v", sum, total, r.Reasons)
	}
}

// free is the definition of what may be granted, without any index.
func (m *machine) free(p *pool.Proxy, target string) bool {
	v := m.st.View(m.time(), p)
	if v.Status > pool.StatusActive || v.Mech.InUse >= v.CapNow {
		return false
	}
	for _, g := range m.st.Groups() {
		if g.Name == p.Spec.Group && (g.HoldUntil > m.st.Now() || g.Circuit.Open()) {
			return false
		}
	}
	for _, pair := range m.st.Pairs(m.time(), p) {
		if pair.Target != target {
			continue
		}
		end := pair.NextOK
		if pair.Charge != nil {
			slot, _ := pair.Charge.Slots.Until()
			end = max(end, slot)
		}
		if end > m.st.Now() {
			return false
		}
	}
	return true
}

func (m *machine) pickLive(t *rapid.T) *account {
	var keys []pool.Key
	for k := range m.live {
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		t.Skip("nothing is leased")
	}
	slices.SortFunc(keys, func(a, b pool.Key) int { return int(int64(a[0]) - int64(b[0])) })
	return m.live[keys[rapid.IntRange(0, len(keys)-1).Draw(t, "lease")]]
}

var machineClasses = []pool.Class{
	pool.ClassOK, pool.ClassOK, pool.ClassOK, pool.ClassTargetAnswer, pool.ClassProxyDial, pool.ClassProxyAuth, pool.ClassProxyTLS,
	pool.ClassProxyQuota, pool.ClassProxyPolicy, pool.ClassViaUnreachable, pool.ClassTunnelReset, pool.ClassTamper,
	pool.ClassTimeoutHeaders, pool.ClassTimeoutBody, pool.ClassTarget5xx, pool.ClassRateLimited, pool.ClassBlockedHard,
	pool.ClassGeoBlocked, pool.ClassBlockedSoft, pool.ClassSuspectSoft, pool.ClassClientFault, pool.ClassWorkerFault,
	pool.ClassTunnelDone, pool.ClassPlainDenied, pool.ClassPlain5xx,
}

func (m *machine) Report(t *rapid.T) {
	acc := m.pickLive(t)
	class := rapid.SampledFrom(machineClasses).Draw(t, "class")
	m.settle(t, acc, pool.EndReport, class)
}

func (m *machine) Release(t *rapid.T) {
	acc := m.pickLive(t)
	m.settle(t, acc, pool.EndRelease, pool.ClassNone)
	if last := m.starts[pairKey{acc.id, acc.target}]; last == acc.granted {
		delete(m.starts, pairKey{acc.id, acc.target}) // it was no start after all
	}
}

func (m *machine) Revoke(t *rapid.T) { m.settle(t, m.pickLive(t), pool.EndRevoke, pool.ClassNone) }

func (m *machine) settle(t *rapid.T, acc *account, kind pool.EndKind, class pool.Class) {
	p := m.st.ProxyByID(acc.id)
	before := m.st.View(m.time(), p)
	outcome := pool.Outcome{Class: class, Elapsed: time.Second}
	if class == pool.ClassRateLimited && rapid.Bool().Draw(t, "said") {
		outcome.RetryAfter = time.Duration(rapid.IntRange(1, 120).Draw(t, "after")) * time.Second
	}
	res := m.st.Settle(m.time(), []pool.Ending{{Key: acc.key, Kind: kind, Outcome: outcome}}, m.rng)
	if res[0].Result != pool.ResultApplied {
		t.Fatalf("the first word on a live lease is %s", res[0].Result)
	}
	m.end(acc, kind)
	if kind == pool.EndReport {
		m.applied[class]++
		if class.Effect().Counts {
			m.oracle[acc.id] = append(m.oracle[acc.id], event{m.clock, class.Effect().Success})
		}
	}
	if after := m.st.ProxyByID(acc.id); after != nil {
		m.checkJudgement(t, &before, after, acc, class)
	}
	again := m.st.Settle(m.time(), []pool.Ending{{Key: acc.key, Kind: kind, Outcome: outcome}}, m.rng) // I10
	if again[0].Result != pool.ResultDuplicate {
		t.Fatalf("a repeat is %s", again[0].Result)
	}
}

// checkJudgement checks what a class may do to the proxy: I13, I15, I16, I17.
func (m *machine) checkJudgement(t *rapid.T, before *pool.ProxyView, after *pool.Proxy, acc *account, class pool.Class) {
	b, a := &before.Judge, &after.Judge
	if class >= pool.ClassTarget5xx && class <= pool.ClassWorkerFault || class == pool.ClassTunnelDone { // 13-20, 22
		if a.Streak > b.Streak || a.Level > b.Level {
			t.Fatalf("%s raised streak or level: %d/%d to %d/%d", class, b.Streak, b.Level, a.Streak, a.Level)
		}
	}
	stepped := a.Streak > b.Streak
	if stepped && acc.fence <= b.FailFence { // I17
		t.Fatalf("a lease from before the last counted failure stepped the streak")
	}
	if stepped && a.Streak != b.Streak+1 {
		t.Fatalf("streak %d to %d", b.Streak, a.Streak)
	}
	endBefore, _ := b.Slots.Until()
	endAfter, _ := a.Slots.Until()
	if endAfter < endBefore && class.Effect().Global != pool.Plus { // I15
		t.Fatalf("%s shortened a rest", class)
	}
	if stepped && a.State == pool.StatusCooling { // I16
		base := m.policy.Cooldown.Ladder[min(int(a.Level), len(m.policy.Cooldown.Ladder))-1]
		rest := a.Slots[pool.CauseFailure].Sub(m.clock)
		if rest < base && endBefore <= m.clock || rest > base*12/10+time.Millisecond && a.Slots[pool.CauseFailure] > b.Slots[pool.CauseFailure] {
			t.Fatalf("cooldown %s for a base of %s", rest, base)
		}
	}
	if a.Slots[pool.CauseFailure] > m.clock.Add(24*time.Hour) {
		t.Fatal("a rest runs longer than a day")
	}
}

func (m *machine) end(acc *account, kind pool.EndKind) {
	acc.ended, acc.kind = true, kind
	delete(m.live, acc.key)
	m.ended = append(m.ended, acc)
}

func (m *machine) ReportEnded(t *rapid.T) {
	if len(m.ended) == 0 {
		t.Skip("nothing has ended")
	}
	acc := m.ended[rapid.IntRange(0, len(m.ended)-1).Draw(t, "ended")]
	before := m.dump()
	res := m.st.Settle(m.time(), []pool.Ending{{Key: acc.key, Kind: pool.EndReport, Outcome: pool.Outcome{Class: pool.ClassProxyDial}}}, m.rng)
	if res[0].Result == pool.ResultApplied {
		t.Fatal("an ended lease ended again")
	}
	after := m.dump()
	if !slices.Equal(before, after) { // a late report never touches ownership or streak
		t.Fatalf("a late report changed ownership or judgement:\n%v\n%v", before, after)
	}
	if acc.kind == pool.EndExpire && res[0].Result == pool.ResultStale && res[0].Class != pool.ClassNone {
		m.oracle[acc.id] = nil // counted once, in a window; the oracle starts anew
		m.forget(acc.id)
	}
}

// forget takes a proxy out of the window check.
func (m *machine) forget(id proxy.ID) { m.oracle[id] = []event{{-1, false}} }

// dump lists who holds what and what is held against whom.
func (m *machine) dump() []string {
	var out []string
	for _, id := range m.ids {
		p := m.st.ProxyByID(id)
		if p == nil {
			continue
		}
		v := m.st.View(m.time(), p)
		out = append(out, fmt.Sprintf("%s %s %d %d %v", id, v.Status, v.Mech.InUse, v.Judge.Streak, v.Judge.Slots))
	}
	return out
}

func (m *machine) Heartbeat(t *rapid.T) {
	acc := m.pickLive(t)
	res := m.st.Extend(m.time(), "t", "w1", 4, []pool.Beat{{Key: acc.key, Fence: acc.fence}})
	if res[0].Result == pool.BeatLost {
		t.Fatal("a live lease is lost")
	}
	if res[0].Deadline < m.deadline[acc.key] || res[0].Deadline > acc.hard { // I8
		t.Fatalf("deadline %d to %d, hard %d", m.deadline[acc.key], res[0].Deadline, acc.hard)
	}
	m.deadline[acc.key] = res[0].Deadline
}

func (m *machine) HeartbeatEnded(t *rapid.T) {
	if len(m.ended) == 0 {
		t.Skip("nothing has ended")
	}
	acc := m.ended[rapid.IntRange(0, len(m.ended)-1).Draw(t, "ended")]
	if res := m.st.Extend(m.time(), "t", "w2", 0, []pool.Beat{{Key: acc.key}}); res[0].Result != pool.BeatLost { // I9
		t.Fatalf("a heartbeat of an ended lease is %s", res[0].Result)
	}
}

func (m *machine) Note(t *rapid.T) {
	if len(m.ended) == 0 {
		t.Skip("nothing has ended")
	}
	acc := m.ended[rapid.IntRange(0, len(m.ended)-1).Draw(t, "ended")]
	ban := rapid.Bool().Draw(t, "ban")
	before := m.dump()
	m.st.Note(m.time(), "t", "w1", 0, []pool.Note{{
		Key: acc.key, Proxy: acc.id, Target: acc.target, Granted: acc.granted, Fence: acc.fence, Valid: pool.Invalid, Ban: ban,
	}}, m.rng)
	if !slices.Equal(before, m.dump()) {
		t.Fatal("a note changed a proxy")
	}
	if ban {
		m.forget(acc.id)
	}
}

func (m *machine) Wait(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 90_000).Draw(t, "ms")) * time.Millisecond)
}

func (m *machine) WaitLong(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "hours")) * time.Hour)
}

func (m *machine) ClockBack(t *rapid.T) {
	m.now = m.now.Add(-time.Duration(rapid.IntRange(1, 3600).Draw(t, "s")) * time.Second)
}

func (m *machine) Reclaim(*rapid.T) {
	m.st.Reclaim(m.time(), 100, m.rng)
	m.lapse()
}

// lapse books the leases that the state reclaimed by itself.
func (m *machine) lapse() {
	for key, acc := range m.live {
		if _, ok := m.st.Lease(key); ok {
			continue
		}
		if m.clock < m.deadline[key].Add(m.policy.Grace) {
			m.t.Fatalf("a lease was reclaimed %s before its time", m.deadline[key].Add(m.policy.Grace).Sub(m.clock))
		}
		m.end(acc, pool.EndExpire)
	}
}

func (m *machine) Sweep(t *rapid.T) {
	if n := m.st.Sweep(m.time(), 1000); n != 0 {
		t.Fatalf("the sweep mended %d records", n)
	}
}

func (m *machine) Patch(t *rapid.T) {
	state := rapid.SampledFrom([]pool.Status{pool.StatusActive, pool.StatusDraining, pool.StatusDisabled}).Draw(t, "state")
	id := rapid.SampledFrom(m.ids).Draw(t, "id")
	change := pool.Patch{State: &state, Reason: "test"}
	if rapid.Bool().Draw(t, "for a time") {
		change.Until = m.clock.Add(time.Minute)
	}
	if rapid.Bool().Draw(t, "move") {
		region := rapid.SampledFrom([]string{"de", "us", "fr"}).Draw(t, "region")
		change.Region = &region
	}
	if _, err := m.st.Patch(m.time(), pool.Filter{ID: &id}, change, false); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) Remove(t *rapid.T) {
	id := rapid.SampledFrom(m.ids).Draw(t, "id")
	m.st.Remove(m.time(), pool.Filter{ID: &id})
	held := false
	for _, acc := range m.live {
		held = held || acc.id == id
	}
	if gone := m.st.ProxyByID(id) == nil; gone == held { // I28
		t.Fatalf("removed with live leases %v: gone %v", held, gone)
	}
	delete(m.oracle, id)
	m.forget(id)
	for pair := range m.starts {
		if pair.id == id && !held {
			delete(m.starts, pair)
		}
	}
}

// Renew changes a proxy's password, as a refresh of its source does: the account
// goes on under the new id.
func (m *machine) Renew(t *rapid.T) {
	at := rapid.IntRange(0, len(m.ids)-1).Draw(t, "at")
	old := m.ids[at]
	p := m.st.ProxyByID(old)
	if p == nil || p.Admin.Remove {
		t.Skip("it is gone, or going")
	}
	m.n++
	spec := *p.Spec
	spec.Source, spec.Password = "s", proxy.Secret(fmt.Sprintf("p%d", m.n))
	id := spec.Proxy.ID(nil)
	claim := *p.Spec // the source must be the only one
	claim.Source = "s"
	m.st.Import(m.time(), []pool.Import{{ID: old, Listed: true, Spec: claim}})
	m.st.Leave(m.time(), pool.ByHand, []proxy.ID{old}, false)
	res := m.st.Import(m.time(), []pool.Import{{ID: id, Listed: true, Spec: spec, Succeeds: old}})
	if res[0] != pool.ImportedRenewed || m.st.ProxyByID(old) != nil {
		t.Fatalf("a changed password is %d", res[0])
	}
	m.ids[at], m.exits[id], m.fences[id] = id, m.exits[old], m.fences[old]
	m.oracle[id] = m.oracle[old]
	delete(m.oracle, old)
	for pair, last := range m.starts {
		if pair.id == old {
			m.starts[pairKey{id, pair.target}] = last
			delete(m.starts, pair)
		}
	}
	for _, acc := range m.live {
		if acc.id == old {
			acc.id = id
		}
	}
	for _, acc := range m.ended {
		if acc.id == old {
			acc.id = id
		}
	}
}

// Check holds the state against the account after every step.
func (m *machine) Check(t *rapid.T) {
	inUse := map[proxy.ID]int{}
	for key, acc := range m.live {
		inUse[acc.id]++
		if _, ok := m.st.Lease(key); !ok {
			t.Fatalf("lease %v vanished", key)
		}
	}
	if n := m.st.Live(); n != len(m.live) {
		t.Fatalf("%d leases live, %d accounted for", n, len(m.live))
	}
	counts := m.st.Counts(m.time())
	sum, ready, leased := 0, 0, 0
	for _, n := range counts.Status {
		sum += n
	}
	for _, id := range m.ids {
		p := m.st.ProxyByID(id)
		if p == nil {
			continue
		}
		v := m.st.View(m.time(), p)
		if v.Mech.InUse != inUse[id] { // I2
			t.Fatalf("proxy %s: in use %d, live leases %d", id, v.Mech.InUse, inUse[id])
		}
		m.checkWake(t, &v)
		m.checkWindows(t, &v)
		if v.Mech.InUse > 0 {
			leased++
		}
		if v.Status <= pool.StatusActive && v.Mech.InUse < v.CapNow {
			ready++
		}
	}
	if sum != counts.Proxies || leased != counts.Leased || ready < counts.Ready {
		t.Fatalf("counts %+v, looked at: %d leased, %d ready", counts, leased, ready)
	}
	total := m.st.Totals()
	for class, n := range m.applied { // I12
		if class != pool.ClassBlockedSoft && total.Classes[class] != n {
			t.Fatalf("%s: counted %d, applied %d", class, total.Classes[class], n)
		}
	}
}

// checkWake: whatever rests has an end (I18), and what is in probation without a
// lease can be had (I19).
func (m *machine) checkWake(t *rapid.T, v *pool.ProxyView) {
	if (v.Status == pool.StatusCooling || v.Status == pool.StatusSuspended) && v.Until <= m.st.Now() {
		t.Fatalf("%s without an end", v.Status)
	}
	if v.Status == pool.StatusProbation && v.CapNow != 1 {
		t.Fatalf("probation with a cap of %d", v.CapNow)
	}
}

// checkWindows compares the rings with a list of all events (I21).
func (m *machine) checkWindows(t *rapid.T, v *pool.ProxyView) {
	events := m.oracle[v.ID]
	if len(events) > 0 && events[0].at < 0 {
		return
	}
	for _, w := range []struct {
		got    pool.Counts
		bucket pool.Time
		count  pool.Time
	}{{v.Ten, 60_000, 10}, {v.Hour, 300_000, 12}} {
		var want pool.Counts
		from := (m.st.Now()/w.bucket - w.count + 1) * w.bucket
		for _, e := range events {
			if e.at >= from {
				want.Total++
				if e.ok {
					want.OK++
				}
			}
		}
		if w.got.Total != want.Total || w.got.OK != want.OK {
			t.Fatalf("window of %d min: %d of %d, want %d of %d", w.count*w.bucket/60_000, w.got.OK, w.got.Total, want.OK, want.Total)
		}
	}
}

// quiet lets everything run out and checks that nothing is left (I20).
func (m *machine) quiet(t *rapid.T) {
	m.now = m.clock.Add(25 * time.Hour)
	for len(m.st.Reclaim(m.time(), 100, m.rng)) > 0 {
	}
	m.lapse()
	m.st.Sweep(m.time(), 1000)
	if len(m.live) != 0 || m.st.Live() != 0 {
		t.Fatalf("%d leases are left", m.st.Live())
	}
	m.Check(t)
	for _, id := range m.ids {
		p := m.st.ProxyByID(id)
		if p == nil {
			continue
		}
		switch v := m.st.View(m.time(), p); v.Status {
		case pool.StatusCooling, pool.StatusSuspended:
			t.Fatalf("%s a day after everything ended", v.Status)
		case pool.StatusNew, pool.StatusProbation, pool.StatusActive:
			if !m.free(p, "fresh.example") && p.Spec.Group == "" {
				t.Fatalf("%s proxy is not free on a fresh target", v.Status)
			}
		}
	}
}

// TestStateMachine plays random operations. CI sets the number of sequences and
// steps with -rapid.checks and -rapid.steps.
func TestStateMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		t.Repeat(map[string]func(*rapid.T){
			"": m.Check, "acquire": m.Acquire, "acquire2": m.Acquire, "acquire3": m.Acquire, "report": m.Report, "report2": m.Report,
			"release": m.Release, "revoke": m.Revoke, "revoke many": m.RevokeMany, "move session": m.MoveSession, "release group": m.ReleaseGroup, "report ended": m.ReportEnded, "heartbeat": m.Heartbeat,
			"heartbeat ended": m.HeartbeatEnded, "note": m.Note, "wait": m.Wait, "wait2": m.Wait, "wait long": m.WaitLong,
			"clock back": m.ClockBack, "reclaim": m.Reclaim, "sweep": m.Sweep, "patch": m.Patch, "remove": m.Remove, "add": m.Add, "crash": m.Crash, "renew": m.Renew,
		})
		m.quiet(t)
	})
}
