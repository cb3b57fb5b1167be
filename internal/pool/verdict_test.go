package pool_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
)

// site plays requests on a pool in virtual time.
type site struct {
	t   *testing.T
	st  *pool.State
	now pool.Time
	rng *rand.Rand
}

func newSite(t *testing.T, proxies, groups int) *site {
	t.Helper()
	policy := pool.DefaultPolicy()
	policy.Pacing.Start = 50
	x := &site{
		t: t, st: pool.New("p", policy, judge.Rule), rng: rand.New(rand.NewPCG(1, 2)),
		now: pool.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
	}
	for i := range proxies {
		item := importOf(i, 1)
		item.Spec.Group = fmt.Sprint("g", i%groups)
		x.st.Import(x.now, []pool.Import{item})
	}
	for range 4 { // all are proven
		for i := range proxies {
			x.ask(fmt.Sprint("warm", i%7, ".example"), fmt.Sprint("w", i%2), pool.ClassOK)
		}
		x.wait(time.Minute)
	}
	return x
}

func (x *site) wait(d time.Duration) { x.now = x.now.Add(d) }

// ask sends one request, 100 ms after the one before; nil = refused.
func (x *site) ask(target, worker string, class pool.Class) *pool.Grant {
	x.t.Helper()
	x.wait(100 * time.Millisecond)
	res, err := x.st.Acquire(x.now, pool.AcquireParams{Target: target, Worker: worker}, x.rng)
	if err != nil {
		x.t.Fatal(err)
	}
	if res.Refusal != nil {
		return nil
	}
	x.st.Settle(x.now, []pool.Ending{{Key: res.Grants[0].Lease.Key, Outcome: pool.Outcome{Class: class, Elapsed: 50 * time.Millisecond}}}, x.rng)
	return &res.Grants[0]
}

func (x *site) target(name string) pool.TargetView {
	x.t.Helper()
	for _, v := range x.st.Targets(x.now) {
		if v.Name == name {
			return v
		}
	}
	x.t.Fatalf("no target %s", name)
	return pool.TargetView{}
}

func (x *site) available() int {
	c := x.st.Counts(x.now)
	return c.Status[pool.StatusNew] + c.Status[pool.StatusActive] + c.Status[pool.StatusProbation]
}

// TestOutage: a site that fails everybody is found, costs no proxy and few
// requests, is probed, and comes back by slow start (I14).
func TestOutage(t *testing.T) {
	t.Parallel()
	for _, class := range []pool.Class{pool.ClassViaUnreachable, pool.ClassTarget5xx, pool.ClassTimeoutHeaders, pool.ClassBlockedHard} {
		t.Run(class.String(), func(t *testing.T) {
			t.Parallel()
			x := newSite(t, 60, 3)
			for i := range 100 {
				x.ask("shop.example", fmt.Sprint("w", i%2), pool.ClassOK)
			}
			want, wasted := pool.VerdictDown, 0
			if class == pool.ClassBlockedHard {
				want = pool.VerdictBlock
			}
			for i := 0; x.target("shop.example").Judge.Verdict != want; i++ {
				if x.ask("shop.example", fmt.Sprint("w", i%2), class) != nil {
					wasted++
				}
				if i > 600 {
					t.Fatalf("after %d failures the verdict is %s", wasted, x.target("shop.example").Judge.Verdict)
				}
			}
			if wasted > 40 || x.available() != 60 {
				t.Fatalf("found after %d failures, %d of 60 proxies available", wasted, x.available())
			}
			if r := x.target("shop.example").Resting[1]; r != 0 {
				t.Fatalf("%d pairs still pay for the outage", r)
			}
			if x.ask("shop.example", "w0", pool.ClassOK) != nil {
				t.Fatal("a request was started on a site that is out")
			}
			if x.ask("other.example", "w0", pool.ClassOK) == nil {
				t.Fatal("another site suffers")
			}
			probes, start := 0, x.now
			for x.now.Sub(start) < 10*time.Minute {
				if x.ask("shop.example", "w1", class) != nil {
					probes++
				}
			}
			if probes < 15 || probes > 60 {
				t.Fatalf("%d probes in ten minutes", probes)
			}
			start = x.now
			for x.target("shop.example").Judge.Verdict != pool.VerdictHealthy {
				x.ask("shop.example", "w0", pool.ClassOK)
				if x.now.Sub(start) > 2*time.Minute {
					t.Fatalf("two minutes after its return the verdict is %s", x.target("shop.example").Judge.Verdict)
				}
			}
			if out := x.target("shop.example").Judge.Out[0]; out.To == 0 || out.To < out.From {
				t.Fatalf("the outage is remembered as %+v", out)
			}
		})
	}
}

