package fetch_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/hostler-proxy/hostler/internal/fetch"
)

// nameServer answers every question for an address with what next gives.
func nameServer(t *testing.T, next func() netip.Addr) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil {
				continue
			}
			m.Response = true
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body:   &dnsmessage.AResource{A: next().As4()},
				}}
			}
			m.Additionals = nil
			if out, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(out, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// TestNamesAreCheckedWhenDialled: a name that leads to this machine, at once or
// only at the second look, gets no connection, unless its source is trusted.
func TestNamesAreCheckedWhenDialled(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(good))
	}))
	defer server.Close()
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	local := netip.MustParseAddr("127.0.0.1")
	var looks atomic.Int64
	f := fetch.Fetcher{Resolver: nameServer(t, func() netip.Addr { looks.Add(1); return local })}
	settings := map[string]string{"url": "http://lists.example" + port + "/"}
	for range 3 {
		if _, err := f.Fetch(t.Context(), parse(t, settings), fetch.Mark{}); err == nil || !strings.Contains(err.Error(), "special-purpose") {
			t.Fatalf("a name that leads here: %v", err)
		}
	}
	if looks.Load() == 0 || asked.Load() != 0 {
		t.Fatalf("%d lookups, %d connections", looks.Load(), asked.Load())
	}
	settings["allow_special"] = "true"
	if _, err := f.Fetch(t.Context(), parse(t, settings), fetch.Mark{}); err != nil || asked.Load() != 1 {
		t.Fatalf("a trusted one: %v", err)
	}
	metadata := fetch.Fetcher{Resolver: nameServer(t, func() netip.Addr { return netip.MustParseAddr("169.254.169.254") })}
	if _, err := metadata.Fetch(t.Context(), parse(t, settings), fetch.Mark{}); err == nil || !strings.Contains(err.Error(), "special-purpose") {
		t.Fatalf("metadata: %v", err)
	}
	settings["url"] = "http://169.254.169.254/"
	if _, err := f.Fetch(t.Context(), parse(t, settings), fetch.Mark{}); err == nil || !strings.Contains(err.Error(), "special-purpose") {
		t.Fatalf("metadata by address: %v", err)
	}
}
