package storetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// specs gives all pages of a filter.
func (f *fixture) specs(filter pool.Filter, limit int) (hosts []string, all []pool.Spec) {
	f.t.Helper()
	for from := uint32(0); ; {
		res, err := f.Specs(f.ctx(), store.SpecsParams{Pool: "p", Filter: filter, From: from, Limit: limit})
		f.must(err)
		if len(res.Specs) > limit {
			f.t.Fatalf("%d specs on a page of %d", len(res.Specs), limit)
		}
		for _, s := range res.Specs {
			hosts = append(hosts, s.Host)
		}
		all = append(all, res.Specs...)
		if from = res.Next; from == 0 {
			slices.Sort(hosts)
			return hosts, all
		}
	}
}

func specsByPage(t *testing.T, f *fixture) {
	var specs []pool.Spec
	for i := range 5 {
		s := spec(i)
		s.Region, s.Group, s.Labels, s.Cap = "de", []string{"a", "b"}[i%2], "k=v", 3
		s.ExpiresAt = f.now.Add(1 << 40)
		specs = append(specs, s)
	}
	f.add(specs...)
	for _, limit := range []int{1, 2, 5, 100} {
		hosts, all := f.specs(pool.Filter{}, limit)
		if len(hosts) != 5 || len(slices.Compact(hosts)) != 5 {
			t.Fatalf("pages of %d: %v", limit, hosts)
		}
		for _, got := range all {
			i := slices.IndexFunc(specs, func(s pool.Spec) bool { return s.Proxy == got.Proxy })
			if got.AddedAt = 0; i < 0 || got != specs[i] {
				t.Fatalf("got %+v", got)
			}
		}
	}
	hosts, _ := f.specs(pool.Filter{Group: "b"}, 1)
	if diff := cmp.Diff([]string{"p1.example", "p3.example"}, hosts); diff != "" {
		t.Error(diff)
	}
	id := idOf(specs[0])
	if hosts, _ := f.specs(pool.Filter{ID: &id}, 10); len(hosts) != 1 || hosts[0] != "p0.example" {
		t.Errorf("by id: %v", hosts)
	}
	f.acquire(pool.AcquireParams{})
	_, err := f.Remove(f.ctx(), store.RemoveParams{Pool: "p", Now: f.now})
	f.must(err)
	if hosts, _ := f.specs(pool.Filter{}, 10); len(hosts) != 0 {
		t.Errorf("removed, and one waits for its lease: %v", hosts)
	}
	if _, err := f.Specs(f.ctx(), store.SpecsParams{Pool: "nope", Limit: 1}); !errors.Is(err, store.ErrNoPool) {
		t.Errorf("an absent pool: %v", err)
	}
}
