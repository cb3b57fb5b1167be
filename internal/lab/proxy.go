package lab

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy is one proxy of the lab.
type Proxy struct {
	Kind               ProxyKind
	Addr               string // 127.0.0.1:port
	Username, Password string // as a list has them; empty without Auth
	ExpiresAt          time.Time
	Source             string       // the address that targets see
	Connects           atomic.Int64 // connections that were taken
	Requests           atomic.Int64 // requests whose head was read

	lab   *Lab
	spec  ProxySpec
	phase time.Time // Flaky in turns: one in which it works began then
	busy  busy

	mu  sync.Mutex
	rng *rand.Rand
}

// URL is the proxy's URL with the credentials of the list.
func (p *Proxy) URL() *url.URL {
	u := &url.URL{Scheme: "http", Host: p.Addr}
	if p.Username != "" {
		u.User = url.UserPassword(p.Username, p.Password)
	}
	return u
}

// ListLine is the proxy as a line of a list: http://user:password@host:port.
func (p *Proxy) ListLine() string { return p.URL().String() }

// MaxConcurrent is the largest number of requests that the proxy had at once.
func (p *Proxy) MaxConcurrent() int64 {
	_, most := p.busy.count()
	return int64(most)
}

func (l *Lab) startProxy(ctx context.Context, spec ProxySpec) error {
	addr, hold, err := holdPort()
	if err != nil {
		return err
	}
	l.holds = append(l.holds, hold)
	p := l.newProxy(spec, addr)
	l.proxies = append(l.proxies, p)
	changes := spec.Kind == Expiring || p.takesTurns()
	return l.startPort(ctx, &port{addr: addr, open: p.open, serve: p.serve}, changes)
}

func (l *Lab) newProxy(spec ProxySpec, addr string) *Proxy {
	n := len(l.proxies) + 1
	p := &Proxy{
		Kind: spec.Kind, Addr: addr, Source: fmt.Sprintf("127.0.%d.%d", 1+n/256, n%256), lab: l, spec: spec,
		busy: busy{open: map[net.Conn]struct{}{}},
		rng:  rand.New(rand.NewPCG(l.rng.Uint64(), uint64(n))),
	}
	if spec.Auth || spec.Kind == WrongCredentials {
		p.Username, p.Password = fmt.Sprintf("user%02d", n), fmt.Sprintf("secret-%02d", n)
	}
	if spec.Kind == Expiring {
		p.ExpiresAt = l.start.Add(spec.ExpiresAfter)
	}
	if p.takesTurns() {
		p.phase = l.start.Add(time.Duration(p.rng.Int64N(int64(spec.Turn))))
	}
	return p
}

// open says whether the port takes connections.
func (p *Proxy) open(now time.Time) bool {
	switch {
	case p.Kind == Refusing:
		return false
	case p.Kind == Expiring:
		return now.Before(p.ExpiresAt)
	case p.takesTurns():
		return p.works(now)
	default:
		return true
	}
}

func (p *Proxy) takesTurns() bool { return p.Kind == Flaky && p.spec.Turn > 0 }

// works says whether a flaky proxy is in a turn in which it works.
func (p *Proxy) works(at time.Time) bool {
	turn := p.spec.Turn
	return ((at.Sub(p.phase)%(2*turn))+2*turn)%(2*turn) < turn
}

// maxHead bounds the head of a request.
const maxHead = 64 << 10

// serve answers one request and closes: no keep-alive, so that every request is
// a connection and counters mean what they say.
func (p *Proxy) serve(conn net.Conn) {
	if !p.lab.sockets.add(conn) {
		return
	}
	defer p.lab.sockets.drop(conn)
	p.Connects.Add(1)
	limited := &io.LimitedReader{R: conn, N: maxHead}
	in := bufio.NewReader(limited)
	req, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	limited.N = math.MaxInt64
	p.Requests.Add(1)
	p.busy.begin(conn)
	defer p.busy.end(conn)
	x := &exchange{proxy: p, conn: conn.(*net.TCPConn), in: in, req: req, attempt: req.Header.Get(AttemptHeader)}
	x.run()
}

// coin throws the proxy's own coin.
func (p *Proxy) coin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rng.IntN(2) == 0
}

// delay is what the proxy adds before it answers.
func (p *Proxy) delay() time.Duration {
	span := p.lab.latency.Max - p.lab.latency.Min
	if p.Kind != Good || p.lab.latency.Max == 0 {
		return p.spec.Delay
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spec.Delay + p.lab.latency.Min + time.Duration(p.rng.Int64N(int64(span)+1))
}
