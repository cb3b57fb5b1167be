package judge_test

import (
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
)

var noon = pool.At(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))

// newCase is an active proxy with one lease that ends now.
func newCase(class pool.Class, exit pool.Exit) *pool.Case {
	policy := pool.DefaultPolicy()
	p := &pool.Proxy{Spec: &pool.Spec{Exit: exit}, Judge: pool.Judgement{State: pool.StatusActive, Earned: 1}}
	p.Mech.Fence = 100
	target := &pool.Target{}
	target.Windows.Add(noon, 1, pool.Counts{Total: 1, OK: 1}) // others get answers: tampering can be told
	return &pool.Case{
		Now: noon, Day: 1, Policy: &policy, Lease: &pool.Lease{Fence: 100, More: &pool.More{}}, Kind: pool.EndReport,
		MayRest: true, MayPromote: true, Outcome: &pool.Outcome{Class: class}, Proxy: p, Target: target, Group: &pool.Group{Name: "g"},
	}
}

// TestEveryClass walks each class through proxy, pair, group and target
// (docs/policy.md, the table of classes).
func TestEveryClass(t *testing.T) {
	const s, h = time.Second, time.Hour
	for class, want := range map[pool.Class]struct {
		proxy  time.Duration // rest of the proxy
		pair   time.Duration // rest of the pair
		group  time.Duration
		vote   int
		counts pool.Counts
	}{
		pool.ClassOK:             {0, 0, 0, 1, pool.Counts{Total: 1, OK: 1}},
		pool.ClassTargetAnswer:   {0, 0, 0, 1, pool.Counts{Total: 1, OK: 1}},
		pool.ClassProxyDial:      {30 * s, 0, 0, 0, pool.Counts{Total: 1, Blamed: 1}},
		pool.ClassProxyTLS:       {30 * s, 0, 0, 0, pool.Counts{Total: 1, Blamed: 1}},
		pool.ClassProxyAuth:      {30 * s, 0, 0, 0, pool.Counts{Total: 1, Blamed: 1}},
		pool.ClassProxyQuota:     {0, 0, 60 * s, 0, pool.Counts{Total: 1}},
		pool.ClassProxyPolicy:    {0, 6 * h, 0, 0, pool.Counts{Total: 1}},
		pool.ClassViaUnreachable: {0, 30 * s, 0, -1, pool.Counts{Total: 1, Doubtful: 1}},
		pool.ClassTunnelReset:    {0, 30 * s, 0, -1, pool.Counts{Total: 1, Doubtful: 1}},
		pool.ClassTamper:         {h, 0, 0, 0, pool.Counts{Total: 1, Blamed: 1}},
		pool.ClassTimeoutHeaders: {0, 30 * s, 0, -1, pool.Counts{Total: 1, Doubtful: 1}},
		pool.ClassTimeoutBody:    {0, 30 * s, 0, 0, pool.Counts{Total: 1, Doubtful: 1}},
		pool.ClassTarget5xx:      {0, 0, 0, -1, pool.Counts{Total: 1}},
		pool.ClassRateLimited:    {0, 60 * s, 0, -1, pool.Counts{Total: 1}},
		pool.ClassBlockedHard:    {0, 30 * s, 0, -1, pool.Counts{Total: 1}},
		pool.ClassGeoBlocked:     {0, 24 * h, 0, 0, pool.Counts{Total: 1}},
		pool.ClassBlockedSoft:    {0, 30 * s, 0, -1, pool.Counts{Total: 1}},
		pool.ClassSuspectSoft:    {0, 0, 0, 0, pool.Counts{Total: 1}},
		pool.ClassClientFault:    {},
		pool.ClassWorkerFault:    {},
		pool.ClassLeaseExpired:   {},
		pool.ClassTunnelDone:     {},
		pool.ClassPlainDenied:    {0, 30 * s, 0, -1, pool.Counts{Total: 1, Doubtful: 1}},
		pool.ClassPlain5xx:       {0, 30 * s, 0, -1, pool.Counts{Total: 1, Doubtful: 1}},
	} {
		t.Run(class.String(), func(t *testing.T) {
			c := newCase(class, pool.ExitStatic)
			var r pool.Ruling
			judge.Rule(c, &r)
			var proxyRest, pairRest, groupRest time.Duration
			if end, _ := r.Proxy.Slots.Until(); r.ChangeProxy && end > 0 {
				proxyRest = end.Sub(noon)
			}
			if end, _ := r.Charge.Slots.Until(); r.ChangePair && end > 0 {
				pairRest = end.Sub(noon)
			}
			if r.ChangeGroup {
				groupRest = r.HoldUntil.Sub(noon)
			}
			if proxyRest != want.proxy || pairRest != want.pair || groupRest != want.group || r.Vote != want.vote || r.Counts != want.counts {
				t.Errorf("proxy %s, pair %s, group %s, vote %d, counts %+v; want %+v", proxyRest, pairRest, groupRest, r.Vote, r.Counts, want)
			}
			stepped := r.ChangeProxy && r.Proxy.Streak > 0
			if stepped != (want.proxy > 0) {
				t.Errorf("streak stepped: %v", stepped)
			}
			moving := newCase(class, pool.ExitTemplate)
			judge.Rule(moving, &r)
			if r.ChangePair = r.ChangePair && class == pool.ClassNone; r.ChangePair {
				t.Error("a template's pair was charged")
			}
			if ends := want.pair > 0 || class == pool.ClassTamper; r.DropSession != ends {
				t.Errorf("drops the child: %v", r.DropSession)
			}
		})
	}
}

