package pool_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
)

// kept is a sink that keeps records as a store does, by their numbers.
type kept struct {
	proxies  map[uint32]pool.Proxy
	pairs    map[pool.PairName]pool.Pair
	targets  map[uint32]pool.Target
	workers  map[uint32]pool.Worker
	groups   map[string]pool.Group
	sessions map[string]pool.Session
	leases   map[int64]pool.Lease
}

func newKept() *kept {
	return &kept{
		map[uint32]pool.Proxy{},
		map[pool.PairName]pool.Pair{},
		map[uint32]pool.Target{},
		map[uint32]pool.Worker{},
		map[string]pool.Group{},
		map[string]pool.Session{},
		map[int64]pool.Lease{},
	}
}

func (k *kept) RemoveProxy(n uint32) error          { delete(k.proxies, n); return nil }
func (k *kept) RemovePair(name pool.PairName) error { delete(k.pairs, name); return nil }
func (k *kept) RemoveTarget(n uint32) error         { delete(k.targets, n); return nil }
func (k *kept) RemoveWorker(n uint32) error         { delete(k.workers, n); return nil }
func (k *kept) RemoveSession(key string) error      { delete(k.sessions, key); return nil }
func (k *kept) Forget(n int64) error                { delete(k.leases, n); return nil }
func (k *kept) PutTarget(t *pool.Target) error      { k.targets[t.Number()] = *t; return nil }
func (k *kept) PutGroup(g *pool.Group) error        { k.groups[g.Name] = *g; return nil }
func (k *kept) PutWorker(w *pool.Worker) error      { k.workers[w.Number()] = *w; return nil }
func (k *kept) PutSession(x *pool.Session) error    { k.sessions[x.Key] = *x; return nil }
func (k *kept) PutLease(l *pool.Lease) error        { k.leases[l.N] = *l; return nil }
func (k *kept) PutFailure(*pool.Failure) error      { return nil }
func (k *kept) PutFinding(*pool.Finding) error      { return nil }
func (k *kept) PutPair(name pool.PairName, p *pool.Pair) error {
	c := *p
	if p.Charge != nil {
		charge := *p.Charge
		c.Charge = &charge
	}
	k.pairs[name] = c
	return nil
}

// PutProxy keeps only the parts that it is told of: a part that is not told is lost.
func (k *kept) PutProxy(p *pool.Proxy, parts pool.Parts) error {
	c := k.proxies[p.Number()]
	c.ID = p.ID
	if parts.Spec {
		c.Spec, c.Admin = p.Spec, p.Admin
	}
	if parts.Mech || parts.Windows {
		c.Mech, c.Recent, c.Quality, c.Windows, c.Bytes = p.Mech, p.Recent, p.Quality, p.Windows, p.Bytes
	}
	if parts.Judge {
		c.Judge, c.Doubt = p.Judge, p.Doubt
	}
	k.proxies[p.Number()] = c
	return nil
}

// restart builds a state from what was kept, as after a crash.
func (k *kept) restart(t *rapid.T, old *pool.State) *pool.State {
	st := pool.New(old.Name, old.Policy(), judge.Rule)
	st.Collect()
	st.LoadTotals(old.Now(), old.Totals(), old.Credit(), old.Offline())
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for n, p := range k.proxies {
		check(st.LoadProxy(n, p))
	}
	for _, g := range k.groups {
		st.LoadGroup(g)
	}
	for n, x := range k.targets {
		check(st.LoadTarget(n, x))
	}
	for n, w := range k.workers {
		check(st.LoadWorker(n, w))
	}
	for name, p := range k.pairs {
		check(st.LoadPair(name, p))
	}
	for _, x := range k.sessions {
		check(st.LoadSession(x, x.Gone()))
	}
	var ended []pool.Lease
	for _, n := range slices.Sorted(maps.Keys(k.leases)) {
		if l := k.leases[n]; l.Live() {
			check(st.LoadLease(l))
		} else {
			ended = append(ended, l)
		}
	}
	slices.SortStableFunc(ended, func(a, b pool.Lease) int { return int(a.Ended - b.Ended) })
	for _, l := range ended {
		st.LoadEnded(l)
	}
	st.Loaded(old.Now())
	return st
}

// Crash takes what changed, throws the state away, and goes on with one built
// from what was kept: nothing that anybody can see may differ.
func (m *machine) Crash(t *rapid.T) {
	if err := m.st.Take(m.kept); err != nil {
		t.Fatal(err)
	}
	before := m.visible()
	m.st = m.kept.restart(t, m.st)
	if diff := cmp.Diff(before, m.visible()); diff != "" {
		t.Fatal("after a crash:", diff)
	}
}

