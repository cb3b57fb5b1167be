package lab

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
)

// forward sends a plain request on, without what is meant for the proxy, and
// passes the answer back as it is.
func (x *exchange) forward() {
	if x.req.URL.Scheme != "http" || x.req.URL.Host == "" {
		x.answer(http.StatusBadRequest, "") // not in absolute form
		return
	}
	conn, target := x.dial(x.req.URL.Host)
	if conn == nil {
		return
	}
	defer x.proxy.lab.sockets.drop(conn)
	if err := x.send(conn); err != nil {
		x.fail(target, conn)
		return
	}
	defer x.watch(conn)()
	in := bufio.NewReader(conn)
	if _, err := in.Peek(1); err != nil {
		x.fail(target, conn)
		return
	}
	if x.proxy.Kind == Truncating {
		x.truncate(in)
		return
	}
	_, _ = io.Copy(x.conn, in)
}

// send writes the request to the target.
func (x *exchange) send(target net.Conn) error {
	if x.req.Header.Get("Expect") != "" { // nobody waits for the other
		_, _ = io.WriteString(x.conn, "HTTP/1.1 100 Continue\r\n\r\n")
	}
	stripHopByHop(x.req.Header)
	if _, ok := x.req.Header["User-Agent"]; !ok {
		x.req.Header["User-Agent"] = []string{""} // none: Go would add its own
	}
	x.req.Close = true
	return x.req.Write(target)
}

// stripHopByHop removes what is for the next hop only, which for a proxy
// includes the client's credentials.
func stripHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			delete(h, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Te", "Trailer", "Upgrade", "Expect"} {
		delete(h, name)
	}
	for name := range h {
		if strings.HasPrefix(name, "Proxy-") {
			delete(h, name)
		}
	}
}

// watch ends the target's connection when the client goes away, so that a target
// that never answers holds nothing. What it returns ends the watch.
func (x *exchange) watch(target net.Conn) func() {
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(io.Discard, x.in)
		_ = target.Close()
	})
	return func() {
		_ = x.conn.CloseWrite()
		_ = x.conn.CloseRead()
		wg.Wait()
	}
}

// fail answers that the target broke off.
func (x *exchange) fail(t *Target, conn net.Conn) {
	_ = conn.Close()
	x.noteDown(t)
	_, _ = fmt.Fprint(x.conn, "HTTP/1.1 502 Bad Gateway\r\nProxy-Status: lab; error=connection_terminated\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

// truncate passes the head and half of the body.
func (x *exchange) truncate(in *bufio.Reader) {
	res, err := http.ReadResponse(in, x.req)
	if err != nil {
		return
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return
	}
	if len(body) > 0 {
		x.note(FaultProxy)
	}
	res.Header.Del("Content-Length")
	_, _ = fmt.Fprintf(x.conn, "HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n", res.Status, len(body))
	_ = res.Header.WriteSubset(x.conn, map[string]bool{"Connection": true, "Transfer-Encoding": true})
	_, _ = x.conn.Write(append([]byte("\r\n"), body[:len(body)/2]...))
}
