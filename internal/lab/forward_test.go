package lab

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// origin is a bare server that keeps the head of the last request; it stands in
// for a target of the lab.
func origin(t *testing.T, l *Lab) (heads <-chan string, addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	seen := make(chan string, 10)
	l.targets = append(l.targets, &Target{Name: "origin", Addr: ln.Addr().String(), lab: l})
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			seen <- readRequest(conn)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
			_ = conn.Close()
		}
	}()
	return seen, ln.Addr().String()
}

// readRequest reads the bytes of a head, and of a body of 4 bytes if one is announced.
func readRequest(conn net.Conn) string {
	var all strings.Builder
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		all.WriteString(line)
		if err != nil {
			return all.String()
		}
		if line == "\r\n" {
			break
		}
	}
	if strings.Contains(all.String(), "Content-Length: 4") {
		_, _ = io.CopyN(&all, in, 4)
	}
	return all.String()
}

// TestForward passes on what is for the target, and nothing else.
func TestForward(t *testing.T) {
	t.Parallel()
	l := start(t, Options{Proxies: []ProxySpec{{Kind: Good, Count: 1, Auth: true}}})
	heads, addr := origin(t, l)
	for _, c := range []struct{ name, request, want string }{
		{
			"hop by hop",
			"GET http://u:MARK@ORIGIN/x?y=1 HTTP/1.1\r\nHost: internal.example\r\nProxy-Authorization: CREDENTIALS\r\nProxy-Connection: keep-alive\r\n" +
				"Connection: close, X-Internal\r\nX-Internal: MARK\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: MARK\r\nX-Lab-Attempt: a1\r\n\r\n",
			"GET /x?y=1 HTTP/1.1\r\nHost: ORIGIN\r\nConnection: close\r\nX-Lab-Attempt: a1\r\n\r\n",
		},
		{
			"expect",
			"POST http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\nProxy-Authorization: CREDENTIALS\r\nUser-Agent: u\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody",
			"POST / HTTP/1.1\r\nHost: ORIGIN\r\nUser-Agent: u\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody",
		},
	} {
		basic := &http.Request{Header: http.Header{}}
		basic.SetBasicAuth(l.Proxies()[0].Username, l.Proxies()[0].Password)
		fill := strings.NewReplacer("ORIGIN", addr, "CREDENTIALS", basic.Header.Get("Authorization"))
		answer := send(t, l.Proxies()[0].Addr, fill.Replace(c.request))
		if !strings.HasSuffix(answer, "\r\n\r\nok") {
			t.Fatalf("%s: the answer is %q", c.name, answer)
		}
		if got := <-heads; got != fill.Replace(c.want) {
			t.Errorf("%s: the target saw\n%q, want\n%q", c.name, got, fill.Replace(c.want))
		}
	}
}

// TestBadHeads answers what is no request for a proxy, and lives on.
func TestBadHeads(t *testing.T) {
	t.Parallel()
	l := start(t, Options{Proxies: []ProxySpec{{Kind: Good, Count: 1}}, Targets: []TargetSpec{{Name: "shop", Kind: PlainTarget}}})
	p := l.Proxies()[0]
	for head, want := range map[string]string{
		"GET /x HTTP/1.1\r\nHost: a\r\n\r\n":                                "HTTP/1.1 400",
		"GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n":                        "HTTP/1.1 400",
		"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n":     "HTTP/1.1 403",
		"GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: a\r\n\r\n":               "HTTP/1.1 403",
		"\x05\x01\x00\r\n\r\n":                                              "",
		"GET http://a/ HTTP/1.1\r\nX: " + strings.Repeat("x", maxHead) + "": "",
	} {
		if got := send(t, p.Addr, head); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%.60q is answered with %q, want %q", head, got, want)
		}
	}
	if o := get(t.Context(), l, p, "shop", "", patience); !o.OK() {
		t.Errorf("afterwards: %+v", o)
	}
}

// send writes bytes to an address and reads to the end.
func send(t *testing.T, addr, request string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // nothing to save
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprint(conn, request); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(conn)
	return string(answer)
}
