package proxy_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

func TestParse(t *testing.T) {
	type p = proxy.Proxy
	for line, want := range map[string]p{
		"8.8.8.8:3128":                               {"http", "8.8.8.8", 3128, "", ""},
		"8.8.8.0:999":                                {"http", "8.8.8.0", 999, "", ""}, // a last octet of 0 is a host
		"gw.example:7777":                            {"http", "gw.example", 7777, "", ""},
		"8.8.8.8:6511:bob:pa:ss:word":                {"http", "8.8.8.8", 6511, "bob", "pa:ss:word"},
		"http://8.8.8.8:6511:bob:pw":                 {"http", "8.8.8.8", 6511, "bob", "pw"},
		"gw.example:7777:customer-u1-cc-EU:pw":       {"http", "gw.example", 7777, "customer-u1-cc-EU", "pw"},
		"acct-c1-zone-static:pw9:gw.example:22225":   {"http", "gw.example", 22225, "acct-c1-zone-static", "pw9"},
		"bob:pw@gw.example:80":                       {"http", "gw.example", 80, "bob", "pw"},
		"bob:p@ss@gw.example:80":                     {"http", "gw.example", 80, "bob", "p@ss"},
		"bob:p%40ss@gw.example:80":                   {"http", "gw.example", 80, "bob", "p%40ss"}, // no URL: literal
		"http://bob:p%40ss@gw.example:80":            {"http", "gw.example", 80, "bob", "p@ss"},
		"http://bob:a6%6qgx@gw.example:80":           {"http", "gw.example", 80, "bob", "a6%6qgx"},
		"http://bob:pw#1@gw.example:8080":            {"http", "gw.example", 8080, "bob", "pw#1"},
		"http://bob:a/b?c@gw.example:8080":           {"http", "gw.example", 8080, "bob", "a/b?c"},
		"https://gw.example:443/":                    {"https", "gw.example", 443, "", ""},
		"SOCKS5://gw.example:1080":                   {"socks5", "gw.example", 1080, "", ""},
		"socks5h://u:p@[2001:db8::1]:1080":           {"socks5", "2001:db8::1", 1080, "u", "p"},
		"socks4a://gw.example:1080":                  {"socks4a", "gw.example", 1080, "", ""},
		"[2001:db8::1]:8080":                         {"http", "2001:db8::1", 8080, "", ""},
		"u:p:[2001:db8::2]:8080":                     {"http", "2001:db8::2", 8080, "u", "p"},
		"[2001:db8::2]:8080:u:p":                     {"http", "2001:db8::2", 8080, "u", "p"},
		"user-{session}-{country}:pw@gw.example:823": {"http", "gw.example", 823, "user-{session}-{country}", "pw"},
	} {
		got, err := proxy.Parse(line, proxy.SchemeHTTP)
		if err != nil || got != want {
			t.Errorf("%s: got %#v %v", line, got, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for line, reason := range map[string]string{
		"h1:8080:h2:9090":           "ambiguous",
		"2001:db8::1:1080":          "brackets",
		"http://[2001:db8::1]":      "no port",
		"gw.example":                "no port",
		"gw.example:":               "no port",
		"gw.example:0":              "out of range",
		"gw.example:65536":          "out of range",
		"gw.example:8o80":           "not a number",
		"127:0:0:1:80":              "brackets",
		"203.0.339.0:80":            "IPv4",
		".:80":                      "IPv4",
		"quic://gw.example:80":      "not supported",
		"aws://KEY:SECRET@us-1":     "not supported",
		"user:pw@":                  "no port",
		"a b:80":                    "name",
		"http://u:p@gw.example:80x": "not a number",
	} {
		got, err := proxy.Parse(line, proxy.SchemeHTTP)
		if err == nil {
			t.Errorf("%s: accepted as %s", line, got)
		} else if !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, want a reason with %q", line, err, reason)
		}
	}
}

func TestReadList(t *testing.T) {
	const list = "\xef\xbb\xbf# Proxy list\r\n8.8.8.8:80\r\n\r\n8.8.4.4:8080:u:pw\r\n8.8.8.1:999 CO-N-S! + \r\n" +
		"Mirrors=http://lists.example\n10.1.2.3:3128\n9.9.9.9:53   # with a comment\nu:p#w@9.9.9.10:80\n" +
		`{"host": "proxy.example.com", "port": 8000, "scheme": "http", "region": "cn-east", "expires_at": 1790000000, "fail_count": 0}` + "\n" +
		`{"host": "p2.example.com", "port": "8001", "username": null, "password": null},` + "\n8.8.8.9:1"
	l := proxy.ReadList(strings.NewReader(list), proxy.ListOptions{})
	var got []string
	for e, ok := l.Next(); ok; e, ok = l.Next() {
		got = append(got, fmt.Sprintf("%d %s %s %d", e.Line, e.Proxy.URL(), e.Region, e.ExpiresAt.Unix()))
	}
	never := time.Time{}.Unix()
	want := []string{
		fmt.Sprintf("2 http://8.8.8.8:80  %d", never), fmt.Sprintf("4 http://u:pw@8.8.4.4:8080  %d", never),
		fmt.Sprintf("5 http://8.8.8.1:999 CO %d", never), fmt.Sprintf("8 http://9.9.9.9:53  %d", never),
		fmt.Sprintf("9 http://u:p%%23w@9.9.9.10:80  %d", never), "10 http://proxy.example.com:8000 cn-east 1790000000",
		fmt.Sprintf("11 http://p2.example.com:8001  %d", never), fmt.Sprintf("12 http://8.8.8.9:1  %d", never),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var lines []int
	for _, r := range l.Rejected() {
		lines = append(lines, r.Line)
	}
	if diff := cmp.Diff([]int{6, 7}, lines); diff != "" || l.Err() != nil {
		t.Errorf("rejected %v %v", l.Rejected(), l.Err())
	}
}

func TestReadListTakesTheArticlesRecord(t *testing.T) {
	const list = "{\n  \"host\": \"proxy.example.com\",\n  \"port\": 8000,\n  \"scheme\": \"http\",\n  \"region\": \"cn-east\",\n" +
		"  \"expires_at\": 1790000000,\n  \"fail_count\": 0\n}\n8.8.8.8:80\n{\"host\": \"broken\n8.8.8.9:80\n"
	l := proxy.ReadList(strings.NewReader(list), proxy.ListOptions{})
	first, ok := l.Next()
	if !ok || first.Proxy.Host != "proxy.example.com" || first.Region != "cn-east" || first.ExpiresAt.Unix() != 1790000000 {
		t.Fatalf("got %+v, rejected %v", first, l.Rejected())
	}
	second, ok := l.Next()
	if !ok || second.Proxy.Host != "8.8.8.8" {
		t.Fatalf("got %+v", second)
	}
	third, ok := l.Next()
	if !ok || third.Proxy.Host != "8.8.8.9" || third.Line != 11 {
		t.Fatalf("behind a record that does not end: got %+v", third)
	}
	if _, ok := l.Next(); ok || len(l.Rejected()) != 1 || l.Rejected()[0].Line != 10 {
		t.Fatalf("a record that does not end: rejected %v", l.Rejected())
	}
}

func TestReadListGoesOnBehindBadLines(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	l := proxy.ReadList(strings.NewReader("8.8.8.8:80\n"+long+"\n\x00\x07:1\n8.8.8.9:80\n\xff\xfe\n8.8.8.10:80"), proxy.ListOptions{})
	n := 0
	for _, ok := l.Next(); ok; _, ok = l.Next() {
		n++
	}
	if n != 3 || l.RejectedCount() != 3 {
		t.Errorf("%d accepted, rejected %v", n, l.Rejected())
	}
	for _, r := range l.Rejected() {
		if strings.ContainsFunc(r.Reason, func(c rune) bool { return c < 0x20 }) || len(r.Reason) > 200 {
			t.Errorf("reason %q", r.Reason)
		}
	}
}

func TestSecretIsNotShown(t *testing.T) {
	const marker = "MARK-ER"
	p := proxy.Proxy{Scheme: "http", Host: "h", Port: 1, Username: "u", Password: marker}
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "proxy", p, "secret", p.Password)
	for _, text := range []string{p.String(), fmt.Sprint(p), fmt.Sprintf("%v %+v %#v %s", p, p, p, p.Password), string(raw), log.String()} {
		if strings.Contains(text, marker) {
			t.Errorf("shown in %q", text)
		}
	}
	if p.Password.Reveal() != marker || p.URL().String() != "http://u:"+marker+"@h:1" {
		t.Error("the secret is not to be had")
	}
}

func TestSpecial(t *testing.T) {
	for host, want := range map[string]bool{
		"0.0.0.0": true, "127.0.0.7": true, "10.1.2.3": true, "169.254.169.254": true, "255.255.255.255": true, "::1": true,
		"::ffff:10.0.0.1": true, "192.168.1.1": true, "fe80::1": true, "fd00::1": true, "8.8.8.8": false, "2606:4700::1": false, "gw.example": false,
	} {
		if got := (proxy.Proxy{Host: host}).Special() != ""; got != want {
			t.Errorf("%s: special %v", host, got)
		}
	}
}

func drawProxy(t *rapid.T) proxy.Proxy {
	return proxy.Proxy{
		Scheme:   rapid.SampledFrom([]proxy.Scheme{"http", "https", "socks4", "socks5"}).Draw(t, "scheme"),
		Host:     rapid.SampledFrom([]string{"a.example", "B.Example.", "8.8.8.8", "2606:4700::1", "x-1.y_2"}).Draw(t, "host"),
		Port:     uint16(rapid.IntRange(1, 65535).Draw(t, "port")),
		Username: rapid.StringMatching(`[ -~]{0,12}`).Draw(t, "user"),
		Password: proxy.Secret(rapid.StringMatching(`[ -~]{0,12}`).Draw(t, "pass")),
	}
}

func TestRoundTripAndIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProxy(t)
		back, err := proxy.Parse(p.URL().String(), "http")
		if err != nil || back.Canonical() != p.Canonical() {
			t.Fatalf("%q became %#v: %v", p.URL(), back, err)
		}
		key := []byte("key")
		if p.Canonical().ID(key) != back.Canonical().ID(key) {
			t.Fatal("equal proxies have different ids")
		}
		q := drawProxy(t)
		if (p.Canonical() == q.Canonical()) != (p.Canonical().ID(key) == q.Canonical().ID(key)) {
			t.Fatalf("identity of %s and %s", p, q)
		}
		if p.ID(key) == p.ID([]byte("other")) {
			t.Fatal("the id does not depend on the key")
		}
		id, err := proxy.ParseID(p.ID(key).String())
		if err != nil || id != p.ID(key) {
			t.Fatal("an id does not survive its text")
		}
	})
}

// Identities are kept in stores: they must never change.
func TestIDStaysWhatItIs(t *testing.T) {
	p := proxy.Proxy{Scheme: "http", Host: "gw.example", Port: 8080, Username: "bob", Password: "pä:ss"}
	if got := p.ID([]byte("key")).String(); got != "5ddc5c5cdc7de6af6f2170fe38ab211b" {
		t.Errorf("the id is %s", got)
	}
	long := proxy.Proxy{Scheme: "http", Host: "gw.example", Port: 8080, Username: strings.Repeat("u", 900)}
	if got := long.ID([]byte("key")).String(); got != "93adde9ced661999926b093393d5db30" {
		t.Errorf("the id is %s", got)
	}
}
