// Package lab gives targets and proxies on loopback whose behaviour is known:
// for the demo, for tests, for benchmarks. Sockets, HTTP and TLS are real.
//
// Each proxy dials its targets from a loopback address of its own (127.0.1.N),
// so that a target that counts by address sees proxies as addresses, as real
// sites do. A lab proxy reaches lab targets only: it is never an open proxy.
//
// The lab knows the truth: [Lab.Judge] says of any failed attempt whose fault it
// was, from what proxy and target were made to do.
package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// ProxyKind is what a proxy is made to do.
type ProxyKind string

// The kinds of proxies.
const (
	Good             ProxyKind = "good"
	Refusing         ProxyKind = "refusing"          // nothing listens at its port
	Hanging          ProxyKind = "hanging"           // takes the connection and says nothing
	WrongCredentials ProxyKind = "wrong_credentials" // wants others than the list has: 407
	Flaky            ProxyKind = "flaky"             // fails half the time: refuses and works in turns
	Denying          ProxyKind = "denying"           // answers 403 itself
	BadGateway       ProxyKind = "bad_gateway"       // answers CONNECT with 502 though the target is up
	Expiring         ProxyKind = "expiring"          // works until its time is over
	CutsTunnel       ProxyKind = "cuts_tunnel"       // answers CONNECT with 200 and closes
	Truncating       ProxyKind = "truncating"        // cuts answers in the middle
)

// TargetKind is what a target is made to do.
type TargetKind string

// The kinds of targets.
const (
	PlainTarget   TargetKind = "http"
	TLSTarget     TargetKind = "https"
	LimitedTarget TargetKind = "rate_limited" // 429 above a rate per address
	OutageTarget  TargetKind = "outage"       // down for a part of the run
)

// ProxySpec makes Count proxies of a kind.
type ProxySpec struct {
	Kind         ProxyKind
	Count        int
	ExpiresAfter time.Duration // Expiring only
	Delay        time.Duration // before every answer
}

// TargetSpec makes a target.
type TargetSpec struct {
	Name     string
	Kind     TargetKind
	Rate     float64 // LimitedTarget: requests a second and address
	Burst    int
	DownFrom time.Duration // OutageTarget: since the start
	DownFor  time.Duration
	Latency  time.Duration
}

// Options make a lab.
type Options struct {
	Seed    uint64
	Proxies []ProxySpec
	Targets []TargetSpec
	Now     func() time.Time // time.Now if nil
}

// Demo is the lab of the demo: 26 proxies and 4 targets, scaled to a run of d.
func Demo(seed uint64, d time.Duration) Options {
	return Options{
		Seed: seed,
		Proxies: []ProxySpec{
			{Kind: Good, Count: 14}, {Kind: Refusing, Count: 3}, {Kind: Hanging, Count: 2}, {Kind: WrongCredentials, Count: 2},
			{Kind: Flaky, Count: 2}, {Kind: Denying, Count: 1}, {Kind: BadGateway, Count: 1},
			{Kind: Expiring, Count: 1, ExpiresAfter: d / 2},
		},
		Targets: []TargetSpec{
			{Name: "shop", Kind: PlainTarget, Latency: 20 * time.Millisecond},
			{Name: "news", Kind: TLSTarget, Latency: 20 * time.Millisecond},
			{Name: "limited", Kind: LimitedTarget, Rate: 0.4, Burst: 1, Latency: 10 * time.Millisecond},
			{Name: "outage", Kind: OutageTarget, DownFrom: d * 35 / 100, DownFor: d / 4, Latency: 20 * time.Millisecond},
		},
	}
}

// Lab is a running lab.
type Lab struct {
	now     func() time.Time
	start   time.Time
	proxies []*Proxy
	targets []*Target
	cert    tls.Certificate
	pool    *x509.CertPool

	mu     sync.Mutex
	rng    *rand.Rand
	closed bool
	conns  map[net.Conn]bool
	done   chan struct{}

	servers []*http.Server
	closers []func()
	wg      sync.WaitGroup
}

// Start opens all sockets.
func Start(ctx context.Context, o Options) (*Lab, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Lab{
		now: o.Now, rng: rand.New(rand.NewPCG(o.Seed, 7)), conns: map[net.Conn]bool{}, done: make(chan struct{}),
	}
	l.start = l.now()
	if err := l.open(ctx, o); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Lab) open(ctx context.Context, o Options) error {
	var err error
	if l.cert, l.pool, err = makeCertificate(l.start); err != nil {
		return fmt.Errorf("make the lab's certificate: %w", err)
	}
	for _, spec := range o.Targets {
		if err := l.startTarget(ctx, spec); err != nil {
			return fmt.Errorf("start the target %q: %w", spec.Name, err)
		}
	}
	for _, spec := range o.Proxies {
		for range spec.Count {
			if err := l.startProxy(ctx, spec); err != nil {
				return fmt.Errorf("start a %s proxy: %w", spec.Kind, err)
			}
		}
	}
	return nil
}

// Proxies lists the proxies in the order of their specs.
func (l *Lab) Proxies() []*Proxy { return l.proxies }

// Targets lists the targets in the order of their specs.
func (l *Lab) Targets() []*Target { return l.targets }

// CertPool trusts the lab's HTTPS targets.
func (l *Lab) CertPool() *x509.CertPool { return l.pool }

// CertPEM is the certificate of the lab's HTTPS targets.
func (l *Lab) CertPEM() []byte { return certPEM(l.cert) }

// Close ends all sockets and waits for what used them.
func (l *Lab) Close() error {
	l.mu.Lock()
	if !l.closed {
		close(l.done)
	}
	l.closed = true
	conns := l.conns
	l.conns = map[net.Conn]bool{}
	l.mu.Unlock()
	for _, s := range l.servers {
		_ = s.Close()
	}
	for _, c := range l.closers {
		c()
	}
	for c := range conns {
		_ = c.Close()
	}
	l.wg.Wait()
	return nil
}

// track remembers a connection until its done is called; false when the lab is closed.
func (l *Lab) track(c net.Conn) (done func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = c.Close()
		return nil, false
	}
	l.conns[c] = true
	return func() {
		l.mu.Lock()
		delete(l.conns, c)
		l.mu.Unlock()
		_ = c.Close()
	}, true
}

func (l *Lab) since() time.Duration { return l.now().Sub(l.start) }

// Truth is whose fault a failed attempt was.
type Truth struct {
	Fault string // proxy, target, rate, or "" when nobody was made to fail
	Kind  string // of the proxy or target
}

// Judge says whose fault a failed attempt was, which went through the proxy at
// an address to a target and failed between two times.
func (l *Lab) Judge(proxyAddr, target string, from, until time.Time) Truth {
	for _, p := range l.proxies {
		if p.Addr == proxyAddr && p.failed(target, from, until) {
			return Truth{"proxy", string(p.Kind)}
		}
	}
	for _, t := range l.targets {
		if t.Name != target {
			continue
		}
		switch t.Kind {
		case OutageTarget:
			down := l.start.Add(t.spec.DownFrom)
			if until.After(down) && from.Before(down.Add(t.spec.DownFor)) {
				return Truth{"target", string(t.Kind)}
			}
		case LimitedTarget:
			return Truth{"rate", string(t.Kind)}
		case PlainTarget, TLSTarget:
		}
	}
	return Truth{}
}
