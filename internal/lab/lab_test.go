package lab

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"runtime"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDemo(t *testing.T) {
	t.Parallel()
	l := start(t, Demo(1, 20*time.Second))
	kinds, addresses, sources := map[ProxyKind]int{}, map[string]bool{}, map[string]bool{}
	for _, p := range l.Proxies() {
		kinds[p.Kind]++
		addresses[p.Addr], sources[p.Source] = true, true
		if u, err := url.Parse(p.ListLine()); err != nil || u.Host != p.Addr || u.User.Username() != p.Username || p.Username == "" {
			t.Errorf("the line %q is not that of %s", p.ListLine(), p.Addr)
		}
		if got, want := p.ExpiresAt.Sub(l.start), 10*time.Second; p.Kind == Expiring && got != want {
			t.Errorf("expires after %s, want %s", got, want)
		}
	}
	want := "map[bad_gateway:1 denying:1 expiring:1 flaky:2 good:14 hanging:2 refusing:3 wrong_credentials:2]"
	if got := fmt.Sprint(kinds); got != want {
		t.Errorf("kinds are %s, want %s", got, want)
	}
	if len(addresses) != 26 || len(sources) != 26 {
		t.Errorf("%d addresses and %d sources, want 26", len(addresses), len(sources))
	}
	for _, target := range l.Targets() {
		if o := get(t.Context(), l, l.Proxies()[0], target.Name, "", patience); !o.OK() {
			t.Errorf("%s: %+v", target.Name, o)
		}
	}
}

// TestRefusedPortIsNobodyElses opens many sockets beside refusing proxies.
func TestRefusedPortIsNobodyElses(t *testing.T) {
	t.Parallel()
	l := start(t, Options{Proxies: []ProxySpec{{Kind: Refusing, Count: 100}, {Kind: Good, Count: 200}}})
	seen := map[string]bool{}
	for _, p := range l.Proxies() {
		if seen[p.Addr] {
			t.Errorf("%s was given twice", p.Addr)
		}
		seen[p.Addr] = true
	}
}