// TestTamperNeedsAWitness: a certificate that nobody gets right is the target's
// own fault, and suspends no proxy.
func TestTamperNeedsAWitness(t *testing.T) {
	c := newCase(pool.ClassTamper, pool.ExitStatic)
	c.Target = &pool.Target{}
	var r pool.Ruling
	judge.Rule(c, &r)
	if r.ChangeProxy {
		t.Errorf("the proxy was judged: %+v", r.Proxy)
	}
}

func TestWilson(t *testing.T) {
	near := func(got, want float64) bool { return got > want-0.006 && got < want+0.006 }
	for _, c := range []struct{ ok, n, high float64 }{
		{0, 3, .56}, {0, 4, .49}, {0, 5, .43}, {0, 8, .32}, {0, 10, .28}, {2, 10, .51}, {5, 20, .47},
	} {
		if got := judge.WilsonHigh(c.ok, c.n, 1.96); !near(got, c.high) {
			t.Errorf("high of %v of %v: %.3f, want %.2f", c.ok, c.n, got, c.high)
		}
	}
	for _, c := range []struct{ ok, n, low float64 }{{5, 5, .57}, {10, 10, .72}, {20, 20, .84}} {
		if got := judge.WilsonLow(c.ok, c.n, 1.96); !near(got, c.low) {
			t.Errorf("low of %v of %v: %.3f, want %.2f", c.ok, c.n, got, c.low)
		}
	}
	if judge.WilsonLow(0, 0, 1) != 0 || judge.WilsonHigh(0, 0, 1) != 1 {
		t.Error("of nothing, nothing is known")
	}
}

func TestScoreLeansOnTheLongerWindows(t *testing.T) {
	good, bad := pool.Standing{OK: 1000}, pool.Standing{Bad: 20}
	if recent := judge.Score(bad, good, good); recent > 0.5 {
		t.Errorf("bad now, good before: %.2f", recent)
	}
	if idle := judge.Score(pool.Standing{}, good, good); idle < 0.8 {
		t.Errorf("idle, good before: %.2f", idle)
	}
	if unknown := judge.Score(pool.Standing{}, pool.Standing{}, pool.Standing{}); unknown < 0.33 || unknown > 0.34 {
		t.Errorf("unknown: %.4f", unknown)
	}
}

func FuzzFacts(f *testing.F) {
	f.Add("body", "", 200, true, "", "", "", int64(10))
	f.Add("handshake", "timeout", 0, false, "1", "a; error=dns_error", "quota", int64(99999))
	f.Fuzz(func(t *testing.T, phase, kind string, status int, https bool, after, proxyStatus, vendor string, elapsed int64) {
		facts := judge.Facts{
			Phase: judge.Phase(phase), Error: judge.ErrorKind(kind), Status: status, HTTPS: https, RetryAfter: after,
			ProxyStatus: proxyStatus, VendorError: vendor, ElapsedMS: elapsed,
		}
		if facts.Validate() != nil {
			return
		}
		o := judge.Observe(facts, budgets, noon)
		if o.Class == pool.ClassNone || o.Class >= pool.NumClasses {
			t.Fatalf("class %d", o.Class)
		}
		if o.RetryAfter != 0 && (o.RetryAfter < time.Second || o.RetryAfter > time.Hour) {
			t.Fatalf("retry after %s", o.RetryAfter)
		}
	})
}
