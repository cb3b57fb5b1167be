package lab

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// exchange is one request at a proxy.
type exchange struct {
	proxy   *Proxy
	conn    *net.TCPConn // the client
	in      *bufio.Reader
	req     *http.Request
	attempt string
}

// askCredentials is the head that a 407 must have.
const askCredentials = "Proxy-Authenticate: Basic realm=\"lab\"\r\n"

func (x *exchange) run() {
	tunnel := x.req.Method == http.MethodConnect
	switch {
	case x.misbehave(tunnel):
	case !x.authorized():
		x.note(FaultCaller)
		x.answer(http.StatusProxyAuthRequired, askCredentials)
	case !pause(x.proxy.lab.ctx, x.proxy.delay()):
	case tunnel && x.proxy.Kind == Tampering:
		x.note(FaultProxy)
		x.tamper()
	case tunnel:
		x.tunnel()
	default:
		x.forward()
	}
}

// note records what the proxy did.
func (x *exchange) note(fault string) { x.proxy.lab.note(x.attempt, fault, string(x.proxy.Kind)) }

// misbehave does what the proxy's kind is made to do instead of an answer; false
// if it is made to answer. The record comes first: who has the answer may ask.
func (x *exchange) misbehave(tunnel bool) bool {
	p := x.proxy
	switch {
	case p.Kind == Hanging:
		x.note(FaultProxy)
		_, _ = io.Copy(io.Discard, x.in) // until the client gives up
	case p.Kind == WrongCredentials:
		x.refuse(http.StatusProxyAuthRequired, askCredentials)
	case p.Kind == Denying:
		x.refuse(http.StatusForbidden, "")
	case p.Kind == BadGateway && (tunnel || !p.spec.TunnelsOnly):
		x.refuse(http.StatusBadGateway, "")
	case p.Kind == CutsTunnel && tunnel:
		x.cut(true)
	case p.Kind == Flaky && !p.takesTurns() && p.coin():
		x.cut(tunnel && p.coin())
	default:
		return false
	}
	return true
}

// refuse answers with the proxy's own fault.
func (x *exchange) refuse(status int, headers string) {
	x.note(FaultProxy)
	x.answer(status, headers)
}

// cut closes without an answer, or after the word that the tunnel stands.
func (x *exchange) cut(established bool) {
	x.note(FaultProxy)
	if established {
		x.establish()
	}
}

func (x *exchange) establish() {
	_, _ = io.WriteString(x.conn, "HTTP/1.1 200 Connection established\r\n\r\n")
}

// authorized checks the credentials, if the proxy demands any.
func (x *exchange) authorized() bool {
	p := x.proxy
	if !p.spec.Auth {
		return true
	}
	basic := &http.Request{Header: http.Header{"Authorization": x.req.Header["Proxy-Authorization"]}}
	user, password, ok := basic.BasicAuth()
	return ok && user == p.Username && password == p.Password
}

// answer is the proxy's own. The rest of the request is read first, because
// closing on unread data resets the connection and may destroy the answer.
func (x *exchange) answer(status int, headers string) {
	_ = x.conn.SetReadDeadline(wallClock().Add(time.Second))
	if x.req.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, x.req.Body, 1<<20)
	}
	_, _ = fmt.Fprintf(x.conn, "HTTP/1.1 %d %s\r\n%sContent-Length: 0\r\nConnection: close\r\n\r\n", status, http.StatusText(status), headers)
}

// dial reaches a lab target from the proxy's own address. Where it cannot, the
// client has its answer and nil is returned.
func (x *exchange) dial(address string) (*net.TCPConn, *Target) {
	p := x.proxy
	target := p.lab.targetAt(address)
	if target == nil {
		x.note(FaultCaller) // never an open proxy
		x.answer(http.StatusForbidden, "")
		return nil, nil
	}
	d := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(p.Source)}}
	conn, err := d.DialContext(p.lab.ctx, "tcp", address)
	if err != nil {
		x.noteDown(target)
		x.answer(http.StatusBadGateway, "Proxy-Status: lab; error=connection_refused\r\n")
		return nil, nil
	}
	if !p.lab.sockets.add(conn) {
		return nil, nil
	}
	return conn.(*net.TCPConn), target
}

// noteDown records the target's fault if it is down: a target that resets
// connections cannot know whose they were.
func (x *exchange) noteDown(t *Target) {
	if t.down() {
		x.proxy.lab.note(x.attempt, FaultTarget, string(t.Kind))
	}
}