// TestCloseLeavesNothing closes under hanging requests of all sorts. It is not
// parallel: it counts the goroutines of the process.
func TestCloseLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	l, err := Start(t.Context(), Options{
		Proxies: []ProxySpec{
			{Kind: Good, Count: 2},
			{Kind: Hanging, Count: 1},
			{Kind: Slow, Count: 1, Delay: time.Hour},
			{Kind: Flaky, Count: 1, Turn: time.Millisecond},
			{Kind: Expiring, Count: 1, ExpiresAfter: time.Hour},
		},
		Targets: []TargetSpec{{Name: "plain", Kind: HangingTarget}, {Name: "tls", Kind: HangingTarget, TLS: true}, {Name: "slow", Kind: PlainTarget, Latency: time.Hour}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i, p := range l.Proxies()[:4] {
		target := []string{"plain", "tls", "slow", "slow"}[i]
		wg.Go(func() {
			if o := get(t.Context(), l, p, target, "", time.Hour); o.OK() {
				t.Errorf("%s by %s: %+v", target, p.Kind, o)
			}
		})
	}
	eventually(t, "all four are under way", func() bool {
		n := 0
		for _, p := range l.Proxies()[:4] {
			s, _ := l.ProxyStats(p.Addr)
			n += s.Concurrent
		}
		return n == 4 && l.Targets()[0].Requests.Load() == 1 && l.Targets()[1].Requests.Load() == 1
	})
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
	if o := get(t.Context(), l, l.Proxies()[0], "plain", "", patience); o.Error != "refused" {
		t.Errorf("after the end: %+v", o)
	}
}

// TestClientGoesAway lets go of what the client left behind.
func TestClientGoesAway(t *testing.T) {
	t.Parallel()
	l := start(t, Options{
		Proxies: []ProxySpec{{Kind: Good, Count: 1}},
		Targets: []TargetSpec{{Name: "plain", Kind: HangingTarget}, {Name: "tls", Kind: HangingTarget, TLS: true}},
	})
	for _, target := range []string{"plain", "tls"} {
		get(t.Context(), l, l.Proxies()[0], target, "", 200*time.Millisecond)
	}
	eventually(t, "only the listeners are open", func() bool {
		l.sockets.mu.Lock()
		defer l.sockets.mu.Unlock()
		return len(l.sockets.open) == len(l.Proxies())
	})
}

func TestCertPEM(t *testing.T) {
	t.Parallel()
	l := start(t, Options{Proxies: []ProxySpec{{Kind: Good, Count: 1}}, Targets: []TargetSpec{{Name: "news", Kind: TLSTarget}}})
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(l.CertPEM()) {
		t.Fatal("not a certificate")
	}
	r := FetchRequest{Proxy: l.Proxies()[0].URL(), URL: l.Targets()[0].URL, RootCAs: pool}
	if o := Fetch(t.Context(), r); !o.OK() || !o.HTTPS || o.Bytes == 0 {
		t.Errorf("%+v", o)
	}
	r.RootCAs = x509.NewCertPool()
	expect(t, "without the authority", Fetch(t.Context(), r), "target_tls", 0, "cert")
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"kind of proxy":     {Proxies: []ProxySpec{{Kind: "odd", Count: 1}}},
		"negative count":    {Proxies: []ProxySpec{{Kind: Good, Count: -1}}},
		"too many":          {Proxies: []ProxySpec{{Kind: Good, Count: maxProxies + 1}}},
		"no expiry":         {Proxies: []ProxySpec{{Kind: Expiring, Count: 1}}},
		"slow without":      {Proxies: []ProxySpec{{Kind: Slow, Count: 1}}},
		"kind of target":    {Targets: []TargetSpec{{Name: "a", Kind: "odd"}}},
		"no name":           {Targets: []TargetSpec{{Kind: PlainTarget}}},
		"one name twice":    {Targets: []TargetSpec{{Name: "a", Kind: PlainTarget}, {Name: "a", Kind: TLSTarget}}},
		"rate without":      {Targets: []TargetSpec{{Name: "a", Kind: LimitedTarget, Burst: 1}}},
		"backwards latency": {Latency: Range{2, 1}},
	} {
		if l, err := Start(t.Context(), o); err == nil {
			_ = l.Close()
			t.Errorf("%s: was started", name)
		}
	}
}

// TestExclusive proves nothing of a client that takes turns, even when the proxy
// hangs and the client gives up.
func TestExclusive(t *testing.T) {
	t.Parallel()
	l := start(t, Options{
		Proxies: []ProxySpec{{Kind: Good, Count: 1}, {Kind: Hanging, Count: 1}, {Kind: Slow, Count: 1, Delay: 100 * time.Millisecond}},
		Targets: []TargetSpec{{Name: "shop", Kind: PlainTarget}, {Name: "news", Kind: TLSTarget}},
	})
	good, hanging, slow := l.Proxies()[0], l.Proxies()[1], l.Proxies()[2]
	for i := range 200 {
		get(t.Context(), l, good, []string{"shop", "news"}[i%2], "", patience)
		get(t.Context(), l, hanging, []string{"shop", "news"}[i%2], "", time.Millisecond)
		get(t.Context(), l, slow, []string{"shop", "news"}[i%2], "", time.Millisecond)
	}
	for _, p := range l.Proxies() {
		if s, _ := l.ProxyStats(p.Addr); s.MaxConcurrent > 1 || s.Concurrent != 0 {
			t.Errorf("%s: one after the other, and the proxy saw %+v", p.Kind, s)
		}
	}
	if s, _ := l.ProxyStats(good.Addr); s.Connects != 200 || s.Requests != 200 {
		t.Errorf("%+v, want 200", s)
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { get(t.Context(), l, hanging, "shop", "", 500*time.Millisecond) })
	}
	wg.Wait()
	if s, _ := l.ProxyStats(hanging.Addr); s.MaxConcurrent != 5 || hanging.MaxConcurrent() != 5 {
		t.Errorf("five at once, and the proxy saw %+v", s)
	}
	if _, ok := l.ProxyStats("127.0.0.1:1"); ok {
		t.Error("an unknown proxy has counters")
	}
	if _, ok := l.TargetStats("unknown"); ok {
		t.Error("an unknown target has counters")
	}
}

// TestBook compares the bounded records with a plain list of all.
func TestBook(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 5).Draw(t, "most")
		b := newBook(most)
		var order []string
		all := map[string]Truth{}
		for _, name := range rapid.SliceOf(rapid.StringOfN(rapid.RuneFrom([]rune("abcdefgh")), 1, 1, -1)).Draw(t, "names") {
			truth := Truth{Fault: rapid.SampledFrom([]string{FaultNone, FaultProxy, FaultRate}).Draw(t, "fault")}
			b.note(name, truth)
			if old, known := all[name]; !known {
				order = append(order, name)
				all[name] = truth
			} else if truth.Fault != FaultNone {
				all[name] = truth
			} else {
				all[name] = old
			}
			if len(order) > most {
				delete(all, order[0])
				order = order[1:]
			}
		}
		if len(b.truth) != len(all) {
			t.Fatalf("%d records, want %d", len(b.truth), len(all))
		}
		for name, want := range all {
			if got, ok := b.look(name); !ok || got != want {
				t.Fatalf("%s is %+v, %t; want %+v", name, got, ok, want)
			}
		}
	})
}
