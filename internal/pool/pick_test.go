package pool_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
)

// TestExactWhenMostRest drives one target until most of the pool rests for it,
// so that openings are made, kept and dropped, and compares every answer with a
// look at all proxies.
func TestExactWhenMostRest(t *testing.T) {
	policy := pool.DefaultPolicy()
	policy.ReuseInterval = 20 * time.Minute
	st := pool.New("t", policy, judge.Rule)
	rng := rand.New(rand.NewPCG(3, 4))
	now := pool.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	const n = 3000
	list := make([]pool.Import, n)
	for i := range list {
		list[i] = importOf(i, 3)
	}
	st.Import(now, list)
	starts := map[string]map[proxy.ID]pool.Time{"a": {}, "b": {}}
	granted, refused := 0, 0
	for i := range 60_000 {
		now = now.Add(time.Duration(rng.IntN(300)) * time.Millisecond)
		target := "a"
		if i%7 == 0 {
			target = "b"
		}
		if i == 30_000 {
			now = now.Add(30 * time.Minute) // all rests end: the opening is dropped
		}
		res, err := st.Acquire(now, pool.AcquireParams{Target: target, Worker: "w"}, rng)
		if err != nil {
			t.Fatal(err)
		}
		if res.Refusal != nil {
			refused++
			if !res.Refusal.Exact {
				t.Fatal("the refusal is not exact")
			}
			if refused%40 != 0 {
				continue // a look at all is slow
			}
			for _, imp := range list {
				p := st.ProxyByID(imp.ID)
				v := st.View(now, p)
				if v.Status <= pool.StatusActive && v.Mech.InUse < v.CapNow && now >= starts[target][imp.ID].Add(policy.ReuseInterval) && starts[target][imp.ID] != 0 {
					t.Fatalf("step %d: refused although %s is free for %s", i, imp.ID, target)
				}
			}
			continue
		}
		granted++
		g := res.Grants[0]
		if last := starts[target][g.ID]; last != 0 && now < last.Add(policy.ReuseInterval) {
			t.Fatalf("step %d: started %s after its last start", i, now.Sub(last))
		}
		starts[target][g.ID] = now
		st.Settle(now, []pool.Ending{{Key: g.Lease.Key, Outcome: pool.Outcome{Class: pool.ClassOK}}}, rng)
	}
	if granted < 10_000 || refused < 1_000 {
		t.Errorf("%d granted, %d refused: the test saw too little", granted, refused)
	}
}

// TestLongestRestedGoesFirst: in a small pool the order of use is the order of rest.
func TestLongestRestedGoesFirst(t *testing.T) {
	policy := pool.DefaultPolicy()
	policy.ReuseInterval = 0
	st := pool.New("t", policy, judge.Rule)
	rng := rand.New(rand.NewPCG(1, 1))
	now := pool.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	var list []pool.Import
	for i := range 10 {
		list = append(list, importOf(i, 1))
	}
	st.Import(now, list)
	use := func() proxy.ID {
		now = now.Add(time.Second)
		res, err := st.Acquire(now, pool.AcquireParams{Target: "a", Worker: "w"}, rng)
		if err != nil || res.Refusal != nil {
			t.Fatal(err, res.Refusal)
		}
		st.Settle(now, []pool.Ending{{Key: res.Grants[0].Lease.Key, Outcome: pool.Outcome{Class: pool.ClassOK}}}, rng)
		return res.Grants[0].ID
	}
	var first []proxy.ID
	for range 10 {
		first = append(first, use())
	}
	for round := range 3 {
		for i, want := range first {
			if got := use(); got != want {
				t.Fatalf("round %d, place %d: %s, want %s", round, i, got, want)
			}
		}
	}
}

// TestGateKeepsTheFailingBack: good today, failing now, is kept back at the next
// acquire while others are ready, and tried again later.
func TestGateKeepsTheFailingBack(t *testing.T) {
	policy := pool.DefaultPolicy()
	policy.ReuseInterval = 0
	st := pool.New("t", policy, judge.Rule)
	rng := rand.New(rand.NewPCG(1, 1))
	now := pool.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	var list []pool.Import
	for i := range 8 {
		list = append(list, importOf(i, 1))
	}
	st.Import(now, list)
	bad := list[0].ID
	use := func(target string) (proxy.ID, pool.Key) {
		now = now.Add(100 * time.Millisecond)
		res, err := st.Acquire(now, pool.AcquireParams{Target: target, Worker: "w"}, rng)
		if err != nil || res.Refusal != nil {
			t.Fatal(err, res.Refusal)
		}
		return res.Grants[0].ID, res.Grants[0].Lease.Key
	}
	settle := func(key pool.Key, class pool.Class) {
		st.Settle(now, []pool.Ending{{Key: key, Outcome: pool.Outcome{Class: class}}}, rng)
	}
	for range 8000 {
		_, key := use("a")
		settle(key, pool.ClassOK)
	}
	now = now.Add(11 * time.Minute)
	fails := 0
	for i := 0; fails < 10; i++ { // on a target of its own each time, so that only the gate can keep it back
		id, key := use(string(rune('b' + i%20)))
		if id == bad {
			settle(key, pool.ClassTunnelReset)
			fails++
		} else {
			settle(key, pool.ClassOK)
		}
		if i > 500 {
			break // gated already
		}
	}
	v := st.View(now, st.ProxyByID(bad))
	if v.Quality.GatedUntil <= now || v.Today.OK < 900 {
		t.Fatalf("not gated: 10 min %+v, today %+v", v.Ten, v.Today)
	}
	for range 200 {
		id, key := use("z")
		settle(key, pool.ClassOK)
		if id == bad {
			t.Fatal("a gated proxy was granted while others are ready")
		}
	}
	now = v.Quality.GatedUntil
	seen := false
	for range 10 {
		id, key := use("z")
		settle(key, pool.ClassOK)
		seen = seen || id == bad
	}
	if !seen {
		t.Error("it was not tried again")
	}
}

// TestProbationKeepsToItsShare: at most a tenth of the grants are trials while
// others are ready, and one lease at a time.
func TestProbationKeepsToItsShare(t *testing.T) {
	policy := pool.DefaultPolicy()
	policy.ReuseInterval = 0
	policy.Cooldown.Rise = 100
	st := pool.New("t", policy, judge.Rule)
	rng := rand.New(rand.NewPCG(1, 1))
	now := pool.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	var list []pool.Import
	for i := range 40 {
		list = append(list, importOf(i, 1))
	}
	st.Import(now, list)
	resume := pool.StatusActive
	for i := range 30 {
		if _, err := st.Patch(now, pool.Filter{ID: &list[i].ID}, pool.Patch{State: &resume}, false); err != nil {
			t.Fatal(err)
		}
	}
	trials := 0
	const grants = 1000
	for range grants {
		now = now.Add(10 * time.Millisecond)
		res, err := st.Acquire(now, pool.AcquireParams{Target: "a", Worker: "w"}, rng)
		if err != nil || res.Refusal != nil {
			t.Fatal(err, res.Refusal)
		}
		if v := st.View(now, st.ProxyByID(res.Grants[0].ID)); v.Status == pool.StatusProbation {
			trials++
		}
		st.Settle(now, []pool.Ending{{Key: res.Grants[0].Lease.Key, Outcome: pool.Outcome{Class: pool.ClassOK}}}, rng)
	}
	if trials < grants/20 || trials > grants/10+1 {
		t.Errorf("%d of %d grants were trials", trials, grants)
	}
}
