package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy is one proxy of the lab.
type Proxy struct {
	Kind               ProxyKind
	Addr               string // 127.0.0.1:port
	Username, Password string // as a list has them
	ExpiresAt          time.Time

	lab      *Lab
	spec     ProxySpec
	source   net.IP    // the address that targets see
	phase    time.Time // Flaky: a turn in which it works begins
	Connects atomic.Int64
	Requests atomic.Int64
	now, max atomic.Int64
}

// URL is the proxy's URL with the credentials of the list.
func (p *Proxy) URL() *url.URL {
	return &url.URL{Scheme: "http", User: url.UserPassword(p.Username, p.Password), Host: p.Addr}
}

// MaxConcurrent is the largest number of requests that the proxy had at once.
func (p *Proxy) MaxConcurrent() int64 { return p.max.Load() }

func (l *Lab) startProxy(ctx context.Context, spec ProxySpec) error {
	n := len(l.proxies) + 1
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p := &Proxy{
		Kind: spec.Kind, Addr: ln.Addr().String(), Username: fmt.Sprintf("user%02d", n), Password: fmt.Sprintf("secret-%02d", n),
		lab: l, spec: spec, source: net.IPv4(127, 0, 1, byte(n)),
	}
	l.proxies = append(l.proxies, p)
	l.closers = append(l.closers, func() { _ = ln.Close() })
	switch spec.Kind {
	case Refusing:
		return ln.Close() // the port stays free: connections are refused
	case Flaky:
		p.phase = l.start.Add(time.Duration(l.rng.Int64N(int64(flakyTurn))))
		l.wg.Go(func() { p.alternate(ln) })
		return nil
	case Expiring:
		p.ExpiresAt = l.start.Add(spec.ExpiresAfter)
		timer := time.AfterFunc(spec.ExpiresAfter, func() { _ = ln.Close() })
		l.closers = append(l.closers, func() { timer.Stop() })
	}
	l.wg.Go(func() { p.accept(ln) })
	return nil
}

// flakyTurn is how long a flaky proxy works, and how long it then refuses.
const flakyTurn = 1500 * time.Millisecond

// works says whether a flaky proxy is in a turn in which it works.
func (p *Proxy) works(at time.Time) bool { return at.Sub(p.phase)%(2*flakyTurn) < flakyTurn }

// alternate opens and closes a flaky proxy's port in turns.
func (p *Proxy) alternate(ln net.Listener) {
	address := ln.Addr().String()
	p.lab.wg.Go(func() { p.accept(ln) })
	open := true
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.lab.done:
			_ = ln.Close()
			return
		case <-tick.C:
		}
		switch want := p.works(p.lab.now()); {
		case open && !want:
			_ = ln.Close()
			open = false
		case !open && want:
			again, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
			if err != nil {
				continue // the port is taken for a moment: it goes on refusing
			}
			ln, open = again, true
			p.lab.wg.Go(func() { p.accept(again) })
		}
	}
}

// failed says whether the proxy was made to fail a request to a target between two times.
func (p *Proxy) failed(target string, from, until time.Time) bool {
	switch p.Kind {
	case Refusing, Hanging, WrongCredentials, Denying, CutsTunnel, Truncating:
		return true
	case BadGateway:
		return p.lab.secure(target)
	case Flaky:
		// its port opens and closes up to a tick late
		return !p.works(from) || !p.works(until) || !p.works(from.Add(-50*time.Millisecond))
	case Expiring:
		return !until.Before(p.ExpiresAt)
	default:
		return false
	}
}

func (l *Lab) secure(target string) bool {
	for _, t := range l.targets {
		if t.Name == target {
			return t.Kind == TLSTarget
		}
	}
	return false
}

func (p *Proxy) accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		p.Connects.Add(1)
		p.lab.wg.Go(func() { p.serve(conn) })
	}
}

// serve answers one request and closes: no keep-alive, so that every request is
// a connection and counters mean what they say.
func (p *Proxy) serve(conn net.Conn) {
	done, ok := p.lab.track(conn)
	if !ok {
		return
	}
	defer done()
	if p.Kind == Hanging {
		_, _ = io.Copy(io.Discard, conn) // until the client gives up
		return
	}
	in := bufio.NewReader(conn)
	req, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	p.Requests.Add(1)
	p.max.Store(max(p.max.Load(), p.now.Add(1)))
	defer p.now.Add(-1)
	if !p.admit(conn, req) {
		return
	}
	if p.spec.Delay > 0 {
		time.Sleep(p.spec.Delay)
	}
	if req.Method == http.MethodConnect {
		p.tunnel(conn, in, req)
		return
	}
	p.forward(conn, req)
}

