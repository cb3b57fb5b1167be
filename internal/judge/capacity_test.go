package judge_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
)

func TestCapacity(t *testing.T) {
	static := func(n, slots int) judge.Supply { return judge.Supply{pool.ExitStatic: {Proxies: n, Slots: slots}} }
	for _, c := range []struct {
		name    string
		supply  judge.Supply
		bounds  judge.Bounds
		rps     float64
		at      int // at once
		workers int
		by      judge.Limiter
	}{
		{
			"a thousand once a minute are not a thousand workers", static(1000, 1000),
			judge.Bounds{Reuse: time.Minute, Hold: 2 * time.Second},
			1000.0 / 60, 34, 37, judge.ByReuse,
		},
		{
			"200 once in half a minute", static(200, 200),
			judge.Bounds{Reuse: 30 * time.Second, Hold: 2 * time.Second},
			200.0 / 30, 14, 15, judge.ByReuse,
		},
		{"long requests", static(10, 10), judge.Bounds{Reuse: time.Second, Hold: 2 * time.Second}, 5, 10, 10, judge.ByProxies},
		{"caps share the hold", static(10, 40), judge.Bounds{Reuse: time.Second, Hold: 2 * time.Second}, 10, 20, 22, judge.ByReuse},
		{"without a reuse interval", static(10, 10), judge.Bounds{Hold: 100 * time.Millisecond}, 100, 10, 10, judge.ByProxies},
		{
			"a rotating gateway knows no reuse",
			judge.Supply{pool.ExitRotating: {Proxies: 1, Slots: 100}},
			judge.Bounds{Reuse: time.Hour, Hold: 2 * time.Second},
			50, 100, 100, judge.ByProxies,
		},
		{
			"a template neither",
			judge.Supply{pool.ExitTemplate: {Proxies: 2, Slots: 200}},
			judge.Bounds{Reuse: time.Hour, Hold: time.Second},
			200, 200, 200, judge.ByProxies,
		},
		{
			"kinds add up",
			judge.Supply{pool.ExitStatic: {Proxies: 60, Slots: 60}, pool.ExitRotating: {Proxies: 1, Slots: 4}},
			judge.Bounds{Reuse: time.Minute, Hold: 2 * time.Second},
			3, 6, 7, judge.ByProxies,
		},
		{
			"a limit of the target", static(1000, 1000),
			judge.Bounds{Reuse: time.Second, Hold: 2 * time.Second, Limit: 8},
			4, 8, 9, judge.ByTarget,
		},
		{
			"a gap of the target", static(1000, 1000),
			judge.Bounds{Reuse: time.Second, Hold: 2 * time.Second, Limit: 800, Gap: 100 * time.Millisecond},
			10, 20, 22, judge.ByTarget,
		},
		{
			"too few workers", static(1000, 1000),
			judge.Bounds{Reuse: time.Second, Hold: 2 * time.Second, Declared: 10},
			5, 10, 1000, judge.ByWorkers,
		},
		{"enough workers", static(10, 10), judge.Bounds{Hold: time.Second, Declared: 11}, 10, 10, 10, judge.ByProxies},
		{"nothing", judge.Supply{}, judge.Bounds{Reuse: time.Second, Hold: time.Second, Declared: 4}, 0, 0, 0, judge.ByProxies},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := judge.CapacityOf(c.supply, c.bounds)
			if math.Abs(got.RPS-c.rps) > 1e-9 || got.Concurrency != c.at || got.Workers != c.workers || got.LimitedBy != c.by {
				t.Errorf("got %+v, want %v rps, %d at once, %d workers, by %s", got, c.rps, c.at, c.workers, c.by)
			}
		})
	}
}

// TestCapacityKeepsItsBounds: whatever the numbers, no bound is passed, and more
// of anything never carries less.
func TestCapacityKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s judge.Supply
		slots := 0
		for exit := range s {
			s[exit].Proxies = rapid.IntRange(0, 1000).Draw(t, "proxies")
			s[exit].Slots = s[exit].Proxies * rapid.IntRange(1, 100).Draw(t, "cap")
			slots += s[exit].Slots
		}
		b := judge.Bounds{
			Reuse: time.Duration(rapid.IntRange(0, 100_000).Draw(t, "reuse")) * time.Millisecond,
			Hold:  time.Duration(rapid.IntRange(0, 100_000).Draw(t, "hold")) * time.Millisecond,
			Limit: rapid.IntRange(0, 1000).Draw(t, "limit"), Declared: rapid.IntRange(0, 1000).Draw(t, "declared"),
			Gap: time.Duration(rapid.IntRange(0, 10_000).Draw(t, "gap")) * time.Millisecond,
		}
		got := judge.CapacityOf(s, b)
		if got.Concurrency > slots || got.Workers > slots || got.RPS < 0 || math.IsNaN(got.RPS) || math.IsInf(got.RPS, 0) {
			t.Fatalf("%+v of %d slots", got, slots)
		}
		if b.Limit > 0 && got.Concurrency > b.Limit || b.Declared > 0 && got.Concurrency > b.Declared {
			t.Fatalf("%+v passes %+v", got, b)
		}
		if b.Gap > 0 && got.RPS*b.Gap.Seconds() > 1+1e-9 {
			t.Fatalf("%+v starts sooner than each %s", got, b.Gap)
		}
		s[0].Proxies++
		s[0].Slots++
		if more := judge.CapacityOf(s, b); more.RPS < got.RPS-1e-9 {
			t.Fatalf("a proxy more carries %v after %v", more.RPS, got.RPS)
		}
	})
}
