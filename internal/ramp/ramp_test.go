package ramp_test

import (
	"encoding/xml"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
	"github.com/hostler-proxy/hostler/internal/lab"
	"github.com/hostler-proxy/hostler/internal/ramp"
)

// place is a lab with a daemon that lends its proxies.
func place(t *testing.T, target lab.TargetSpec, proxies ...lab.ProxySpec) (*lab.Lab, *client.Client) {
	t.Helper()
	l, err := lab.Start(t.Context(), lab.Options{Seed: 1, Targets: []lab.TargetSpec{target}, Proxies: proxies})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	a, err := app.New(t.Context(), app.Options{
		Listen: "127.0.0.1:0", Store: filepath.Join(t.TempDir(), "hostler.db"), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	a.Start(t.Context())
	idle := &http.Transport{}
	t.Cleanup(func() {
		idle.CloseIdleConnections()
		if err := a.Stop(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	api, err := client.New(a.URL(), client.WithHTTPClient(&http.Client{Transport: idle}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.PutPool(t.Context(), "default", map[string]any{"reuse_interval_ms": 0, "caps": map[string]any{"static": 64}}); err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for _, p := range l.Proxies() {
		list.WriteString(p.ListLine() + "\n")
	}
	if _, err := api.Import(t.Context(), strings.NewReader(list.String()), client.ImportOptions{AllowSpecial: true}); err != nil {
		t.Fatal(err)
	}
	return l, api
}

func options(api *client.Client, url string) ramp.Options {
	return ramp.Options{
		API: api, Pool: "default", URL: url, Start: 1, Max: 40, Step: time.Second, Worker: "ramp",
		Bounds: ramp.Bounds{S429: 0.01, Timeouts: 0.05, ValidDrop: 0.1},
	}
}

// TestRampFindsTheLimit: the target takes 60 requests a second from an address. The
// ramp ends because of 429, the last good step is within that rate, and the one
// that ended it is above.
func TestRampFindsTheLimit(t *testing.T) {
	const rate, burst = 60, 3
	l, api := place(t, lab.TargetSpec{Name: "limited", Kind: lab.LimitedTarget, Rate: rate, Burst: burst, Latency: 40 * time.Millisecond},
		lab.ProxySpec{Kind: lab.Good, Count: 1})
	o := options(api, l.Targets()[0].URL+"/item")
	var shown []ramp.Step
	o.Done = func(s ramp.Step) { shown = append(shown, s) }
	o.MustContain = "/item"
	res, err := ramp.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v %+v", res.Steps, res.LastGood)
	if res.StoppedBy != ramp.Stop429 || res.LastGood == nil || len(shown) != len(res.Steps) {
		t.Fatalf("stopped by %s: %+v", res.StoppedBy, res)
	}
	last := res.Steps[len(res.Steps)-1]
	if most := rate + burst/o.Step.Seconds() + 1; res.LastGood.RPS > 1.02*most {
		t.Errorf("the last good step made %.1f a second, the target takes %d", res.LastGood.RPS, rate)
	}
	// A 429 rests the only proxy, so what the last step would have made is reckoned
	// from the latency of the good one.
	if made := float64(last.Concurrency) / (float64(res.Steps[len(res.Steps)-2].P50MS) / 1000); made < rate || int64(last.S429) > l.Targets()[0].S429.Load() || last.S429 == 0 {
		t.Errorf("the step that was too much would make %.1f a second at the most, the target takes %d", made, rate)
	}
	if res.LastGood.Concurrency >= last.Concurrency || res.LastGood.PerProxy != float64(res.LastGood.Concurrency) {
		t.Errorf("last good %+v before %d at once", res.LastGood, last.Concurrency)
	}
	for _, s := range res.Steps[:len(res.Steps)-1] {
		if s.Valid != s.Answers || s.OK == 0 || s.P50MS < 40 {
			t.Errorf("a good step: %+v", s)
		}
	}
	if err := xml.NewDecoder(strings.NewReader(ramp.Plot(&res))).Decode(new(any)); err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("the plot: %v", err)
	}
}

// TestRampEnds names what ended it, each with a target or pool of its own.
func TestRampEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		target lab.TargetSpec
		proxy  lab.ProxySpec
		change func(*ramp.Options)
		want   ramp.Stop
		good   bool
	}{
		{
			"max",
			lab.TargetSpec{Name: "t", Kind: lab.PlainTarget, Latency: 10 * time.Millisecond},
			lab.ProxySpec{Kind: lab.Good, Count: 3},
			func(o *ramp.Options) { o.Max, o.Step = 3, 300*time.Millisecond }, ramp.StopMax, true,
		},
		{
			"valid",
			lab.TargetSpec{Name: "t", Kind: lab.BanningTarget, BanAfter: 4, Latency: 10 * time.Millisecond},
			lab.ProxySpec{Kind: lab.Good, Count: 10},
			func(o *ramp.Options) { o.MustContain, o.Step = "lab", 200*time.Millisecond }, ramp.StopValid, true,
		},
		{
			"failures",
			lab.TargetSpec{Name: "t", Kind: lab.PlainTarget},
			lab.ProxySpec{Kind: lab.Refusing, Count: 8},
			func(o *ramp.Options) { o.Step = 300 * time.Millisecond }, ramp.StopFailures, false,
		},
		{
			"pool",
			lab.TargetSpec{Name: "t", Kind: lab.PlainTarget, Latency: 20 * time.Millisecond},
			lab.ProxySpec{Kind: lab.Good, Count: 2},
			func(o *ramp.Options) { o.Start, o.Step = 30, 300*time.Millisecond }, ramp.StopPool, false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, api := place(t, c.target, c.proxy)
			if c.want == ramp.StopPool {
				if _, err := api.PutPool(t.Context(), "default", map[string]any{"caps": map[string]any{"static": 1}}); err != nil {
					t.Fatal(err)
				}
			}
			o := options(api, l.Targets()[0].URL+"/lab")
			c.change(&o)
			res, err := ramp.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if res.StoppedBy != c.want || (res.LastGood != nil) != c.good {
				t.Errorf("stopped by %q, last good %+v, steps %+v", res.StoppedBy, res.LastGood, res.Steps)
			}
		})
	}
}

// TestJudge: bounds at the end of a step, and only when sure before it.
func TestJudge(t *testing.T) {
	b := ramp.Bounds{S429: 0.01, Timeouts: 0.05, ValidDrop: 0.1}
	first := &ramp.Step{Answers: 100, Valid: 80}
	for _, c := range []struct {
		name string
		s    ramp.Step
		z    float64
		want ramp.Stop
	}{
		{"at the bound", ramp.Step{Requests: 100, OK: 99, S429: 1}, 0, ramp.Good},
		{"above", ramp.Step{Requests: 100, OK: 98, S429: 2}, 0, ramp.Stop429},
		{"above, not sure", ramp.Step{Requests: 100, OK: 98, S429: 2}, 2.3, ramp.Good},
		{"above, sure", ramp.Step{Requests: 100, OK: 90, S429: 10}, 2.3, ramp.Stop429},
		{"few", ramp.Step{Requests: 10, S429: 10}, 2.3, ramp.Good},
		{"timeouts", ramp.Step{Requests: 100, OK: 94, Timeouts: 6}, 0, ramp.StopTimeouts},
		{"a tenth less valid", ramp.Step{Requests: 100, OK: 100, Answers: 100, Valid: 72}, 0, ramp.Good},
		{"more than a tenth less", ramp.Step{Requests: 100, OK: 100, Answers: 100, Valid: 71}, 0, ramp.StopValid},
		{"nothing", ramp.Step{}, 0, ramp.Good},
		{"most failed", ramp.Step{Requests: 100, OK: 49}, 0, ramp.StopFailures},
	} {
		if got := b.Judge(&c.s, first, true, c.z); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
