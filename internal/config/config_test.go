package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostler-proxy/hostler/internal/config"
	"github.com/hostler-proxy/hostler/internal/pool"
)

const good = `
pools:
  default:
    ttl: 20s
    cooldown:
      ladder: [1s, 2s]
      jitter: 0.1
      suspend_after: 7
    targets:
      shop.example: {reuse_interval: 12s}
    keep_query: true
    zone: Europe/Berlin
  second:
`

func TestParseAndApply(t *testing.T) {
	file, err := config.Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	p, err := config.Apply(file.Pools["default"], config.Settings{"ttl": "25s"})
	if err != nil {
		t.Fatal(err)
	}
	want := pool.DefaultPolicy()
	want.TTL, want.Cooldown.Ladder, want.Cooldown.Jitter, want.Cooldown.SuspendAfter = 25*time.Second, []time.Duration{time.Second, 2 * time.Second}, 0.1, 7
	want.KeepQuery, want.Zone = true, "Europe/Berlin"
	twelve := 12 * time.Second
	want.Targets = map[string]pool.TargetPolicy{"shop.example": {ReuseInterval: &twelve}}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	if p.Reuse("shop.example") != twelve || p.Reuse("other.example") != time.Second {
		t.Error("the target's own interval is not used")
	}
	if _, ok := file.Pools["second"]; !ok {
		t.Error("an empty pool is a pool")
	}
}

func TestFaultsNameTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"pools:\n  default:\n    ttk: 1s":                           "line 3: ttk: unknown setting; did you mean ttl?",
		"pools:\n  default:\n    ttl: soon":                         "line 3: ttl: \"soon\" is not a duration",
		"pools:\n  default:\n    ttl: 1h":                           "line 3: ttl: 1h is not within",
		"pools:\n  default:\n    cooldown: {jitter: 2}":             "line 3: cooldown.jitter: \"2\" is not a number within",
		"pools:\n  default:\n    cooldown:\n      ladder: []":       "line 4: cooldown.ladder",
		"pools:\n  default:\n    zone: Mars/Base":                   "line 3: zone",
		"pools:\n  default:\n    ttl: {a: 1}":                       "line 3: ttl",
		"pools:\n  de/fault:\n    ttl: 1s":                          "a pool's name has",
		"pool:\n  default: {}":                                      "unknown setting; known here are: pools, sources",
		"pools: [1]":                                                "must be a mapping",
		"pools: {default: {ttl: [":                                  "not valid YAML",
		"pools:\n  default:\n    ttl: 1s\n    ttl: 2s":              "",
		"pools:\n  default:\n    targets: {a.example: {reuze: 1s}}": "unknown setting",
	} {
		_, err := config.Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestEveryFieldRoundTrips(t *testing.T) {
	p := pool.DefaultPolicy()
	values := config.Values(&p)
	for path, value := range values {
		if err := config.Check(path, value); err != nil {
			t.Errorf("%s: its default %q is refused: %v", path, value, err)
		}
	}
	text := config.Format(map[string]config.Settings{"default": values})
	file, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	back, err := config.Apply(file.Pools["default"], nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, back); diff != "" {
		t.Error(diff)
	}
}

func TestDiff(t *testing.T) {
	a, b := pool.DefaultPolicy(), pool.DefaultPolicy()
	b.TTL = 20 * time.Second
	d := time.Second
	b.Targets = map[string]pool.TargetPolicy{"x.example": {ReuseInterval: &d}}
	want := []config.Change{{"targets.x.example.reuse_interval", "", "1s"}, {"ttl", "30s", "20s"}}
	if diff := cmp.Diff(want, config.Diff(&a, &b)); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(good)
	f.Add("pools: {a: {ttl: 1s, cooldown: {ladder: [1s]}}}")
	f.Add("a: &x [*x]")
	f.Add(goodSources)
	f.Add("sources: {a: {url: \"http://b.example/\", headers: {X: \"${Y}\"}}}")
	f.Add("---\n---\npools:")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := config.Parse([]byte(text))
		if err != nil {
			return
		}
		printed := config.FormatSources(file.Sources)
		if back, err := config.Parse([]byte(printed)); err != nil || len(back.Sources) != len(file.Sources) {
			t.Fatalf("what is printed does not read: %v\n%s", err, printed)
		} else if diff := cmp.Diff(file.Sources, back.Sources); diff != "" && len(file.Sources) > 0 {
			t.Fatalf("what is printed reads otherwise: %s\n%s", diff, printed)
		}
		for name, settings := range file.Pools {
			if config.CheckName(name) != nil {
				t.Fatalf("took the name %q", name)
			}
			p, err := config.Apply(settings, nil)
			if err != nil {
				continue
			}
			if p.TTL <= 0 || len(p.Cooldown.Ladder) == 0 || p.Cooldown.SuspendAfter < 1 {
				t.Fatalf("took %v", settings)
			}
		}
	})
}