// visible lists all that can be seen of the state.
func (m *machine) visible() []string {
	var out []string
	targets := m.st.Targets(m.time()) // first: it lets go of pairs that have nothing to say any more
	for _, id := range m.ids {
		p := m.st.ProxyByID(id)
		if p == nil {
			out = append(out, id.String()+" gone")
			continue
		}
		v := m.st.View(m.time(), p)
		out = append(out, fmt.Sprintf("%s %s %v %v %v %v %+v %+v %+v %d", id, v.Status, v.Until, v.Admin, v.Mech, v.Judge, v.Quality, v.Ten, v.Today, v.CapNow))
		for _, pair := range m.st.Pairs(m.time(), p) {
			charge := "none"
			if pair.Charge != nil {
				charge = fmt.Sprintf("%+v", *pair.Charge)
			}
			out = append(out, fmt.Sprintf("  %s %d %s", pair.Target, pair.NextOK, charge))
		}
	}
	for _, l := range m.st.Leases(m.time(), 1000) {
		out = append(out, fmt.Sprintf("lease %v %d %d %d %+v", l.Lease.Key, l.Lease.Deadline, l.Lease.Hard, l.Lease.Fence, *l.Lease.More))
	}
	for _, w := range m.st.Workers() {
		out = append(out, fmt.Sprintf("worker %s %d %d %d %d", w.Name, w.Leases, w.Granted, w.Reported, w.Expired))
	}
	for _, x := range targets {
		out = append(out, fmt.Sprintf("target %s %d %v %v %v", x.Name, x.InFlight, x.Votes, x.Classes, x.Resting[0]+x.Resting[1]))
	}
	for _, g := range m.st.Groups() {
		if g.Proxies == 0 && g.HoldUntil == 0 {
			continue // nothing is known of it
		}
		out = append(out, fmt.Sprintf("group %s %d %d", g.Name, g.HoldUntil, g.Proxies))
	}
	counts := m.st.Counts(m.time())
	slices.Sort(out)
	return append(out, fmt.Sprintf("%+v %+v", counts, m.st.Totals()))
}

// TestOrderOfReportsDoesNotMatter: reports of different proxies can come in any
// order (invariant I25).
func TestOrderOfReportsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := pool.DefaultPolicy()
		policy.Cooldown.Jitter = 0
		n := rapid.IntRange(2, 8).Draw(t, "proxies")
		now := pool.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		classes := make([]pool.Class, n)
		for i := range classes {
			// tampering and quotas look at what others saw: a guard and a group's hold
			classes[i] = rapid.SampledFrom(slices.DeleteFunc(slices.Clone(machineClasses), func(c pool.Class) bool {
				return c == pool.ClassTamper || c == pool.ClassProxyQuota
			})).Draw(t, "class")
		}
		play := func(order []int) map[string]string {
			st := pool.New("t", policy, judge.Rule)
			rng := rand.New(rand.NewPCG(1, 1))
			var list []pool.Import
			for i := range n {
				list = append(list, importOf(i, 1))
			}
			st.Import(now, list)
			res, err := st.Acquire(now, pool.AcquireParams{Target: "a.example", Worker: "w", Count: n}, rng)
			if err != nil || len(res.Grants) != n {
				t.Fatal(err, len(res.Grants))
			}
			at := now.Add(time.Second)
			grants := map[string]pool.Key{}
			for _, g := range res.Grants {
				grants[g.ID.String()] = g.Lease.Key
			}
			for _, i := range order {
				st.Settle(at, []pool.Ending{{Key: grants[list[i].ID.String()], Outcome: pool.Outcome{Class: classes[i]}}}, rng)
			}
			if st.Targets(at)[0].Judge.Since != 0 || st.Offline().Open() || st.Groups()[0].Circuit.Open() {
				t.Skip("a verdict or a guard came into it")
			}
			out := map[string]string{}
			for _, imp := range list {
				v := st.View(at, st.ProxyByID(imp.ID))
				out[imp.ID.String()] = fmt.Sprintf("%v %+v %+v %v", v.Judge, v.Ten, v.Quality, len(st.Pairs(at, st.ProxyByID(imp.ID))))
			}
			return out
		}
		forward := make([]int, n)
		for i := range forward {
			forward[i] = i
		}
		shuffled := rapid.Permutation(forward).Draw(t, "order")
		if diff := cmp.Diff(play(forward), play(shuffled)); diff != "" {
			t.Fatal(diff)
		}
	})
}
