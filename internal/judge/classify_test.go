package judge_test

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
)

var budgets = judge.Budgets{Connect: 10 * time.Second, FirstByte: 30 * time.Second, Total: time.Minute}

func TestClassifyIsTotal(t *testing.T) {
	seen := map[pool.Class]bool{}
	for _, phase := range judge.Phases() {
		for _, kind := range judge.ErrorKinds() {
			for status := range 1000 {
				if status > 0 && status < 100 {
					continue
				}
				for _, https := range []bool{false, true} {
					class := judge.Classify(&judge.Facts{Phase: phase, Error: kind, Status: status, HTTPS: https}, budgets)
					if class == pool.ClassNone {
						t.Fatalf("%s %s %d https=%v has no class", phase, kind, status, https)
					}
					seen[class] = true
				}
			}
		}
	}
	// these come from rules or from nobody's report, not from the table
	notInTable := []pool.Class{pool.ClassNone, pool.ClassSuspectSoft, pool.ClassLeaseExpired}
	for class := range pool.NumClasses {
		if !seen[class] && !slices.Contains(notInTable, class) {
			t.Errorf("no facts give %s", class)
		}
	}
}

func TestEveryRowOfTheTableIsReached(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(judge.Classes())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(rows); i++ {
		without := append(slices.Clone(rows[:i]), rows[i+1:]...)
		if judge.SameTable(rows, without) {
			t.Errorf("row %d %v changes nothing: an earlier row covers it", i+1, rows[i])
		}
	}
}

