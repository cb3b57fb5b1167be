package lab

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"
)

// speaker is a proxy that says the same to everybody, and then closes or waits.
func speaker(t *testing.T, says string, waits bool) *url.URL {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close() //nolint:errcheck // nothing to save
				readRequest(conn)
				_, _ = io.WriteString(conn, says)
				if waits {
					_, _ = io.Copy(io.Discard, conn)
				}
			}()
		}
	}()
	return &url.URL{Scheme: "http", Host: ln.Addr().String(), User: url.UserPassword("user", "MARK")}
}

// TestFetchWords sees each failure in the API's words, and never a password.
func TestFetchWords(t *testing.T) {
	t.Parallel()
	const plain, secure = "http://site.example/", "https://site.example/"
	short := 100 * time.Millisecond
	for _, c := range []struct {
		name   string
		says   string
		waits  bool
		url    string
		budget time.Duration
		phase  string
		status int
		err    string
	}{
		{"bad URL", "", false, "http://a b/", 0, "local", 0, "protocol"},
		{"other scheme", "", false, "ftp://a/", 0, "local", 0, "protocol"},
		{"silence", "", true, plain, short, "sent", 0, "timeout"},
		{"silent handshake", "", true, secure, short, "handshake", 0, "timeout"},
		{"closed", "", false, plain, 0, "sent", 0, "eof"},
		{"closed handshake", "", false, secure, 0, "handshake", 0, "eof"},
		{"garbage", "SSH-2.0-x\r\n\r\n", false, plain, 0, "headers", 0, "protocol"},
		{"garbage handshake", "SSH-2.0-x\r\n\r\n", false, secure, 0, "handshake", 0, "protocol"},
		{"half a head", "HTTP/1.1 200 OK\r\nA: b", false, plain, 0, "headers", 0, "eof"},
		{"slow head", "HTTP/1.1 200 OK\r\nA: b", true, plain, short, "headers", 0, "timeout"},
		{"407", "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", false, plain, 0, "handshake", 407, "auth"},
		{"407 handshake", "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", false, secure, 0, "handshake", 407, "auth"},
		{"503 handshake", "HTTP/1.1 503 No\r\n\r\n", false, secure, 0, "handshake", 503, ""},
		{"no TLS", "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 400 plain\r\n\r\n", true, secure, 0, "target_tls", 0, "tls"},
		{"cut tunnel", "HTTP/1.1 200 OK\r\n\r\n", true, secure, short, "target_tls", 0, "timeout"},
		{"cut body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", false, plain, 0, "body", 200, "truncated"},
		{"stalled body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", true, plain, short, "body", 200, "timeout"},
		{"interim answers", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false, plain, 0, "body", 200, ""},
		{"endless head", "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", maxRaw/5), true, plain, 0, "headers", 0, "protocol"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := FetchRequest{Proxy: speaker(t, c.says, c.waits), URL: c.url, First: c.budget, Connect: c.budget, Total: c.budget}
			o := Fetch(t.Context(), r)
			expect(t, c.name, o, c.phase, c.status, c.err)
			if strings.Contains(fmt.Sprintf("%+v", o), "MARK") {
				t.Errorf("%+v holds the password", o)
			}
			if o.Elapsed <= 0 {
				t.Error("it took no time")
			}
		})
	}
}

func TestFetchHeaders(t *testing.T) {
	t.Parallel()
	says := "HTTP/1.1 502 Bad\r\nProxy-Status: p; error=dns_error\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"
	o := Fetch(t.Context(), FetchRequest{Proxy: speaker(t, says, false), URL: "http://site.example/"})
	expect(t, "plain 502", o, "headers", 502, "")
	if o.RetryAfter != "7" || o.ProxyStatus != "p; error=dns_error" {
		t.Errorf("%+v", o)
	}
}

func TestFetchWithoutProxy(t *testing.T) {
	t.Parallel()
	expect(t, "no proxy", Fetch(t.Context(), FetchRequest{URL: "http://a/"}), "local", 0, "protocol")
	bad := &url.URL{Scheme: "http", Host: "proxy.invalid:1"}
	expect(t, "no such name", Fetch(t.Context(), FetchRequest{Proxy: bad, URL: "http://a/", Total: patience}), "proxy_dial", 0, "dns", "timeout")
}

func TestFetchCancelled(t *testing.T) {
	t.Parallel()
	proxy := speaker(t, "", true)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	expect(t, "given up", Fetch(ctx, FetchRequest{Proxy: proxy, URL: "http://a/"}), "sent", 0, "cancelled")
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	expect(t, "out of time", Fetch(ctx, FetchRequest{Proxy: proxy, URL: "http://a/"}), "sent", 0, "timeout")
}