// admit does what the proxy's kind is made to do before anything else.
func (p *Proxy) admit(conn net.Conn, req *http.Request) bool {
	switch p.Kind {
	case WrongCredentials:
		answer(conn, http.StatusProxyAuthRequired, "Proxy-Authenticate: Basic realm=\"lab\"\r\n")
		return false
	case Denying:
		answer(conn, http.StatusForbidden, "")
		return false
	case BadGateway:
		if req.Method == http.MethodConnect {
			answer(conn, http.StatusBadGateway, "")
			return false
		}
	}
	user, pass, ok := parseBasic(req.Header.Get("Proxy-Authorization"))
	if !ok || user != p.Username || pass != p.Password {
		answer(conn, http.StatusProxyAuthRequired, "Proxy-Authenticate: Basic realm=\"lab\"\r\n")
		return false
	}
	return true
}

func parseBasic(header string) (user, pass string, ok bool) {
	r := &http.Request{Header: http.Header{"Authorization": {header}}}
	return r.BasicAuth()
}

func answer(w io.Writer, status int, headers string) {
	_, _ = fmt.Fprintf(w, "HTTP/1.1 %d %s\r\n%sContent-Length: 0\r\nConnection: close\r\n\r\n", status, http.StatusText(status), headers)
}

var errNotLab = errors.New("not a target of this lab")

// dial reaches a lab target from the proxy's own address.
func (p *Proxy) dial(address string) (net.Conn, error) {
	known := false
	for _, t := range p.lab.targets {
		known = known || t.Addr == address
	}
	if !known {
		return nil, errNotLab
	}
	d := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: p.source}}
	return d.Dial("tcp", address) //nolint:noctx // bounded by its timeout; Close ends the client's side
}

func (p *Proxy) tunnel(conn net.Conn, in *bufio.Reader, req *http.Request) {
	target, err := p.dial(req.URL.Host)
	switch {
	case errors.Is(err, errNotLab):
		answer(conn, http.StatusForbidden, "")
		return
	case err != nil:
		answer(conn, http.StatusBadGateway, "Proxy-Status: lab; error=connection_refused\r\n")
		return
	}
	done, ok := p.lab.track(target)
	if !ok {
		return
	}
	defer done()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	if p.Kind == CutsTunnel {
		return
	}
	relay(conn, in, target)
}

// relay passes bytes both ways until one side ends.
func relay(client net.Conn, in io.Reader, target net.Conn) {
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(target, in)
		_ = target.(*net.TCPConn).CloseWrite()
	})
	_, _ = io.Copy(client, target)
	_ = client.Close()
	_ = target.Close()
	wg.Wait()
}

// forward sends a plain request on, without what is meant for the proxy.
func (p *Proxy) forward(conn net.Conn, req *http.Request) {
	if req.URL.Host == "" {
		answer(conn, http.StatusBadRequest, "")
		return
	}
	target, err := p.dial(req.URL.Host)
	switch {
	case errors.Is(err, errNotLab):
		answer(conn, http.StatusForbidden, "")
		return
	case err != nil:
		answer(conn, http.StatusBadGateway, "Proxy-Status: lab; error=connection_refused\r\n")
		return
	}
	done, ok := p.lab.track(target)
	if !ok {
		return
	}
	defer done()
	for name := range req.Header {
		if strings.HasPrefix(name, "Proxy-") {
			req.Header.Del(name)
		}
	}
	req.Close = true
	if err := req.Write(target); err != nil {
		answer(conn, http.StatusBadGateway, "")
		return
	}
	in := bufio.NewReader(target)
	if _, err := in.Peek(1); err != nil {
		answer(conn, http.StatusBadGateway, "Proxy-Status: lab; error=connection_terminated\r\n")
		return
	}
	var out io.Reader = in
	if p.Kind == Truncating {
		out = io.LimitReader(in, 150)
	}
	_, _ = io.Copy(conn, out)
}
