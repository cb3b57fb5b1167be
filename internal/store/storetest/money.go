package storetest

import (
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// budgetsSurvive: what was spent is remembered by proxy, group and target, and a
// group whose budget is spent rests after a restart too.
func budgetsSurvive(t *testing.T, f *fixture) {
	policy := pool.DefaultPolicy()
	policy.Groups = map[string]pool.GroupPolicy{"acme": {PricePerRequest: 3, PricePerGB: 1_000_000_000, BudgetDay: 10}}
	f.pool("p", policy)
	s := spec(1)
	s.Group = "acme"
	id := f.add(s)[0]
	res := f.acquire(pool.AcquireParams{})
	f.settle(res.Grants[0].Lease.Key, pool.EndReport, pool.Outcome{Class: pool.ClassOK, Bytes: 7})
	f.now = f.now.Add(time.Minute)
	for _, when := range []string{"at once", "after a restart"} {
		if when != "at once" {
			f.Store = f.reopen(t)
		}
		refused := f.acquire(pool.AcquireParams{}).Refusal
		if refused == nil || refused.Reasons[pool.ReasonGroupHold] != 1 || refused.NextDue <= f.now || refused.NextDue > f.now.Add(24*time.Hour) {
			t.Fatalf("%s: refusal %+v", when, refused)
		}
		groups, err := f.Groups(f.ctx(), "p")
		f.must(err)
		targets, err := f.Targets(f.ctx(), "p")
		f.must(err)
		want := pool.Usage{Requests: 1, Bytes: 7, Cost: 10}
		for what, spend := range map[string]pool.Spend{"group": groups.Groups[0].Spend, "target": targets.Targets[0].Spend} {
			if spend.Total != want || spend.Today(groups.Calendar) != want || spend.ThisMonth(groups.Calendar) != want {
				t.Fatalf("%s: the %s's spend is %+v", when, what, spend)
			}
		}
		p, err := f.Proxy(f.ctx(), "p", id)
		f.must(err)
		if p.Proxy.Bytes != 7 || p.Proxy.Mech.Uses != 1 {
			t.Fatalf("%s: the proxy has %d bytes and %d uses", when, p.Proxy.Bytes, p.Proxy.Mech.Uses)
		}
	}
	policy.Groups["acme"] = pool.GroupPolicy{BudgetDay: 11}
	_, err := f.PutPool(f.ctx(), store.PutPoolParams{Name: "p", Record: store.PolicyRecord{Policy: policy}, Expect: -1})
	f.must(err)
	if res := f.acquire(pool.AcquireParams{}); res.Refusal != nil {
		t.Fatalf("with a larger budget: %+v", res.Refusal)
	}
}