// TestGuards: failures to reach proxies that come together are the provider's,
// the worker's or our own, and the proxies that were charged get it back.
func TestGuards(t *testing.T) {
	t.Parallel()
	t.Run("offline", func(t *testing.T) {
		t.Parallel()
		x := newSite(t, 40, 4)
		for i := range 200 {
			x.ask("shop.example", fmt.Sprint("w", i%2), pool.ClassProxyDial)
		}
		if !x.st.Offline().Open() || x.available() != 40 {
			t.Fatalf("offline %v, %d of 40 available", x.st.Offline().Open(), x.available())
		}
		x.wait(3 * time.Second)
		if x.ask("shop.example", "w0", pool.ClassOK) == nil || x.st.Offline().Open() {
			t.Fatal("the network is back and nobody noticed")
		}
	})
	t.Run("a provider", func(t *testing.T) {
		t.Parallel()
		x := newSite(t, 40, 4)
		for range 400 {
			x.wait(100 * time.Millisecond)
			res, err := x.st.Acquire(x.now, pool.AcquireParams{Target: "shop.example", Worker: "w0"}, x.rng)
			if err != nil || res.Refusal != nil {
				continue
			}
			class := pool.ClassOK
			if res.Grants[0].Spec.Group == "g1" {
				class = pool.ClassProxyDial
			}
			x.st.Settle(x.now, []pool.Ending{{Key: res.Grants[0].Lease.Key, Outcome: pool.Outcome{Class: class, Elapsed: 50 * time.Millisecond}}}, x.rng)
		}
		for _, g := range x.st.Groups() {
			if g.Circuit.Open() != (g.Name == "g1") {
				t.Errorf("group %s: held %v", g.Name, g.Circuit.Open())
			}
		}
		if x.available() != 40 {
			t.Errorf("%d of 40 available", x.available())
		}
	})
	t.Run("a worker", func(t *testing.T) {
		t.Parallel()
		x := newSite(t, 60, 4)
		for i := range 200 {
			if i%4 == 0 {
				x.ask("shop.example", "bad", pool.ClassProxyDial)
			} else {
				x.ask("shop.example", "w0", pool.ClassOK)
			}
		}
		for _, w := range x.st.Workers() {
			if (w.Quarantined != 0) != (w.Name == "bad") {
				t.Errorf("worker %s: quarantined %v", w.Name, w.Quarantined != 0)
			}
		}
		if x.available() != 60 {
			t.Errorf("%d of 60 available", x.available())
		}
		x.ask("shop.example", "bad", pool.ClassOK)
		for _, w := range x.st.Workers() {
			if w.Quarantined != 0 {
				t.Errorf("worker %s is quarantined although it succeeds", w.Name)
			}
		}
	})
}

// TestPromotion: doubtful failures are the proxy's once it fails on two targets
// that work for others; on one target alone they never are.
func TestPromotion(t *testing.T) {
	t.Parallel()
	for _, targets := range []int{1, 2} {
		x := newSite(t, 30, 3)
		bad := importOf(0, 1).ID
		for i := range 12_000 {
			x.wait(100 * time.Millisecond)
			res, err := x.st.Acquire(x.now, pool.AcquireParams{Target: fmt.Sprint("t", i%targets, ".example"), Worker: "w0"}, x.rng)
			if err != nil || res.Refusal != nil {
				continue
			}
			class := pool.ClassOK
			if res.Grants[0].ID == bad {
				class = pool.ClassTimeoutHeaders
			}
			x.st.Settle(x.now, []pool.Ending{{Key: res.Grants[0].Lease.Key, Outcome: pool.Outcome{Class: class, Elapsed: 50 * time.Millisecond}}}, x.rng)
		}
		if streak := x.st.ProxyByID(bad).Judge.Streak; (streak > 0) != (targets == 2) {
			t.Errorf("failing on %d targets: streak %d", targets, streak)
		}
		if x.available() < 29 {
			t.Errorf("%d of 30 available", x.available())
		}
	}
}

// TestSiteLimit: a site that allows five a second is asked at about that pace,
// with few refusals.
func TestSiteLimit(t *testing.T) {
	t.Parallel()
	x := newSite(t, 200, 4)
	const allowed = 5.0
	tokens, last := allowed, x.now
	asked, rated := 0, 0
	for start := x.now; x.now.Sub(start) < 10*time.Minute; {
		x.wait(20 * time.Millisecond)
		res, err := x.st.Acquire(x.now, pool.AcquireParams{Target: "shop.example", Worker: "w0"}, x.rng)
		if err != nil || res.Refusal != nil {
			continue
		}
		tokens = min(allowed, tokens+allowed*x.now.Sub(last).Seconds())
		last = x.now
		class := pool.ClassOK
		if asked++; tokens < 1 {
			class = pool.ClassRateLimited
			rated++
		} else {
			tokens--
		}
		x.st.Settle(x.now, []pool.Ending{{Key: res.Grants[0].Lease.Key, Outcome: pool.Outcome{Class: class, Elapsed: 200 * time.Millisecond}}}, x.rng)
	}
	share, pace := float64(rated)/float64(asked), float64(asked-rated)/600/allowed
	t.Logf("%d requests, %.2f %% refused, %.0f %% of the limit used", asked, 100*share, 100*pace)
	if share > .02 || pace < .6 {
		t.Errorf("%.2f %% refused at %.0f %% of the limit", 100*share, 100*pace)
	}
}
