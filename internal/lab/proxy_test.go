package lab

import (
	"fmt"
	"testing"
	"time"
)

// TestProxyKinds sends a plain and a tunnelled request through each kind.
func TestProxyKinds(t *testing.T) {
	t.Parallel()
	broken := []string{"eof", "reset"}
	for _, c := range []struct {
		spec   ProxySpec
		target string
		phase  string
		status int
		errs   []string
		fault  string
	}{
		{ProxySpec{Kind: Good}, "shop", "body", 200, []string{""}, ""},
		{ProxySpec{Kind: Good, Auth: true}, "shop", "body", 200, []string{""}, ""},
		{ProxySpec{Kind: Good, Auth: true}, "news", "body", 200, []string{""}, ""},
		{ProxySpec{Kind: Slow, Delay: 30 * time.Millisecond}, "news", "body", 200, []string{""}, ""},
		{ProxySpec{Kind: Refusing}, "shop", "proxy_dial", 0, []string{"refused"}, "proxy"},
		{ProxySpec{Kind: Refusing}, "news", "proxy_dial", 0, []string{"refused"}, "proxy"},
		{ProxySpec{Kind: Hanging}, "shop", "sent", 0, []string{"timeout"}, "proxy"},
		{ProxySpec{Kind: Hanging}, "news", "handshake", 0, []string{"timeout"}, "proxy"},
		{ProxySpec{Kind: WrongCredentials}, "shop", "handshake", 407, []string{"auth"}, "proxy"},
		{ProxySpec{Kind: WrongCredentials}, "news", "handshake", 407, []string{"auth"}, "proxy"},
		{ProxySpec{Kind: Denying}, "shop", "headers", 403, []string{""}, "proxy"},
		{ProxySpec{Kind: Denying}, "news", "handshake", 403, []string{""}, "proxy"},
		{ProxySpec{Kind: BadGateway}, "shop", "headers", 502, []string{""}, "proxy"},
		{ProxySpec{Kind: BadGateway}, "news", "handshake", 502, []string{""}, "proxy"},
		{ProxySpec{Kind: BadGateway, TunnelsOnly: true}, "shop", "body", 200, []string{""}, ""},
		{ProxySpec{Kind: BadGateway, TunnelsOnly: true}, "news", "handshake", 502, []string{""}, "proxy"},
		{ProxySpec{Kind: Expiring, ExpiresAfter: time.Hour}, "news", "body", 200, []string{""}, ""},
		{ProxySpec{Kind: CutsTunnel}, "shop", "body", 200, []string{""}, ""},
		{ProxySpec{Kind: CutsTunnel}, "news", "target_tls", 0, broken, "proxy"},
		{ProxySpec{Kind: Truncating}, "shop", "body", 200, []string{"truncated"}, "proxy"},
		{ProxySpec{Kind: Truncating}, "big", "body", 200, []string{"truncated"}, "proxy"},
		{ProxySpec{Kind: Tampering}, "shop", "body", 200, []string{""}, ""},
		{ProxySpec{Kind: Tampering}, "news", "target_tls", 0, []string{"cert"}, "proxy"},
	} {
		name := fmt.Sprintf("%s/auth=%t/tunnels=%t/%s", c.spec.Kind, c.spec.Auth, c.spec.TunnelsOnly, c.target)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.spec.Count = 1
			l := start(t, Options{Proxies: []ProxySpec{c.spec}, Targets: []TargetSpec{
				{Name: "shop", Kind: PlainTarget}, {Name: "news", Kind: TLSTarget}, {Name: "big", Kind: TLSTarget, PageBytes: 64 << 10},
			}})
			p, total := l.Proxies()[0], patience
			if c.errs[0] == "timeout" {
				total = 50 * time.Millisecond
			}
			o := get(t.Context(), l, p, c.target, "a1", total)
			expect(t, name, o, c.phase, c.status, c.errs...)
			truth := l.JudgeAttempt(p.Addr, c.target, "a1", l.now())
			if truth.Fault != c.fault {
				t.Errorf("the truth is %+v, want the fault %q", truth, c.fault)
			}
			if c.fault == FaultProxy && truth.Kind != string(c.spec.Kind) {
				t.Errorf("the truth is %+v, want the kind %q", truth, c.spec.Kind)
			}
			if judged := l.Judge(p.Addr, c.target, l.now(), l.now()); c.fault != "" && judged.Fault != c.fault {
				t.Errorf("without a name the truth is %+v, want the fault %q", judged, c.fault)
			}
		})
	}
}

func TestWrongPasswordIsTheCallersFault(t *testing.T) {
	t.Parallel()
	l := start(t, Options{Proxies: []ProxySpec{{Kind: Good, Count: 1, Auth: true}}, Targets: []TargetSpec{{Name: "shop", Kind: PlainTarget}}})
	p := &Proxy{Addr: l.Proxies()[0].Addr, Username: l.Proxies()[0].Username, Password: "wrong"}
	expect(t, "wrong password", get(t.Context(), l, p, "shop", "a1", patience), "handshake", 407, "auth")
	if truth, _ := l.Truth("a1"); truth.Fault != FaultCaller {
		t.Errorf("the truth is %+v", truth)
	}
}

