package proxy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

var writable = []proxy.Format{proxy.FormatURL, proxy.FormatHostPort, proxy.FormatUserPass, proxy.FormatCSV, proxy.FormatJSON, proxy.FormatJSONL}

func write(t interface{ Fatal(...any) }, format proxy.Format, passwords bool, list []proxy.Entry) string {
	var b strings.Builder
	w, err := proxy.WriteList(&b, format, passwords)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWriteList(t *testing.T) {
	list := []proxy.Entry{
		{Proxy: proxy.Proxy{Scheme: "http", Host: "8.8.8.1", Port: 80}},
		{
			Proxy: proxy.Proxy{Scheme: "socks5", Host: "2606:4700::1", Port: 1080, Username: "bob", Password: "p:a,\"ß"}, Region: "de",
			Group: "g", Labels: map[string]string{"b": "2", "a": "1"}, Exit: "rotating", Cap: 3, ExpiresAt: time.UnixMilli(1790000000000),
		},
	}
	for format, want := range map[proxy.Format]string{
		"url":      "http://8.8.8.1:80\nsocks5://bob:p%3Aa%2C%22%C3%9F@[2606:4700::1]:1080\n",
		"hostport": "8.8.8.1:80\nsocks5://[2606:4700::1]:1080:bob:p:a,\"ß\n",
		"userpass": "8.8.8.1:80\nsocks5://bob:p:a,\"ß:[2606:4700::1]:1080\n",
		"csv": "scheme,host,port,username,password,region,group,labels,exit,cap,expires_at\nhttp,8.8.8.1,80,,,,,,,,\n" +
			"socks5,2606:4700::1,1080,bob,\"p:a,\"\"ß\",de,g,\"a=1,b=2\",rotating,3,2026-09-21T14:13:20.000Z\n",
		"json": "[\n{\"scheme\":\"http\",\"host\":\"8.8.8.1\",\"port\":80},\n{\"scheme\":\"socks5\",\"host\":\"2606:4700::1\",\"port\":1080,\"username\":\"bob\"," +
			"\"password\":\"p:a,\\\"ß\",\"region\":\"de\",\"group\":\"g\",\"labels\":{\"a\":\"1\",\"b\":\"2\"},\"exit\":\"rotating\",\"cap\":3,\"expires_at\":\"2026-09-21T14:13:20.000Z\"}\n]\n",
	} {
		if diff := cmp.Diff(want, write(t, format, true, list)); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
	}
	for _, format := range writable {
		if text := write(t, format, false, list); strings.Contains(text, "ß") || !strings.Contains(text, "bob") {
			t.Errorf("%s without passwords: %s", format, text)
		}
	}
	for format, want := range map[proxy.Format]string{"json": "[]\n", "jsonl": "", "url": ""} {
		if got := write(t, format, true, nil); got != want {
			t.Errorf("%s of nothing: %q", format, got)
		}
	}
	for _, format := range []proxy.Format{"auto", "lines", "xml", ""} {
		if _, err := proxy.WriteList(&strings.Builder{}, format, true); err == nil {
			t.Errorf("%q is written", format)
		}
	}
}

func drawEntry(t *rapid.T) proxy.Entry {
	text := rapid.StringMatching(`[ -~äß€]{0,14}`)
	word := rapid.StringMatching(`[!-+\--<>-~é]{1,8}`) // neither comma, = nor spaces
	e := proxy.Entry{
		Proxy: proxy.Proxy{
			Scheme: rapid.SampledFrom([]proxy.Scheme{"http", "https", "socks4", "socks4a", "socks5"}).Draw(t, "scheme"),
			Host:   rapid.SampledFrom([]string{"a.example", "host", "8.8.8.8", "2606:4700::1", "x-1.y_2"}).Draw(t, "host"),
			Port:   uint16(rapid.IntRange(1, 65535).Draw(t, "port")),
		},
		Exit: rapid.SampledFrom([]string{"", "static", "rotating", "template"}).Draw(t, "exit"),
		Cap:  rapid.IntRange(0, 10_000).Draw(t, "cap"),
	}
	e.Proxy.Username = rapid.OneOf(text, rapid.SampledFrom([]string{"", "u-{session}-{country}", "8.8.8.8", "a:80"})).Draw(t, "user")
	e.Proxy.Password = proxy.Secret(rapid.OneOf(text, rapid.SampledFrom([]string{"", "80", "p@h:80", "%41", " #x", "x:80"})).Draw(t, "pass"))
	e.Region, e.Group = rapid.OneOf(word, rapid.Just("")).Draw(t, "region"), rapid.OneOf(word, rapid.Just("")).Draw(t, "group")
	if e.Region == "?" || e.Region == "-" {
		e.Region = ""
	}
	if n := rapid.IntRange(0, 3).Draw(t, "labels"); n > 0 {
		e.Labels = rapid.MapOfN(word, word, n, n).Draw(t, "label")
	}
	if rapid.Bool().Draw(t, "expires") {
		e.ExpiresAt = time.UnixMilli(rapid.Int64Range(1000, 4_000_000_000_000).Draw(t, "expiry")).UTC()
	}
	return e
}

// What is exported can be imported again: with the same identities in every
// form, and with all that is said of the proxies in the forms that carry it.
func TestExportImportRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(drawEntry), 1, 8).Draw(t, "list")
		for _, format := range writable {
			text := write(t, format, true, list)
			for _, read := range []proxy.Format{proxy.FormatAuto, format} {
				if read == proxy.FormatHostPort || read == proxy.FormatUserPass {
					read = proxy.FormatLines // which takes the URLs between, too
				}
				checkRoundTrip(t, format, read, text, list)
			}
		}
	})
}

func checkRoundTrip(t *rapid.T, format, read proxy.Format, text string, list []proxy.Entry) {
	l := proxy.ReadList(strings.NewReader(text), proxy.ListOptions{Format: read, AllowSpecial: true})
	full := format == proxy.FormatCSV || format == proxy.FormatJSON || format == proxy.FormatJSONL
	for i, want := range list {
		got, ok := l.Next()
		if !ok {
			t.Fatalf("%s read as %s: entry %d is missing: %v\n%s", format, read, i, l.Rejected(), text)
		}
		if got.Line = want.Line; !full {
			want = proxy.Entry{Proxy: want.Proxy}
		}
		if diff := cmp.Diff(fmt.Sprintf("%+v %s", want, want.Proxy.URL()), fmt.Sprintf("%+v %s", got, got.Proxy.URL())); diff != "" {
			t.Fatalf("%s read as %s: %s\n%s", format, read, diff, text)
		}
	}
	if e, ok := l.Next(); ok || l.RejectedCount() > 0 {
		t.Fatalf("%s read as %s: more: %v %v\n%s", format, read, e, l.Rejected(), text)
	}
}
