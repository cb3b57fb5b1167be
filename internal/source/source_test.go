package source_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/source"
)

func TestSettings(t *testing.T) {
	s, err := source.Parse("acme", map[string]string{
		"pool": "p", "url": "https://a.example/l/${TOKEN}?x=1", "interval": "5m", "timeout": "3s", "max_bytes": "2000", "headers.X-Token": "${TOKEN}",
		"query.y": "2", "scheme": "socks5h", "exit": "static", "region": "de", "group": "g", "labels.tier": "gold", "cap": "3", "ttl": "24h",
		"allow_special": "true", "format": "auto",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &source.Source{
		Name: "acme", Kind: source.KindURL, Pool: "p", URL: "https://a.example/l/${TOKEN}?x=1", Interval: 5 * time.Minute, Timeout: 3 * time.Second,
		MaxBytes: 2000, Headers: map[string]string{"X-Token": "${TOKEN}"}, Query: map[string]string{"y": "2"}, Params: map[string]string{},
		Format: proxy.FormatAuto, Scheme: proxy.SchemeSOCKS5, Exit: "static", Region: "de", Group: "g", Labels: map[string]string{"tier": "gold"}, Cap: 3, TTL: 24 * time.Hour,
		AllowSpecial: true, Mapping: source.Mapping{Fields: map[string]string{}, MaxPages: 100},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	r, err := s.Request(func(string) (string, bool) { return "a/b?c&d", true })
	if err != nil || r.URL.String() != "https://a.example/l/a%2Fb%3Fc%26d?x=1&y=2" || r.Headers["X-Token"].Reveal() != "a/b?c&d" {
		t.Errorf("the request is %v %v", r, err)
	}
}

func TestSettingFaults(t *testing.T) {
	base := map[string]string{"url": "https://a.example/"}
	for _, c := range []struct{ path, value, want string }{
		{"url", "", "url: must begin with http"},
		{"file", "x", "file: name exactly one"},
		{"url", "ftp://a.example/", "url: must begin with http"},
		{"url", "https:///x", "url: names no host"},
		{"url", "https://u:p@a.example/", "url: holds credentials"},
		{"url", "https://a.example/?api_key=abc", "url: api_key looks like a credential"},
		{"url", "https://${HOST}/", "url: a ${NAME} may stand in path and query"},
		{"url", "https://a.example/${", "url: holds a ${"},
		{"url", "https://a.example/%zz", "url: is not a URL"},
		{"url", "https://a.example/#x", "url: has a fragment"},
		{"interval", "soon", `interval: "soon" is not a duration`},
		{"interval", "1ms", "interval: 1ms is not within"},
		{"cap", "-1", "cap:"},
		{"max_bytes", "1", "max_bytes:"},
		{"allow_special", "perhaps", "allow_special:"},
		{"scheme", "gopher", "scheme:"},
		{"exit", "sometimes", "exit:"},
		{"format", "xml", "format:"},
		{"colour", "red", "colour: unknown setting"},
		{"labels.a=b", "c", "labels.a=b:"},
		{"headers.Authorization", "Bearer abc", "headers.Authorization: looks like a credential"},
		{"headers.Host", "x", "headers.Host: is set by the daemon"},
		{"headers.a b", "x", "headers.a b: is not the name"},
		{"query.api_key", "abc", "query.api_key: looks like a credential"},
		{"basic.password", "abc", "basic.password: looks like a credential"},
		{"basic.username", "u", "basic.username: basic authentication takes both"},
		{"json.records", "d", "json.records: means nothing for a source of the kind url"},
		{"params.country", "us", "params.country: means nothing"},
		{"pool", "a/b", "pool:"},
	} {
		settings := maps.Clone(base)
		settings[c.path] = c.value
		_, err := source.Parse("acme", settings)
		if _, ok := errors.AsType[*source.FieldError](err); !ok || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %q: got %v, want %s", c.path, c.value, err, c.want)
		}
	}
	for _, name := range []string{"", "a b", "a,b", "a/b", "hand", "..", strings.Repeat("a", 65)} {
		if source.CheckName(name) == nil {
			t.Errorf("the name %q is taken", name)
		}
	}
}

// TestShownHidesCredentials: whatever can be one is shown only as a variable.
func TestShownHidesCredentials(t *testing.T) {
	const marker = "S3cr3t-MARK"
	got := source.Shown(map[string]string{
		"url": "https://u:" + marker + "@a.example/x?y=" + marker, "json.url": "https://a.example/?" + marker, "headers.X": marker, "query.x": "${T}" + marker,
		"basic.username": marker, "params.username": marker, "params.password": "${T}", "headers.Authorization": "Bearer ${T}", "region": "de",
	})
	want := map[string]string{
		"url": "https://a.example/x", "json.url": "https://a.example/", "headers.X": "***", "query.x": "***", "basic.username": "***",
		"params.username": "***", "params.password": "${T}", "headers.Authorization": "Bearer ${T}", "region": "de",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPackRoundTrips(t *testing.T) {
	list := []proxy.Entry{
		{Line: 1, Proxy: proxy.Proxy{Scheme: "http", Host: "8.8.8.8", Port: 80, Username: "u", Password: "p:w"}, Region: "de", Group: "g", Cap: 3},
		{Line: 7, Proxy: proxy.Proxy{Scheme: "socks5", Host: "2001:4860::1", Port: 1}, Labels: map[string]string{"a": "b"}, ExpiresAt: time.Unix(2e9, 0).UTC()},
	}
	raw, err := source.Pack(list)
	if err != nil {
		t.Fatal(err)
	}
	back, err := source.Unpack(raw)
	if err != nil || !cmp.Equal(list, back) {
		t.Errorf("%v %s", err, cmp.Diff(list, back))
	}
	if _, err := source.Unpack(raw[:len(raw)/2]); err == nil {
		t.Error("half of it was read without a word")
	}
}
