package storetest

import (
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// capacityCounts: what a pool has for a target follows from its counts, and exits
// can be counted in parts.
func capacityCounts(t *testing.T, f *fixture) {
	policy := pool.DefaultPolicy()
	policy.ReuseInterval = time.Minute
	policy.Targets = map[string]pool.TargetPolicy{"limited.example": {MaxConcurrency: new(7)}}
	f.pool("p", policy)
	gateway := spec(9)
	gateway.Exit = pool.ExitRotating
	f.add(spec(1), spec(2), spec(3), gateway)
	look := func(target string, from uint32, limit int) store.CapacityResult {
		t.Helper()
		res, err := f.Capacity(t.Context(), store.CapacityParams{Pool: "p", Target: target, From: from, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if v := look("never.example", 0, 0); v.Usable != 4 || v.Proxies != 4 || !v.Free || v.Reuse != time.Minute || v.Faulty != 0 || v.Live != 0 {
		t.Fatalf("an unused target: %+v", v.SupplyView)
	}
	for range 3 {
		f.acquire(pool.AcquireParams{})
	}
	if v := look("site.example", 0, 0); v.Usable != 4 || v.Live != 3 || !v.Free {
		t.Fatalf("three of four are out: %+v", v.SupplyView)
	}
	last := f.acquire(pool.AcquireParams{})
	if v := look("site.example", 0, 0); v.Usable != 4 || v.Free {
		t.Fatalf("all are out: %+v", v.SupplyView)
	}
	f.report(last.Grants[0].Lease.Key, pool.ClassBlockedHard)
	static := last.Grants[0].Spec.Exit == pool.ExitStatic
	if v := look("site.example", 0, 0); static && (v.Faulty != 1 || v.Free || v.NextDue == 0) {
		t.Fatalf("one rests for a fault: %+v", v.SupplyView)
	}
	if v := look("other.example", 0, 0); v.Faulty != 0 || !v.Free {
		t.Fatalf("on another target: %+v", v.SupplyView)
	}
	if v := look("limited.example", 0, 0); v.Limit != 7 {
		t.Fatalf("a limit of seven: %+v", v.SupplyView)
	}
	var sum [pool.NumExits]pool.ExitCount
	parts := 0
	for from := uint32(0); ; {
		v := look("site.example", from, 2)
		for i, e := range v.Exits {
			sum[i].Proxies += e.Proxies
			sum[i].Slots += e.Slots
		}
		parts++
		if from = v.Next; from == 0 {
			break
		}
	}
	if sum[pool.ExitStatic].Proxies != 3 || sum[pool.ExitRotating].Proxies != 1 || sum[pool.ExitRotating].Slots < 1 || parts != 2 {
		t.Fatalf("exits in %d parts: %+v", parts, sum)
	}
	if _, err := f.Capacity(t.Context(), store.CapacityParams{Pool: "nope"}); err == nil {
		t.Fatal("a pool that is not there has a capacity")
	}
}
