package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hostler-proxy/hostler/client"
)

const mixedList = `{"host":"a.example","port":80,"scheme":"socks5","user":"bob","pass":"S3cr3t-MARK","country":"de","cap":3,"labels":{"k":"v"},"expires_at":4000000000}
gw.example:7777:u-{session}-{country}:S3cr3t-MARK
http://bob:S3cr3t-MARK%3A%40@[2001:db8::1]:8080
{"host":"b.example","port":81,"exit":"rotating","group":"acct"}
192.0.2.1:80
`

// proxiesOf gives a pool's proxies in an order of their own.
func (d *daemon) proxiesOf(pool string) []client.Proxy {
	d.t.Helper()
	list, err := d.api.AllProxies(d.t.Context(), client.ProxyFilter{Pool: pool})
	d.must(err)
	slices.SortFunc(list, func(a, b client.Proxy) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// What is exported with passwords comes in again as the same proxies.
func TestExportComesInAgain(t *testing.T) {
	d := start(t, nil)
	ctx := t.Context()
	imported, err := d.api.Import(ctx, strings.NewReader(mixedList), client.ImportOptions{AllowSpecial: true})
	d.must(err)
	if imported.Accepted != 5 {
		t.Fatalf("imported %+v", imported)
	}
	want := d.proxiesOf("")
	for i, format := range []string{"url", "hostport", "userpass", "csv", "json", "jsonl"} {
		var list strings.Builder
		d.must(d.api.Export(ctx, client.ExportOptions{Format: format, Passwords: true}, &list))
		again, err := d.api.Import(ctx, strings.NewReader(list.String()), client.ImportOptions{Pool: fmt.Sprint("p", i), AllowSpecial: true})
		d.must(err)
		if again.Accepted != 5 || again.Rejections != 0 {
			t.Fatalf("%s: %+v\n%s", format, again, list.String())
		}
		got := d.proxiesOf(fmt.Sprint("p", i))
		var unlike []string
		if i < 3 {
			unlike = []string{"Region", "Labels", "Group", "Exit", "Cap", "EarnedCap", "ExpiresAt"}
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(client.Proxy{}, append(unlike, "Score")...)); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
	}
}

func TestExportHoldsBackPasswords(t *testing.T) {
	d := start(t, nil)
	ctx := t.Context()
	_, err := d.api.Import(ctx, strings.NewReader(mixedList), client.ImportOptions{AllowSpecial: true})
	d.must(err)
	boss, err := d.api.NewToken(ctx, "boss", "operator")
	d.must(err)
	token, err := d.client(boss.Token).NewToken(ctx, "look", "viewer")
	d.must(err)
	for _, format := range []string{"url", "hostport", "userpass", "csv", "json", "jsonl"} {
		var list strings.Builder
		d.must(d.client(token.Token).Export(ctx, client.ExportOptions{Format: format}, &list))
		if strings.Contains(list.String(), "MARK") || !strings.Contains(list.String(), "bob") {
			t.Errorf("%s: %s", format, list.String())
		}
		err := d.client(token.Token).Export(ctx, client.ExportOptions{Format: format, Passwords: true}, &list)
		if p := wantProblem(t, err, "forbidden"); p.Status != http.StatusForbidden || strings.Contains(list.String(), "MARK") {
			t.Errorf("%s with passwords: %+v", format, p)
		}
	}
}

func TestExportFilters(t *testing.T) {
	d := start(t, nil)
	ctx := t.Context()
	_, err := d.api.Import(ctx, strings.NewReader(mixedList), client.ImportOptions{AllowSpecial: true, Source: "s"})
	d.must(err)
	for want, f := range map[string]client.ProxyFilter{
		"http://b.example:81\n": {Group: "acct"}, "socks5://bob@a.example:80\n": {Label: "k=v"}, "": {State: "cooling"},
	} {
		var list strings.Builder
		d.must(d.api.Export(ctx, client.ExportOptions{ProxyFilter: f}, &list))
		if list.String() != want {
			t.Errorf("%+v: %q", f, list.String())
		}
	}
	for slug, o := range map[string]client.ExportOptions{
		"unknown-pool": {ProxyFilter: client.ProxyFilter{Pool: "nope"}}, "invalid-request": {Format: "lines"},
	} {
		var list strings.Builder
		isProblem(t, d.api.Export(ctx, o, &list), slug)
	}
}

func TestImportFormats(t *testing.T) {
	d := start(t, nil)
	ctx := t.Context()
	for name, c := range map[string]struct {
		list string
		o    client.ImportOptions
		want client.Imported
	}{
		"auto":     {"h1.example:80:h2.example:81\n", client.ImportOptions{}, client.Imported{Rejections: 1}},
		"said":     {"h1.example:80:h2.example:81\n", client.ImportOptions{Format: "hostport"}, client.Imported{Accepted: 1}},
		"columns":  {"h3.example,80\n", client.ImportOptions{Columns: []string{"host", "port"}}, client.Imported{Accepted: 1}},
		"map":      {"https://h4.example:80\nhttp://h4.example:80\n", client.ImportOptions{MapScheme: map[string]string{"https": "http"}}, client.Imported{Accepted: 1, Duplicates: 1}},
		"many bad": {strings.Repeat("x\n", 1500), client.ImportOptions{}, client.Imported{Rejections: 1500}},
	} {
		got, err := d.api.Import(ctx, strings.NewReader(c.list), c.o)
		d.must(err)
		if diff := cmp.Diff(&c.want, got, cmpopts.IgnoreFields(client.Imported{}, "Rejected", "Ignored")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if len(got.Rejected) != min(c.want.Rejections, 1000) {
			t.Errorf("%s: %d rejections are listed", name, len(got.Rejected))
		}
	}
	for field, o := range map[string]client.ImportOptions{
		"format": {Format: "xml"}, "map_scheme": {MapScheme: map[string]string{"quic": "http"}},
	} {
		_, err := d.api.Import(ctx, strings.NewReader(""), o)
		if p := wantProblem(t, err, "invalid-request"); p.Field != field {
			t.Errorf("%s: %+v", field, p)
		}
	}
}

// A list may say when a proxy expires in each of the ways that lists do.
func TestImportTakesTheArticlesRecord(t *testing.T) {
	d := start(t, nil)
	_, err := d.api.Import(t.Context(), strings.NewReader("{\n  \"host\": \"proxy.example.com\",\n  \"port\": 8000,\n  \"scheme\": \"http\",\n  \"region\": \"cn-east\",\n  \"expires_at\": 1790000000,\n  \"fail_count\": 0\n}\n"), client.ImportOptions{})
	d.must(err)
	p := d.proxiesOf("")[0]
	if p.Host != "proxy.example.com" || p.Port != 8000 || p.Region != "cn-east" || !p.ExpiresAt.Equal(time.Unix(1790000000, 0)) {
		t.Errorf("got %+v", p)
	}
}
