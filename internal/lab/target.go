package lab

import (
	"context"
	"crypto/tls"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Target is one site of the lab.
type Target struct {
	Name     string
	Kind     TargetKind
	Addr     string
	URL      string // base URL
	Requests atomic.Int64
	OK       atomic.Int64 // answered with the page that was asked for
	S429     atomic.Int64

	lab     *Lab
	spec    TargetSpec
	secure  bool
	blocked atomic.Int64

	mu          sync.Mutex
	buckets     map[string]*bucket
	connections map[string]int64 // by source address
	seen        map[string]int   // BanningTarget: requests by source address
	delivered   map[string]int   // how often each path was answered well
}

func (l *Lab) startTarget(ctx context.Context, spec TargetSpec) error {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	t := &Target{
		Name: spec.Name, Kind: spec.Kind, Addr: ln.Addr().String(), lab: l, spec: spec, secure: spec.TLS || spec.Kind == TLSTarget,
		buckets: map[string]*bucket{}, connections: map[string]int64{}, seen: map[string]int{}, delivered: map[string]int{},
	}
	t.URL = "http://" + t.Addr
	ln = &gate{ln, t}
	if t.secure {
		config, err := l.ca.server()
		if err != nil {
			_ = ln.Close()
			return err
		}
		t.URL = "https://" + t.Addr
		ln = tls.NewListener(ln, config)
	}
	l.targets = append(l.targets, t)
	l.serveTarget(ln, t)
	return nil
}

func (l *Lab) serveTarget(ln net.Listener, t *Target) {
	server := &http.Server{
		Handler: t, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return l.ctx },
		// Server.Close does not wait for what it closes; the lab does.
		ConnState: func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				l.wg.Add(1)
			case http.StateClosed, http.StateHijacked:
				l.wg.Done()
			}
		},
	}
	l.servers = append(l.servers, server)
	l.wg.Go(func() { _ = server.Serve(ln) })
}

// gate counts connections, and resets them during an outage.
type gate struct {
	net.Listener
	target *Target
}

// Accept gives the next connection that the target would take.
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g.target.countConnection(sourceOf(c.RemoteAddr().String()))
		if !g.target.down() {
			return c, nil
		}
		reset(c)
	}
}

func sourceOf(remote string) string {
	host, _, _ := net.SplitHostPort(remote)
	return host
}

func (t *Target) countConnection(source string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.connections[source]++
}

// ServeHTTP answers as the kind is made to.
func (t *Target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t.Requests.Add(1)
	if t.down() { // on a connection from before the outage
		t.note(r, FaultTarget)
		hangUp()
	}
	if !pause(r.Context(), t.spec.Latency) {
		hangUp()
	}
	source := sourceOf(r.RemoteAddr)
	switch {
	case t.Kind == HangingTarget:
		t.note(r, FaultTarget)
		<-r.Context().Done()
		hangUp()
	case t.Kind == LimitedTarget && !t.allow(source):
		t.tooMany(w, r)
	case t.Kind == BanningTarget && t.banned(source):
		t.block(w, r, http.StatusForbidden, "access denied")
	case t.Kind == SoftBlockTarget:
		t.block(w, r, http.StatusOK, "<html><title>Are you a human?</title><div class=\"captcha\"></div></html>")
	default:
		t.page(w, r)
	}
}

// hangUp closes a handler's connection without an answer: returning would say 200.
func hangUp() { panic(http.ErrAbortHandler) }

// note records, before the answer goes out, what the target does to a request.
func (t *Target) note(r *http.Request, fault string) {
	t.lab.note(r.Header.Get(AttemptHeader), fault, string(t.Kind))
}

func (t *Target) tooMany(w http.ResponseWriter, r *http.Request) {
	t.note(r, FaultRate)
	t.S429.Add(1)
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many requests", http.StatusTooManyRequests)
}

func (t *Target) block(w http.ResponseWriter, r *http.Request, status int, page string) {
	t.note(r, FaultBlock)
	t.blocked.Add(1)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, page)
}

func (t *Target) page(w http.ResponseWriter, r *http.Request) {
	t.note(r, FaultNone)
	t.OK.Add(1)
	t.mu.Lock()
	t.delivered[r.URL.Path]++
	t.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	const line = "<p>lab</p>"
	_, _ = fmt.Fprintf(w, "<html><title>%s</title><p>%s</p>%s</html>\n", t.Name, html.EscapeString(r.URL.Path),
		strings.Repeat(line, max(20, t.spec.PageBytes/len(line)+1)))
}

// Delivered says how often a path was answered well.
func (t *Target) Delivered(path string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.delivered[path]
}

// banned counts a request of an address and says whether it is one too many.
func (t *Target) banned(source string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[source]++
	return t.seen[source] > t.spec.BanAfter
}
