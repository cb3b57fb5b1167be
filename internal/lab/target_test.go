package lab

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTargetKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		spec   TargetSpec
		phase  string
		status int
		err    string
		fault  string
	}{
		{"plain", TargetSpec{Kind: PlainTarget}, "body", 200, "", ""},
		{"secure", TargetSpec{Kind: TLSTarget}, "body", 200, "", ""},
		{"ban", TargetSpec{Kind: BanningTarget}, "headers", 403, "", "block"},
		{"secure ban", TargetSpec{Kind: BanningTarget, TLS: true}, "body", 403, "", "block"},
		{"soft block", TargetSpec{Kind: SoftBlockTarget}, "body", 200, "", "block"},
		{"hanging", TargetSpec{Kind: HangingTarget}, "sent", 0, "timeout", "target"},
		{"secure hanging", TargetSpec{Kind: HangingTarget, TLS: true}, "sent", 0, "timeout", "target"},
		{"outage", TargetSpec{Kind: OutageTarget, DownFor: time.Hour}, "headers", 502, "", "target"},
		{"too large", TargetSpec{Kind: PlainTarget, PageBytes: 2 << 20}, "body", 200, "too_large", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.spec.Name = "site"
			l := start(t, Options{Proxies: []ProxySpec{{Kind: Good, Count: 1}}, Targets: []TargetSpec{c.spec}})
			p, total := l.Proxies()[0], patience
			if c.err == "timeout" {
				total = 300 * time.Millisecond
			}
			expect(t, c.name, get(t.Context(), l, p, "site", "a1", total), c.phase, c.status, c.err)
			truth, ok := l.Truth("a1")
			if !ok || truth.Fault != c.fault || truth.Kind != string(c.spec.Kind) {
				t.Errorf("the truth is %+v, %t; want the fault %q", truth, ok, c.fault)
			}
			if judged := l.Judge(p.Addr, "site", l.now(), l.now()); judged.Fault != c.fault {
				t.Errorf("without a name the truth is %+v, want the fault %q", judged, c.fault)
			}
		})
	}
}

// TestSecureOutage resets the tunnel, which the proxy has to record.
func TestSecureOutage(t *testing.T) {
	t.Parallel()
	l := start(t, Options{
		Proxies: []ProxySpec{{Kind: Good, Count: 1}}, Targets: []TargetSpec{{Name: "site", Kind: OutageTarget, TLS: true, DownFor: time.Hour}},
	})
	o := get(t.Context(), l, l.Proxies()[0], "site", "a1", patience)
	if o.Phase != "target_tls" && o.Phase != "handshake" {
		t.Errorf("%+v", o)
	}
	eventually(t, "the outage is on record", func() bool {
		truth, _ := l.Truth("a1")
		return truth.Fault == FaultTarget
	})
}

func TestOutageWindow(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := start(t, Options{
		Now: c.now, Proxies: []ProxySpec{{Kind: Good, Count: 1}},
		Targets: []TargetSpec{{Name: "site", Kind: OutageTarget, DownFrom: time.Minute, DownFor: 2 * time.Minute}},
	})
	p, begin := l.Proxies()[0], c.now()
	for _, step := range []struct {
		at   time.Duration
		down bool
	}{{0, false}, {time.Minute - 1, false}, {time.Minute, true}, {3*time.Minute - 1, true}, {3 * time.Minute, false}, {time.Hour, false}} {
		c.move(begin.Add(step.at).Sub(c.now()))
		attempt := step.at.String()
		o := get(t.Context(), l, p, "site", attempt, patience)
		if o.OK() == step.down {
			t.Errorf("at %s: %+v, down: %t", step.at, o, step.down)
		}
		want := Truth{At: c.now(), Kind: "outage"}
		if step.down {
			want.Fault = FaultTarget
		}
		if got := l.JudgeAttempt(p.Addr, "site", attempt, c.now()); got != want {
			t.Errorf("at %s the truth is %+v, want %+v", step.at, got, want)
		}
		if got := l.JudgeAttempt(p.Addr, "site", "never seen", c.now()); (got.Fault == FaultTarget) != step.down {
			t.Errorf("at %s the truth of what was not seen is %+v", step.at, got)
		}
	}
	if o := l.Judge(p.Addr, "site", begin, begin.Add(time.Minute)); o.Fault != FaultTarget {
		t.Errorf("a request that the outage cut off: %+v", o)
	}
}

// TestRatePerAddress takes each proxy for an address of its own.
func TestRatePerAddress(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := start(t, Options{
		Now: c.now, Proxies: []ProxySpec{{Kind: Good, Count: 2}}, Targets: []TargetSpec{{Name: "site", Kind: LimitedTarget, Rate: 2, Burst: 2}},
	})
	a, b := l.Proxies()[0], l.Proxies()[1]
	fetch := func(p *Proxy, attempt string, status int) Outcome {
		o := get(t.Context(), l, p, "site", attempt, patience)
		expect(t, attempt, o, "body", status, "")
		return o
	}
	fetch(a, "a1", 200)
	fetch(a, "a2", 200)
	if o := fetch(a, "a3", 429); o.RetryAfter != "1" {
		t.Errorf("Retry-After is %q", o.RetryAfter)
	}
	fetch(b, "b1", 200)
	c.move(500 * time.Millisecond)
	fetch(a, "a4", 200)
	fetch(a, "a5", 429)

	for attempt, fault := range map[string]string{"a2": "", "a3": FaultRate, "b1": "", "a5": FaultRate} {
		if truth, ok := l.Truth(attempt); !ok || truth.Fault != fault {
			t.Errorf("the truth of %s is %+v, %t", attempt, truth, ok)
		}
	}
	if truth := l.JudgeAttempt(a.Addr, "site", "never seen", c.now()); truth.Fault != FaultNone {
		t.Errorf("the truth of what was not seen is %+v", truth)
	}
	got, _ := l.TargetStats("site")
	want := TargetStats{Requests: 6, OK: 4, S429: 2, Connections: map[string]int64{"127.0.1.1": 5, "127.0.1.2": 1}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestBanPerAddress(t *testing.T) {
	t.Parallel()
	l := start(t, Options{
		Proxies: []ProxySpec{{Kind: Good, Count: 2}}, Targets: []TargetSpec{{Name: "site", Kind: BanningTarget, TLS: true, BanAfter: 2}},
	})
	a, b := l.Proxies()[0], l.Proxies()[1]
	for i, status := range []int{200, 200, 403, 403} {
		if o := get(t.Context(), l, a, "site", "", patience); o.Status != status {
			t.Errorf("request %d: %+v, want %d", i+1, o, status)
		}
	}
	if o := get(t.Context(), l, b, "site", "", patience); o.Status != 200 {
		t.Errorf("the other address: %+v", o)
	}
}
