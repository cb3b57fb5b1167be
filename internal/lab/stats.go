package lab

import (
	"maps"
	"net"
	"sync"
)

// ProxyStats are a proxy's counters.
type ProxyStats struct {
	Connects      int64 // connections that were taken
	Requests      int64 // requests whose head was read
	Concurrent    int   // requests under way
	MaxConcurrent int   // the most that were under way at once
}

// TargetStats are a target's counters.
type TargetStats struct {
	Requests    int64
	OK          int64 // answered with the page that was asked for
	S429        int64
	Blocked     int64            // answered 403 or with a captcha
	Connections map[string]int64 // by source address, resets included
}

// ProxyStats gives the counters of the proxy at an address.
func (l *Lab) ProxyStats(addr string) (ProxyStats, bool) {
	p := l.proxy(addr)
	if p == nil {
		return ProxyStats{}, false
	}
	now, most := p.busy.count()
	return ProxyStats{p.Connects.Load(), p.Requests.Load(), now, most}, true
}

// TargetStats gives the counters of the target of a name.
func (l *Lab) TargetStats(name string) (TargetStats, bool) {
	t := l.target(name)
	if t == nil {
		return TargetStats{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return TargetStats{t.Requests.Load(), t.OK.Load(), t.S429.Load(), t.blocked.Load(), maps.Clone(t.connections)}, true
}

// busy counts the requests that a proxy has at once. It is there to prove that
// leases are exclusive, so it must never count an overlap that was none: a client
// that has closed its side is done, though the proxy has not noticed yet. (Where
// the kernel cannot be asked, see alive, it may.)
type busy struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
	most int
}

func (b *busy) begin(conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open[conn] = struct{}{}
	b.most = max(b.most, b.now())
}

func (b *busy) end(conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, conn)
}

func (b *busy) count() (now, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now(), b.most
}

func (b *busy) now() int {
	n := 0
	for conn := range b.open {
		if alive(conn) {
			n++
		}
	}
	return n
}
