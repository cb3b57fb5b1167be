package rules_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hostler-proxy/hostler/internal/rules"
)

func TestStatisticSize(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before int
		size   int64
		want   bool
	}{
		{"a wall among pages", 30, 2_000, true},
		{"too few to tell", 25, 2_000, false},
		{"a page like the others", 60, 52_000, false},
		{"a page twice as long", 60, 100_000, false},
		{"a wall among short answers", 60, 5_000_000, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := rules.NewStatistics()
			for i := range tt.before {
				size := 50_000 * math.Exp(0.3*float64(i%7-3)) // 20 KB to 123 KB
				if got := s.Look(1, rules.Page{URL: fmt.Sprintf("https://a.example/p/%d", i), Size: int64(size)}); got != nil {
					t.Fatalf("page %d hits %v", i, got)
				}
			}
			for i := range 2 {
				if got := s.Look(1, rules.Page{URL: fmt.Sprintf("https://a.example/p/99%d", i), Size: tt.size + int64(i)}); got != nil {
					t.Errorf("number %d of its kind hits %v", i+1, got)
				}
			}
			got := s.Look(1, rules.Page{URL: "https://a.example/p/999?x=1", Size: tt.size})
			if slices.Contains(got, rules.StatisticSize) != tt.want {
				t.Errorf("hits %v", got)
			}
			if got := s.Look(1, rules.Page{URL: "https://a.example/other", Size: tt.size}); got != nil {
				t.Errorf("another route hits %v", got)
			}
		})
	}
}

// TestStatisticSizeRarelyBlamesGoodPages measures false hits on page sizes as
// they are found: log-normal, with a factor of e between quartiles and more.
func TestStatisticSizeRarelyBlamesGoodPages(t *testing.T) {
	for _, sigma := range []float64{0.02, 0.3, 1} {
		rng := rand.New(rand.NewPCG(1, 2))
		s := rules.NewStatistics()
		hits := 0
		const n = 5_000
		for i := range n {
			size := 40_000 * math.Exp(sigma*rng.NormFloat64())
			hits += len(s.Look(1, rules.Page{URL: fmt.Sprintf("https://a.example/p/%d", i), Size: int64(size)}))
		}
		if share := float64(hits) / n; share > 0.003 {
			t.Errorf("sigma %v: %.2f %% of good pages hit", sigma, 100*share)
		}
	}
}

func TestStatisticSameBody(t *testing.T) {
	const hour = 3_600_000
	s := rules.NewStatistics()
	look := func(now int64, url, hash string, size int64) bool {
		return slices.Contains(s.Look(now, rules.Page{URL: url, Hash: hash, Size: size}), rules.StatisticSame)
	}
	for i := range 4 {
		if look(1, fmt.Sprintf("https://a.example/%d", i), "wall", 900) {
			t.Fatalf("hit at URL %d", i+1)
		}
	}
	if look(2, "https://a.example/3", "wall", 900) {
		t.Error("a URL that came twice counted twice")
	}
	if !look(3, "https://a.example/4", "wall", 900) || !look(4, "https://a.example/4", "wall", 900) {
		t.Error("the fifth URL does not hit")
	}
	for i := range 9 {
		if look(5, fmt.Sprintf("https://a.example/e/%d", i), "empty", 20) {
			t.Error("a short body hits")
		}
		if look(6+int64(i)*hour, fmt.Sprintf("https://a.example/s/%d", i), "slow", 900) {
			t.Error("URLs of different hours hit together")
		}
	}
	if look(7, "", "wall", 900) {
		t.Error("an answer without URL hits")
	}
}

func TestStatisticsAreBounded(t *testing.T) {
	s := rules.NewStatistics()
	for i := range 10_000 {
		s.Look(1, rules.Page{URL: "https://a.example/" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)), Size: 1000, Hash: fmt.Sprint(i)})
	}
	if r, b := s.Held(); r > 64 || b > 128 {
		t.Errorf("holds %d routes and %d bodies", r, b)
	}
}

func TestRoute(t *testing.T) {
	for url, want := range map[string]string{
		"https://User:p@Shop.example/p/123-x?q=1#f": "shop.example/p/*",
		"https://shop.example":                      "shop.example",
		"https://shop.example/":                     "shop.example/",
		"http://a/b/c/d/e/f/g/h":                    "a/b/c/d/e/f/*",
		"shop.example/about":                        "shop.example/about",
		"":                                          "",
	} {
		if got := rules.Route(url); got != want {
			t.Errorf("%q is %q, want %q", url, got, want)
		}
	}
}
