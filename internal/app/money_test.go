package app_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
)

// spend reports requests that cost 0.5 a piece.
func (d *daemon) spend(n int) (last client.Lease) {
	d.t.Helper()
	for range n {
		lease := d.acquire(client.AcquireRequest{})
		valid := true
		_, err := d.api.Report(d.t.Context(), lease.ID, client.Facts{Phase: "body", Status: 200, HTTPS: true, Bytes: 100_000_000, Valid: &valid})
		d.must(err)
		last = lease
	}
	return last
}

func startWithBudget(t *testing.T, atBudget string) *daemon {
	t.Helper()
	d := start(t, func(o *app.Options) { o.RecoverEvery = 20 * time.Millisecond })
	ctx := t.Context()
	_, err := d.api.PutPool(ctx, "dear", nil)
	d.must(err)
	_, err = d.api.PutPool(ctx, "default", map[string]any{
		"currency": "EUR", "fallback_pools": []string{"missing", "dear"}, "reuse_interval_ms": 0,
		"groups": map[string]any{"acme": map[string]any{
			"price_per_gb": 4, "price_per_request": 0.1, "price_per_month": 30, "budget_day": 5, "at_budget": atBudget,
		}},
	})
	d.must(err)
	d.addTo("default", "acme", "10.0.0.1:3128")
	d.addTo("dear", "other", "10.0.0.2:3128")
	return d
}

// TestBudget watches a group spend its budget: an event at 80 %, a rest at 100 %,
// and then the fallback pool.
func TestBudget(t *testing.T) {
	t.Parallel()
	d := startWithBudget(t, "fallback")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d.spend(8) // 4 of 5
	next := nextEvents(ctx, d.api)
	if e := next(); e.Event != "budget_warning" || e.Pool != "default" || e.Subject != "acme" {
		t.Fatalf("at 80 %%: %+v", e)
	}
	g := d.group("acme")
	if g.Requests != 8 || g.Bytes != 800_000_000 || g.Money.Day.Cost != 4 || g.Budget.Used != 0.8 || g.Budget.Until != nil {
		t.Fatalf("after 8 of 10: %+v %+v", g, g.Budget)
	}
	if c := g.Money.CostPer1000Valid; c == nil || *c < 500 || *c > 500+1.1*1000/8 {
		t.Fatalf("1000 valid pages cost %v, want 500 and a day of the flat price", c)
	}
	if last := d.spend(2); last.Pool != "default" {
		t.Fatalf("the budget is not spent yet: %+v", last)
	}
	if e := next(); e.Event != "budget_spent" {
		t.Fatalf("at 100 %%: %+v", e)
	}
	if g := d.group("acme"); g.Budget.Until == nil {
		t.Fatalf("a spent budget does not hold: %+v", g.Budget)
	}
	// The fallback pool serves, and a repeat finds its lease there.
	first := d.acquire(client.AcquireRequest{RequestID: "once"})
	again := d.acquire(client.AcquireRequest{RequestID: "once"})
	if first.Pool != "dear" || again.ID != first.ID {
		t.Fatalf("leases %+v and %+v", first, again)
	}
	_, err := d.api.Report(ctx, first.ID, client.Facts{Phase: "body", Status: 200, HTTPS: true})
	d.must(err)
	_, err = d.api.Acquire(ctx, client.AcquireRequest{Target: "shop.example", RequestID: "once"})
	isProblem(t, err, client.RequestEnded)
	// A larger budget holds at once.
	_, err = d.api.PutPool(ctx, "default", map[string]any{"groups": map[string]any{"acme": map[string]any{"budget_day": 6}}})
	d.must(err)
	if lease := d.acquire(client.AcquireRequest{}); lease.Pool != "default" {
		t.Fatalf("with a larger budget: %+v", lease)
	}
}

// TestBudgetStops refuses when the operator wants a stop, whatever the fallback pools have.
func TestBudgetStops(t *testing.T) {
	t.Parallel()
	d := startWithBudget(t, "stop")
	d.spend(10)
	_, err := d.api.Acquire(t.Context(), client.AcquireRequest{Target: "shop.example", WaitMS: 60_000})
	refused := wantProblem(t, err, client.NoProxy)
	if refused.Reasons["group_hold"] != 1 || refused.RetryAfterMS < 1000 {
		t.Fatalf("refused %+v", refused)
	}
}

// TestFallback goes to the fallback pool when the pool has nothing for the
// target, not as long as waiting helps.
func TestFallback(t *testing.T) {
	t.Parallel()
	d := startWithBudget(t, "fallback")
	held := d.acquire(client.AcquireRequest{})
	waited := make(chan client.Lease)
	go func() {
		res, err := d.api.Acquire(t.Context(), client.AcquireRequest{Target: "shop.example", WaitMS: 20_000, Worker: "waiter"})
		if err != nil {
			t.Error(err)
			close(waited)
			return
		}
		waited <- res.Leases[0]
	}()
	d.until(func() bool { // the waiter has asked
		workers, err := d.api.Workers(t.Context(), "")
		d.must(err)
		return slices.ContainsFunc(workers, func(w client.Worker) bool { return w.Name == "waiter" })
	})
	if lease := d.acquire(client.AcquireRequest{Worker: "hasty"}); lease.Pool != "dear" {
		t.Fatalf("who does not wait gets what there is, not %+v", lease)
	}
	_, err := d.api.Report(t.Context(), held.ID, client.Facts{Phase: "body", Status: 200, HTTPS: true})
	d.must(err)
	lease := <-waited
	if lease.Pool != "default" {
		t.Fatalf("the waiter got %+v, want the pool's own proxy", lease)
	}
}

func (d *daemon) group(name string) client.Group {
	d.t.Helper()
	list, err := d.api.Groups(d.t.Context(), "")
	d.must(err)
	for _, g := range list {
		if g.Group == name {
			return g
		}
	}
	d.t.Fatalf("no group %q in %+v", name, list)
	return client.Group{}
}

// nextEvents gives the events one by one; a zero event when there are no more.
func nextEvents(ctx context.Context, api *client.Client) func() client.Event {
	list := make(chan client.Event)
	go func() {
		defer close(list)
		for e, err := range api.Events(ctx, 0) {
			if err != nil {
				return
			}
			list <- e
		}
	}()
	return func() client.Event { return <-list }
}

func (d *daemon) addTo(poolName, group, list string) {
	d.t.Helper()
	_, err := d.api.Import(d.t.Context(), strings.NewReader(list), client.ImportOptions{Pool: poolName, Group: group, AllowSpecial: true})
	d.must(err)
}
