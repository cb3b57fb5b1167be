package lab

import (
	"bufio"
	"crypto/tls"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"time"
)

// truncateAfter is what a truncating proxy passes through a tunnel towards the
// client: enough for a handshake and the head of an answer, too little for a page
// of 16 KiB.
const truncateAfter = 8 << 10

// tunnel answers CONNECT and passes bytes.
func (x *exchange) tunnel() {
	conn, target := x.dial(x.req.RequestURI)
	if conn == nil {
		return
	}
	defer x.proxy.lab.sockets.drop(conn)
	wasDown := target.down()
	limit := int64(math.MaxInt64)
	if x.proxy.Kind == Truncating {
		limit = truncateAfter
	}
	x.establish()
	n := x.relay(conn, limit)
	if n == 0 && wasDown {
		x.noteDown(target)
	}
}

// relay passes bytes both ways until one side ends, at most limit towards the
// client, and says how many those were.
func (x *exchange) relay(target *net.TCPConn, limit int64) int64 {
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(target, x.in)
		_ = target.CloseWrite()
		// the client is gone, or half gone: no target may hold the tunnel for ever
		_ = target.SetReadDeadline(wallClock().Add(5 * time.Second))
	})
	n, _ := io.Copy(x.conn, io.LimitReader(target, limit))
	if n == limit {
		x.note(FaultProxy)
	}
	// end politely: closing on unread data would reset what the client has yet to read
	_ = x.conn.CloseWrite()
	_ = x.conn.SetReadDeadline(wallClock().Add(time.Second))
	_ = target.CloseRead()
	up.Wait()
	return n
}

// tamper stands in for the target, with a certificate of its own making.
func (x *exchange) tamper() {
	forger, err := newAuthority()
	if err != nil {
		return
	}
	config, err := forger.server()
	if err != nil {
		return
	}
	x.establish()
	secure := tls.Server(prefixed{x.conn, x.in}, config)
	if secure.HandshakeContext(x.proxy.lab.ctx) != nil {
		return
	}
	if _, err := http.ReadRequest(bufio.NewReader(secure)); err == nil {
		_, _ = io.WriteString(secure, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\ntampered")
	}
	_ = secure.Close()
}

// prefixed is a connection some of whose bytes were read already.
type prefixed struct {
	net.Conn
	in io.Reader
}

// Read gives those bytes first.
func (p prefixed) Read(b []byte) (int, error) { return p.in.Read(b) }