func TestNoOpenProxy(t *testing.T) {
	t.Parallel()
	l := start(t, Options{Proxies: []ProxySpec{{Kind: Good, Count: 1}}})
	other := start(t, Options{Targets: []TargetSpec{{Name: "shop", Kind: PlainTarget}, {Name: "news", Kind: TLSTarget}}})
	for _, target := range other.Targets() {
		o := Fetch(t.Context(), FetchRequest{Proxy: l.Proxies()[0].URL(), URL: target.URL, RootCAs: other.CertPool(), Total: patience})
		if o.Status != 403 {
			t.Errorf("%s of another lab: %+v, want 403", target.Name, o)
		}
		if n := target.Requests.Load(); n != 0 {
			t.Errorf("%s of another lab had %d requests", target.Name, n)
		}
	}
}

// TestFlakyCoin fails about half of the attempts, and the lab knows which.
func TestFlakyCoin(t *testing.T) {
	t.Parallel()
	l := start(t, Options{
		Seed: 3, Proxies: []ProxySpec{{Kind: Flaky, Count: 1}},
		Targets: []TargetSpec{{Name: "shop", Kind: PlainTarget}, {Name: "news", Kind: TLSTarget}},
	})
	const rounds = 200
	failed, p := 0, l.Proxies()[0]
	for i := range rounds {
		target, attempt := []string{"shop", "news"}[i%2], fmt.Sprint("a", i)
		o := get(t.Context(), l, p, target, attempt, patience)
		want := FaultNone
		if !o.OK() {
			failed++
			want = FaultProxy
		}
		if truth, ok := l.Truth(attempt); !ok || truth.Fault != want {
			t.Errorf("%s ended in %+v, the truth is %+v, %t", attempt, o, truth, ok)
		}
	}
	if failed < rounds*35/100 || failed > rounds*65/100 {
		t.Errorf("%d of %d failed, want about half", failed, rounds)
	}
}

// TestFlakyTurns refuses and works in turns, on the same port.
func TestFlakyTurns(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := start(t, Options{
		Now: c.now, Proxies: []ProxySpec{{Kind: Flaky, Count: 1, Turn: time.Minute}}, Targets: []TargetSpec{{Name: "shop", Kind: PlainTarget}},
	})
	p := l.Proxies()[0]
	for range 4 {
		works := p.works(c.now())
		eventually(t, fmt.Sprint("it works: ", works), func() bool {
			o := get(t.Context(), l, p, "shop", "", patience)
			return works && o.OK() || !works && o.Phase == "proxy_dial" && o.Error == "refused"
		})
		if truth := l.Judge(p.Addr, "shop", c.now(), c.now()); (truth.Fault == FaultProxy) == works {
			t.Errorf("it works: %t, the truth is %+v", works, truth)
		}
		c.move(time.Minute)
	}
}

func TestExpiring(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := start(t, Options{
		Now: c.now, Proxies: []ProxySpec{{Kind: Expiring, Count: 1, ExpiresAfter: time.Minute}}, Targets: []TargetSpec{{Name: "shop", Kind: PlainTarget}},
	})
	p := l.Proxies()[0]
	if want := c.now().Add(time.Minute); !p.ExpiresAt.Equal(want) {
		t.Errorf("expires at %s, want %s", p.ExpiresAt, want)
	}
	c.move(time.Minute - 1)
	expect(t, "just before", get(t.Context(), l, p, "shop", "a1", patience), "body", 200, "")
	if truth := l.Judge(p.Addr, "shop", c.now(), c.now()); truth.Fault != FaultNone {
		t.Errorf("just before, the truth is %+v", truth)
	}
	c.move(1)
	if o := get(t.Context(), l, p, "shop", "a2", patience); o.Error != "refused" && o.Error != "reset" && o.Error != "eof" {
		t.Errorf("at its end: %+v", o)
	}
	eventually(t, "it refuses", func() bool { return get(t.Context(), l, p, "shop", "", patience).Error == "refused" })
	if truth := l.JudgeAttempt(p.Addr, "shop", "a2", c.now()); truth.Fault != FaultProxy || truth.Kind != "expiring" {
		t.Errorf("at its end, the truth is %+v", truth)
	}
}

func TestLatencyOfGoodProxies(t *testing.T) {
	t.Parallel()
	span := Range{20 * time.Millisecond, 30 * time.Millisecond}
	l := start(t, Options{Latency: span, Proxies: []ProxySpec{{Kind: Good, Count: 1}}, Targets: []TargetSpec{{Name: "shop", Kind: PlainTarget}}})
	if o := get(t.Context(), l, l.Proxies()[0], "shop", "", patience); !o.OK() || o.FirstByte < span.Min {
		t.Errorf("%+v, want a first byte after %s", o, span.Min)
	}
}
