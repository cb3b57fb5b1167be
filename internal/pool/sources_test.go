package pool_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
)

// TestProxyGoesWithItsLastSource plays sources that list and leave proxies, and an
// operator who adds some, beside a plain list of who vouches for what.
func TestProxyGoesWithItsLastSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		st := pool.New("p", pool.DefaultPolicy(), judge.Rule)
		vouch := map[proxy.ID][]string{}
		var specs []pool.Spec
		for _, host := range []string{"a.example", "b.example", "c.example"} {
			specs = append(specs, pool.Spec{Proxy: proxy.Proxy{Scheme: "http", Host: host, Port: 80}})
		}
		draw := func() (pool.Spec, proxy.ID) {
			s := rapid.SampledFrom(specs).Draw(t, "proxy")
			return s, s.Proxy.ID(nil)
		}
		names := []string{"x", "y", pool.ByHand}
		t.Repeat(map[string]func(*rapid.T){
			"list": func(t *rapid.T) {
				spec, id := draw()
				name := rapid.SampledFrom(names).Draw(t, "name")
				spec.Source = name
				if name == pool.ByHand {
					spec.Source = ""
				}
				st.Import(1, []pool.Import{{ID: id, Spec: spec, Listed: name != pool.ByHand}})
				if !slices.Contains(vouch[id], name) {
					vouch[id] = append(vouch[id], name)
				}
			},
			"leave": func(t *rapid.T) {
				_, id := draw()
				name := rapid.SampledFrom(names).Draw(t, "name")
				st.Leave(1, name, []proxy.ID{id}, false)
				vouch[id] = slices.DeleteFunc(vouch[id], func(n string) bool { return n == name })
			},
			"": func(t *rapid.T) {
				for _, spec := range specs {
					id := spec.Proxy.ID(nil)
					want := strings.Join(vouch[id], ",")
					if want == pool.ByHand {
						want = ""
					}
					p := st.ProxyByID(id)
					if (p == nil) != (len(vouch[id]) == 0) || p != nil && p.Spec.Source != want {
						t.Fatalf("%s: in the pool %v, vouched for by %v", spec.Host, p != nil, vouch[id])
					}
					for _, name := range names {
						if p != nil && p.Spec.HasSource(name) != slices.Contains(vouch[id], name) {
							t.Fatalf("%s: %q of %v", spec.Host, name, vouch[id])
						}
					}
				}
			},
		})
	})
}
