package pool_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
)

func TestParseMoney(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "0", "3.5": "3.5", "0.0001": "0.0001", "007.10": "7.1", "1000000": "1000000", "0.000000001": "0.000000001", "5.": "5",
	} {
		if m, err := pool.ParseMoney(text); err != nil || m.String() != want {
			t.Errorf("%q: %s, %v", text, m, err)
		}
	}
	for _, text := range []string{"", ".5", "-1", "+1", "1e3", "1000000.1", "0.0000000001", "1,5", "NaN", " 1", "1_000", "99999999999999999999"} {
		if m, err := pool.ParseMoney(text); err == nil {
			t.Errorf("%q: read as %s", text, m)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		m := pool.Money(rapid.Int64Range(0, int64(pool.MoneyMax)).Draw(t, "amount"))
		if again, err := pool.ParseMoney(m.String()); err != nil || again != m {
			t.Fatalf("%d became %q and then %d, %v", m, m, again, err)
		}
	})
}

// TestBudgetsFollowTheCalendar: a day's budget ends with the local day, a month's
// with the month, and a new day begins at nothing.
func TestBudgetsFollowTheCalendar(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	policy := pool.DefaultPolicy()
	policy.Zone, policy.ReuseInterval = "Europe/Berlin", 0
	price, _ := pool.ParseMoney("1")
	policy.Groups = map[string]pool.GroupPolicy{"g": {PricePerRequest: price, BudgetDay: 2 * price, BudgetMonth: 5 * price}}
	st := pool.New("p", policy, judge.Rule)
	rng := rand.New(rand.NewPCG(1, 1))
	at := func(day, hour int) pool.Time { return pool.At(time.Date(2026, 3, day, hour, 0, 0, 0, berlin)) }
	item := importOf(1, 1)
	item.Spec.Group = "g"
	st.Import(at(28, 9), []pool.Import{item})
	spend := func(now pool.Time) *pool.Refusal {
		res, err := st.Acquire(now, pool.AcquireParams{Target: "t.example", Worker: "w"}, rng)
		if err != nil {
			t.Fatal(err)
		}
		if res.Refusal == nil {
			st.Settle(now, []pool.Ending{{Key: res.Grants[0].Lease.Key, Outcome: pool.Outcome{Class: pool.ClassOK, Bytes: 1000}}}, rng)
		}
		return res.Refusal
	}
	used := func(now pool.Time) (day, month int64) {
		st.Counts(now)
		g := st.Groups()[0]
		return g.Spend.Today(st.Calendar()).Requests, g.Spend.ThisMonth(st.Calendar()).Requests
	}
	for _, step := range []struct {
		now   pool.Time
		until pool.Time // of the refusal; 0 = it is served
	}{
		{at(28, 10), 0},
		{at(28, 11), 0},
		{at(28, 12), at(29, 0)}, // the 29th has 23 hours
		{at(29, 1), 0},
		{at(29, 12), 0},
		{at(29, 23), at(30, 0)},
		{at(30, 1), 0},
		{at(30, 2), at(32, 0)},
		{at(31, 12), at(32, 0)}, // five in the month
		{at(32, 0), 0},
	} {
		refusal := spend(step.now)
		if (refusal == nil) != (step.until == 0) || refusal != nil && refusal.NextDue != step.until {
			t.Fatalf("%s: %+v, want a rest until %s", step.now.Std().In(berlin), refusal, step.until.Std().In(berlin))
		}
		if refusal != nil && refusal.Reasons[pool.ReasonGroupHold] != 1 {
			t.Fatalf("%s: reasons %v", step.now.Std(), refusal.Reasons)
		}
	}
	if day, month := used(at(32, 1)); day != 1 || month != 1 {
		t.Errorf("in the new month: %d today, %d in it", day, month)
	}
}

// TestWhatCosts: a request costs once it has reached a proxy, and what is given
// back unused costs nothing.
func TestWhatCosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		end      pool.Ending
		requests int64
		bytes    int64
	}{
		{"a page", pool.Ending{Outcome: pool.Outcome{Class: pool.ClassOK, Bytes: 7}}, 1, 7},
		{"a ban", pool.Ending{Outcome: pool.Outcome{Class: pool.ClassBlockedHard, Bytes: 7}}, 1, 7},
		{"no proxy there", pool.Ending{Outcome: pool.Outcome{Class: pool.ClassProxyDial}}, 0, 0},
		{"the caller's own fault", pool.Ending{Outcome: pool.Outcome{Class: pool.ClassClientFault}}, 0, 0},
		{"given back", pool.Ending{Kind: pool.EndRelease}, 0, 0},
		{"a use without a report", pool.Ending{Kind: pool.EndUse}, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			policy := pool.DefaultPolicy()
			policy.Groups = map[string]pool.GroupPolicy{"provider": {PricePerGB: 1_000_000_000, PricePerRequest: 5}}
			st := pool.New("p", policy, judge.Rule)
			rng := rand.New(rand.NewPCG(1, 1))
			now := pool.At(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
			st.Import(now, []pool.Import{importOf(1, 1)})
			res, _ := st.Acquire(now, pool.AcquireParams{Target: "t.example", Worker: "w"}, rng)
			c.end.Key = res.Grants[0].Lease.Key
			st.Settle(now, []pool.Ending{c.end, c.end}, rng) // told twice, counted once
			want := pool.Usage{Requests: c.requests, Bytes: c.bytes, Cost: pool.Money(5*c.requests + c.bytes)}
			if got := st.Groups()[0].Spend.Total; got != want {
				t.Errorf("group %+v, want %+v", got, want)
			}
			if got := st.Targets(now)[0].Spend.Total; got != want {
				t.Errorf("target %+v, want %+v", got, want)
			}
			if p := st.ProxyByID(importOf(1, 1).ID); p.Bytes != c.bytes {
				t.Errorf("proxy: %d bytes", p.Bytes)
			}
		})
	}
}