func TestClassify(t *testing.T) {
	type facts = judge.Facts
	for _, c := range []struct {
		name string
		f    facts
		want pool.Class
	}{
		{"page", facts{Phase: "body", Status: 200, HTTPS: true}, pool.ClassOK},
		{"status alone", facts{Status: 200}, pool.ClassOK},
		{"not modified", facts{Phase: "headers", Status: 304}, pool.ClassOK},
		{"upgrade", facts{Phase: "headers", Status: 101}, pool.ClassOK},
		{"not found", facts{Phase: "body", Status: 404, HTTPS: true}, pool.ClassTargetAnswer},
		{"401 in a tunnel", facts{Phase: "body", Status: 401, HTTPS: true}, pool.ClassTargetAnswer},
		{"refused", facts{Phase: "proxy_dial", Error: "refused"}, pool.ClassProxyDial},
		{"name of the proxy", facts{Phase: "proxy_dial", Error: "dns"}, pool.ClassProxyDial},
		{"not a proxy", facts{Phase: "handshake", Error: "protocol"}, pool.ClassProxyDial},
		{"tls to the proxy", facts{Phase: "proxy_tls", Error: "tls"}, pool.ClassProxyTLS},
		{"407 on connect", facts{Phase: "handshake", Status: 407}, pool.ClassProxyAuth},
		{"407 plain", facts{Phase: "headers", Status: 407}, pool.ClassProxyAuth},
		{"socks credentials", facts{Phase: "handshake", Error: "auth"}, pool.ClassProxyAuth},
		{"402 on connect", facts{Phase: "handshake", Status: 402}, pool.ClassProxyQuota},
		{"429 on connect", facts{Phase: "handshake", Status: 429}, pool.ClassProxyQuota},
		{"limit by Proxy-Status", facts{Phase: "handshake", Status: 503, ProxyStatus: "gw; error=connection_limit_reached"}, pool.ClassProxyQuota},
		{"quota by a vendor's header", facts{Phase: "headers", Status: 502, VendorError: "Bandwidth exceeded"}, pool.ClassProxyQuota},
		{"403 on connect", facts{Phase: "handshake", Status: 403}, pool.ClassProxyPolicy},
		{"denied by Proxy-Status", facts{Phase: "headers", Status: 403, ProxyStatus: `p;error="http_request_denied"`}, pool.ClassProxyPolicy},
		{"502 on connect", facts{Phase: "handshake", Status: 502}, pool.ClassViaUnreachable},
		{"silence on connect", facts{Phase: "handshake", Error: "timeout", ElapsedMS: 10_000}, pool.ClassViaUnreachable},
		{"tunnel cut", facts{Phase: "target_tls", Error: "eof"}, pool.ClassTunnelReset},
		{"cut after sending", facts{Phase: "sent", Error: "reset"}, pool.ClassTunnelReset},
		{"foreign certificate", facts{Phase: "target_tls", Error: "cert"}, pool.ClassTamper},
		{"no first byte", facts{Phase: "sent", Error: "timeout", ElapsedMS: 30_000}, pool.ClassTimeoutHeaders},
		{"a little early is not impatient", facts{Phase: "sent", Error: "timeout", ElapsedMS: 29_900}, pool.ClassTimeoutHeaders},
		{"impatient", facts{Phase: "sent", Error: "timeout", ElapsedMS: 2_000}, pool.ClassClientFault},
		{"impatient dial", facts{Phase: "proxy_dial", Error: "timeout", ElapsedMS: 500}, pool.ClassClientFault},
		{"truncated", facts{Phase: "body", Error: "truncated", Status: 200}, pool.ClassTimeoutBody},
		{"500 in a tunnel", facts{Phase: "body", Status: 500, HTTPS: true}, pool.ClassTarget5xx},
		{"500 by the URL's scheme", facts{Status: 500, Request: pool.Request{URL: "https://a.example/"}}, pool.ClassTarget5xx},
		{"522", facts{Phase: "body", Status: 522, HTTPS: true}, pool.ClassTarget5xx},
		{"999", facts{Phase: "body", Status: 999}, pool.ClassTarget5xx},
		{"500 plain", facts{Phase: "body", Status: 500}, pool.ClassPlain5xx},
		{"429", facts{Phase: "body", Status: 429}, pool.ClassRateLimited},
		{"503 with Retry-After", facts{Phase: "body", Status: 503, RetryAfter: "5", HTTPS: true}, pool.ClassRateLimited},
		{"403 in a tunnel", facts{Phase: "body", Status: 403, HTTPS: true}, pool.ClassBlockedHard},
		{"403 plain", facts{Phase: "body", Status: 403}, pool.ClassPlainDenied},
		{"401 plain", facts{Phase: "body", Status: 401}, pool.ClassPlainDenied},
		{"451", facts{Phase: "body", Status: 451, HTTPS: true}, pool.ClassGeoBlocked},
		{"validator", facts{Phase: "validate", Error: "other", Status: 200}, pool.ClassBlockedSoft},
		{"validated", facts{Phase: "validate", Status: 200}, pool.ClassOK},
		{"the caller's word", facts{Phase: "body", Status: 200, Class: pool.ClassBlockedSoft}, pool.ClassBlockedSoft},
		{"cancelled", facts{Phase: "sent", Error: "cancelled"}, pool.ClassClientFault},
		{"no sockets", facts{Phase: "proxy_dial", Error: "resource"}, pool.ClassWorkerFault},
		{"own resolver", facts{Phase: "local", Error: "dns"}, pool.ClassWorkerFault},
		{"relayed", facts{Phase: "body"}, pool.ClassTunnelDone},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.f.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := judge.Classify(&c.f, budgets); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestFactsThatCannotBe(t *testing.T) {
	for field, f := range map[string]judge.Facts{
		"phase":         {Phase: "later"},
		"error":         {Error: "oops"},
		"status":        {Status: 99},
		"class":         {Class: pool.ClassProxyDial},
		"elapsed_ms":    {ElapsedMS: -1},
		"bytes":         {Bytes: -5},
		"method":        {Method: strings.Repeat("M", 50)},
		"request.url":   {Request: pool.Request{URL: strings.Repeat("u", 9000)}},
		"retry_after":   {RetryAfter: strings.Repeat("1", 300)},
		"proxy_status":  {ProxyStatus: strings.Repeat("p", 3000)},
		"connect_ms":    {ConnectMS: 1 << 40},
		"first_byte_ms": {FirstByteMS: -1},
	} {
		err := f.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), field+":") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := pool.At(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for value, want := range map[string]time.Duration{
		"120": 2 * time.Minute, "0": time.Second, "999999999": time.Hour, " 7 ": 7 * time.Second,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "Fri, 02 Jan 2026 03:04:00 GMT": time.Second,
		"Friday, 02-Jan-26 03:04:15 GMT": 10 * time.Second, "Fri Jan  2 03:04:35 2026": 30 * time.Second,
	} {
		if got, ok := judge.RetryAfter(value, now); !ok || got != want {
			t.Errorf("%q: got %v %v, want %v", value, got, ok, want)
		}
	}
	for _, value := range []string{"", "soon", "-5", "1.5", "5 minutes"} {
		if got, ok := judge.RetryAfter(value, now); ok {
			t.Errorf("%q: got %v, want nothing", value, got)
		}
	}
}
