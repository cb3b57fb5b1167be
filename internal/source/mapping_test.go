package source_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/source"
)

func TestMapping(t *testing.T) {
	m := source.Mapping{
		Records: "data.items", CursorPath: "data.next", NextPath: "links.0",
		Fields: map[string]string{
			"host": "proxy_address", "port": "ports.http", "username": "auth.0", "password": "auth.1", "scheme": "=socks5", "region": "geo.country",
			"labels.tier": "tier", "labels.by": "=acme", "cap": "threads", "expires_at": "until", "group": "plan",
		},
	}
	body := `{"data":{"next":12,"items":[
		{"proxy_address":"8.8.8.8","ports":{"http":80},"auth":["u","p:w"],"geo":{"country":"de"},"tier":"gold","threads":3,"until":2000000000,"plan":"p1"},
		{"proxy_address":"2001:4860::1","ports":{"http":"81"},"auth":null,"until":"2033-05-18T03:33:20Z"},
		{"proxy_address":"10.0.0.1","ports":{"http":80}},
		{"proxy_address":"8.8.8.8","ports":{"http":99999}},
		{"proxy_address":"8.8.8.8"},
		{"proxy_address":["8.8.8.8"],"ports":{"http":80}},
		"8.8.8.8:80", null, {"proxy_address":"8.8.8.8","ports":{"http":80},"threads":"many"},
		{"proxy_address":"8.8.8.8","ports":{"http":80},"until":"tomorrow"},
		{"proxy_address":"8.8.8.8","ports":{"http":80},"tier":"a=b"},
		{"proxy_address":"8.8.8.8","ports":{"http":80},"geo":{"country":"a\u0007b"}}]},"links":["/more"]}`
	p, err := m.Read([]byte(body), 100, proxy.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []proxy.Entry{
		{
			Line: 101, Proxy: proxy.Proxy{Scheme: "socks5", Host: "8.8.8.8", Port: 80, Username: "u", Password: "p:w"}, Region: "de", Group: "p1",
			Labels: map[string]string{"tier": "gold", "by": "acme"}, Cap: 3, ExpiresAt: time.Unix(2e9, 0).UTC(),
		},
		{
			Line: 102, Proxy: proxy.Proxy{Scheme: "socks5", Host: "2001:4860::1", Port: 81}, Labels: map[string]string{"by": "acme"},
			ExpiresAt: time.Unix(2e9, 0).UTC(),
		},
	}
	if diff := cmp.Diff(want, p.Entries); diff != "" {
		t.Error(diff)
	}
	if p.Records != 12 || len(p.Rejected) != 10 || p.Cursor != "12" || p.Next != "/more" {
		t.Errorf("%d records, %d rejected, cursor %q, next %q", p.Records, len(p.Rejected), p.Cursor, p.Next)
	}
	if r := p.Rejected[0]; r.Line != 103 || !strings.Contains(r.Reason, "special-purpose") {
		t.Errorf("a private address: %+v", r)
	}
	p, err = m.Read([]byte(body), 0, proxy.ListOptions{AllowSpecial: true})
	if err != nil || len(p.Entries) != 3 {
		t.Errorf("allowed: %v %v", p, err)
	}
}

func TestMappingOfWholeLines(t *testing.T) {
	m := source.Mapping{Fields: map[string]string{"line": "p.0"}}
	p, err := m.Read([]byte("\xef\xbb\xbf"+`[{"p":["http://u:p%40w@8.8.8.8:80"]},{"p":["8.8.8.8:81:u:pw"]},{"p":[]},{"p":["x"]}]`), 0, proxy.ListOptions{Scheme: "socks5"})
	if err != nil || len(p.Entries) != 2 || len(p.Rejected) != 2 {
		t.Fatalf("%+v %v", p, err)
	}
	if a, b := p.Entries[0].Proxy, p.Entries[1].Proxy; a.Password.Reveal() != "p@w" || a.Scheme != "http" || b.Scheme != "socks5" || b.Password.Reveal() != "pw" {
		t.Errorf("%v %v", a, b)
	}
}

func TestMappingFaults(t *testing.T) {
	for settings, want := range map[string]string{
		"":                                      "json.fields: name the path of host",
		"json.fields.host=h":                    "json.fields.port: is missing",
		"json.fields.line=l json.fields.host=h": "json.fields.line: is a whole proxy",
		"json.fields.line=l json.paging.page=p json.paging.next=n": "json.paging: page, cursor and next",
		"json.fields.line=l json.paging.first=0":                   "json.paging.first: means nothing",
		"json.fields.line=l json.paging.cursor_param=c":            "json.paging.cursor_param: means nothing",
		"json.fields.colour=l":                                     "json.fields.colour: is no field",
		"json.fields.line=a..b":                                    "json.fields.line: \"a..b\" is not a path",
		"json.fields.line=l json.paging.page=a&b":                  "json.paging.page:",
	} {
		all := map[string]string{"json.url": "https://a.example/"}
		for s := range strings.FieldsSeq(settings) {
			path, value, _ := strings.Cut(s, "=")
			all[path] = value
		}
		if _, err := source.Parse("acme", all); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", settings, err, want)
		}
	}
}

// FuzzMapping feeds any mapping any answer: what comes out are proxies that can be
// used, and reasons that can be shown.
func FuzzMapping(f *testing.F) {
	f.Add("data", "ip", "port", `{"data":[{"ip":"8.8.8.8","port":80}]}`)
	f.Add("", "0", "1", `[["8.8.8.8",80],[]]`)
	f.Add("a.0.b", "=8.8.8.8", "=80", `{"a":[{"b":[1]}]}`)
	f.Add("x", "y", "z", `{"x":[{"y":"a\u0000b","z":1e3}]}`)
	f.Fuzz(func(t *testing.T, records, host, port, body string) {
		for _, fields := range []map[string]string{
			{"host": host, "port": port, "username": "u", "region": host, "labels.a": port, "cap": port, "expires_at": port}, {"line": host, "group": port},
		} {
			m := source.Mapping{Records: records, Fields: fields, CursorPath: host, NextPath: port}
			p, err := m.Read([]byte(body), 0, proxy.ListOptions{})
			if err != nil {
				continue
			}
			if len(p.Entries)+len(p.Rejected) != p.Records {
				t.Fatalf("%d records, %d proxies, %d rejected", p.Records, len(p.Entries), len(p.Rejected))
			}
			for _, e := range p.Entries {
				if err := e.Proxy.Validate(); err != nil || e.Proxy.Special() != "" || e.Cap < 0 {
					t.Fatalf("%+v: %v", e, err)
				}
			}
		}
	})
}
