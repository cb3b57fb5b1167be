package app_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
)

// proxyList gives n proxies of a list.
func proxyList(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "10.0.%d.%d:3128\n", i/250, i%250+1)
	}
	return b.String()
}

// startWithRules has proxies that never rest for reuse.
func startWithRules(t *testing.T, proxies int, change func(*app.Options)) *daemon {
	t.Helper()
	d := start(t, change)
	_, err := d.api.PutPool(t.Context(), "default", map[string]any{"reuse_interval_ms": 0})
	d.must(err)
	d.add(proxyList(proxies))
	return d
}

// fetched lends a proxy for a target and reports.
func (d *daemon) fetched(target string, f client.Facts) *client.Reported {
	d.t.Helper()
	lease := d.acquire(client.AcquireRequest{Target: target, WaitMS: 60_000}) // a target that fails is slowed down
	f.Phase, f.HTTPS = "body", true
	got, err := d.api.Report(d.t.Context(), lease.ID, f)
	d.must(err)
	return got
}

func (d *daemon) putRules(target string, defaults *bool, list ...client.Rule) {
	d.t.Helper()
	_, err := d.api.PutTarget(d.t.Context(), "", target, client.TargetPolicy{Rules: list, DefaultRules: defaults})
	d.must(err)
}

func TestMatchedRulesDecideTheClass(t *testing.T) {
	t.Parallel()
	d := startWithRules(t, 60, nil)
	when := client.RuleWhen{Contains: &client.RulePattern{Text: "x"}}
	d.putRules("shop.example", nil,
		client.Rule{Name: "captcha", When: when}, client.Rule{Name: "odd", Kind: "weak", When: when},
		client.Rule{Name: "slow", Class: "rate", When: when}, client.Rule{Name: "abroad", Class: "geo", When: when},
		client.Rule{Name: "gone", When: client.RuleWhen{Status: []int{404}}},
		client.Rule{Name: "limit", When: client.RuleWhen{Status: []int{429}}},
		client.Rule{Name: "fine", Class: "ok", When: client.RuleWhen{Status: []int{403}}},
		client.Rule{Name: "login", When: client.RuleWhen{RedirectHost: "login.shop.example"}},
		client.Rule{Name: "small", When: client.RuleWhen{Status: []int{206}, MinBytes: 100}},
	)
	for _, tt := range []struct {
		name  string
		facts client.Facts
		want  string
	}{
		{"no rule", client.Facts{Status: 200}, "OK"},
		{"decisive over OK", client.Facts{Status: 200, Matched: []string{"captcha"}}, "BLOCKED_SOFT"},
		{"decisive over a failing site", client.Facts{Status: 503, Matched: []string{"captcha"}}, "BLOCKED_SOFT"},
		{"decisive before weak", client.Facts{Status: 200, Matched: []string{"odd", "captcha"}}, "BLOCKED_SOFT"},
		{"weak", client.Facts{Status: 200, Matched: []string{"odd"}}, "SUSPECT_SOFT"},
		{"weak says nothing where the status does", client.Facts{Status: 500, Matched: []string{"odd"}}, "TARGET_5XX"},
		{"rate", client.Facts{Status: 200, Matched: []string{"slow"}, RetryAfter: "7"}, "RATE_LIMITED"},
		{"country", client.Facts{Status: 200, Matched: []string{"abroad"}}, "GEO_BLOCKED"},
		{"a default rule", client.Facts{Status: 503, Matched: []string{"default.cloudflare-challenge"}}, "BLOCKED_SOFT"},
		{"by status, without a worker's word", client.Facts{Status: 404}, "BLOCKED_SOFT"},
		{"a block by status that is none", client.Facts{Status: 403}, "OK"},
		{"by redirect", client.Facts{Status: 302, RedirectHost: "sso.login.shop.example"}, "BLOCKED_SOFT"},
		{"by size", client.Facts{Status: 206, BodyBytes: 99}, "BLOCKED_SOFT"},
		{"a size that was not told", client.Facts{Status: 206}, "OK"},
		{"a 429 that is none", client.Facts{Status: 429, Matched: []string{"captcha"}}, "BLOCKED_SOFT"}, // by the rule that names it
		{"the caller's own word stands", client.Facts{Status: 200, Class: "OK", Matched: []string{"captcha"}}, "OK"},
	} {
		if got := d.fetched("shop.example", tt.facts); got.Class != tt.want || len(got.UnknownRules) > 0 {
			t.Errorf("%s: %+v, want %s", tt.name, got, tt.want)
		}
	}
	if got := d.fetched("other.example", client.Facts{Status: 429, Matched: []string{"default.human"}}); got.Class != "RATE_LIMITED" {
		t.Errorf("a mark on a 429: %+v", got)
	}
	got := d.fetched("shop.example", client.Facts{Status: 200, Matched: []string{"old-name"}})
	if got.Class != "OK" || fmt.Sprint(got.UnknownRules) != "[old-name]" {
		t.Errorf("an unknown rule: %+v", got)
	}
	lease := d.acquire(client.AcquireRequest{WaitMS: 60_000})
	dialled, err := d.api.Report(t.Context(), lease.ID, client.Facts{Phase: "proxy_dial", Error: "refused", Matched: []string{"captcha"}})
	d.must(err)
	if dialled.Class != "PROXY_DIAL" {
		t.Errorf("a rule judged an answer that never came: %+v", dialled)
	}
}

// counted counts the calls that go out.
type counted struct {
	next  http.RoundTripper
	calls atomic.Int32
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.calls.Add(1)
	return c.next.RoundTrip(r)
}

func TestRulesAreHandedOutOnce(t *testing.T) {
	t.Parallel()
	d := startWithRules(t, 5, nil)
	ctx := t.Context()
	d.putRules("shop.example", nil, client.Rule{Name: "robots", When: client.RuleWhen{Contains: &client.RulePattern{Words: []string{"No <robots>"}}}})
	count := &counted{next: d.rt}
	api, err := client.New(d.app.URL(), client.WithHTTPClient(&http.Client{Transport: count}))
	d.must(err)
	lease := d.acquire(client.AcquireRequest{})
	rules, err := api.LeaseRules(ctx, &lease)
	d.must(err)
	page := client.Page{Status: 200, Body: []byte("<p>no <ROBOTS> here</p>"), Size: 23}
	if rules.ETag != lease.Rules.ETag || lease.Rules.URL != "/v1/targets/shop.example/rules?pool=default" || fmt.Sprint(rules.Match(page)) != "[robots]" {
		t.Fatalf("lease %+v, rules %s %s", lease.Rules, rules.ETag, rules.Rules)
	}
	again, err := api.LeaseRules(ctx, &lease)
	d.must(err)
	if again != rules || count.calls.Load() != 1 {
		t.Fatalf("%d calls for one version", count.calls.Load())
	}
	if same, err := api.TargetRules(ctx, "default", "shop.example"); err != nil || same != rules {
		t.Fatalf("the same rules came twice: %v", err)
	}
	res, err := http.Get(d.app.URL() + lease.Rules.URL)
	d.must(err)
	_ = res.Body.Close()
	if res.Header.Get("ETag") != `"`+rules.ETag+`"` {
		t.Errorf("etag %s", res.Header.Get("ETag"))
	}
	// New rules reach the holder of the next lease.
	off := false
	d.putRules("shop.example", &off, client.Rule{Name: "fine", Class: "ok", When: client.RuleWhen{Status: []int{403}}})
	lease = d.acquire(client.AcquireRequest{})
	changed, err := api.LeaseRules(ctx, &lease)
	d.must(err)
	if changed.ETag == rules.ETag || len(changed.Match(page)) != 0 {
		t.Fatalf("old rules: %s", changed.Rules)
	}
	// Without rules there is nothing to fetch.
	d.putRules("shop.example", &off)
	lease = d.acquire(client.AcquireRequest{})
	before := count.calls.Load()
	none, err := api.LeaseRules(ctx, &lease)
	d.must(err)
	if lease.Rules != (client.Rules{}) || none.ETag != "" || len(none.Match(page)) != 0 || count.calls.Load() != before {
		t.Fatalf("no rules: %+v", lease.Rules)
	}
	_, err = api.TargetRules(ctx, "nowhere", "shop.example")
	isProblem(t, err, client.UnknownPool)
}

func TestRulesAreSettings(t *testing.T) {
	t.Parallel()
	d := start(t, nil)
	ctx := t.Context()
	file := "pools: {default: {default_rules: false, targets: {shop.example: {rules: [{name: a, when: {status: 404}}]}}}}"
	applied, err := d.api.ApplyConfig(ctx, strings.NewReader(file), false)
	d.must(err)
	if len(applied.Changes) != 2 || applied.Changes[0].Path != "pools.default.default_rules" || applied.Changes[1].Path != "pools.default.targets.shop.example.rules" {
		t.Fatalf("applied %+v", applied)
	}
	_, err = d.api.ApplyConfig(ctx, strings.NewReader("pools:\n  default:\n    targets:\n      a.example:\n        rules:\n        - when: {}"), false)
	if p := wantProblem(t, err, client.InvalidRequest); !strings.Contains(p.Detail, "line 6") {
		t.Errorf("a faulty file: %q", p.Detail)
	}
	_, err = d.api.PutPool(ctx, "default", map[string]any{"targets": map[string]any{"shop.example": map[string]any{
		"rules": []any{map[string]any{"name": "b", "when": map[string]any{"contains": map[string]any{"regexp": "("}}}},
	}}})
	if p := wantProblem(t, err, client.InvalidRequest); !strings.Contains(p.Detail, "[0].when.contains") {
		t.Errorf("a faulty edit: %q", p.Detail)
	}
	info, err := d.api.PutPool(ctx, "default", map[string]any{"targets": map[string]any{"shop.example": map[string]any{
		"rules": []any{map[string]any{"name": "b", "when": map[string]any{"contains": "<i>"}}},
	}}})
	d.must(err)
	if text := fmt.Sprint(info.Policy["targets"], info.Policy["default_rules"], info.Overrides); !strings.Contains(text, "<i>") || !strings.Contains(text, "false [targets.shop.example.rules]") {
		t.Errorf("policy %s", text)
	}
	pools, err := d.api.Config(ctx)
	d.must(err)
	if s := pools["default"].Settings; s["default_rules"] != "false" || !strings.Contains(s["targets.shop.example.rules"], `"name":"b"`) {
		t.Errorf("settings %v", s)
	}
	_, err = d.api.PutPool(ctx, "default", map[string]any{"targets": map[string]any{"shop.example": map[string]any{"rules": nil}}, "default_rules": nil})
	d.must(err)
	back, err := d.api.TargetRules(ctx, "", "shop.example")
	d.must(err)
	if !strings.Contains(string(back.Rules), `"name":"a"`) {
		t.Errorf("the file's rules do not hold again: %s", back.Rules)
	}
}

// TestRulesOutliveARestart: a new daemon on the same store has them.
func TestRulesOutliveARestart(t *testing.T) {
	t.Parallel()
	var o app.Options
	d := start(t, func(mine *app.Options) { o = *mine })
	d.putRules("shop.example", nil, client.Rule{Name: "kept", When: client.RuleWhen{Status: []int{404}}})
	before, err := d.api.TargetRules(t.Context(), "", "shop.example")
	d.must(err)
	d.stop()
	again := start(t, func(mine *app.Options) { mine.Store = o.Store })
	after, err := again.api.TargetRules(t.Context(), "", "shop.example")
	again.must(err)
	if after.ETag != before.ETag || !strings.Contains(string(after.Rules), `"kept"`) {
		t.Fatalf("%s, before %s", after.Rules, before.Rules)
	}
}

func TestRulesRole(t *testing.T) {
	t.Parallel()
	d := start(t, nil)
	admin, err := d.api.NewToken(t.Context(), "admin", "operator")
	d.must(err)
	for role, allowed := range map[string]bool{"worker": true, "viewer": false, "operator": true} {
		token, err := d.client(admin.Token).NewToken(t.Context(), role, role)
		d.must(err)
		_, err = d.client(token.Token).TargetRules(t.Context(), "", "shop.example")
		if allowed {
			d.must(err)
		} else {
			isProblem(t, err, client.Forbidden)
		}
	}
}

// TestManyURLsWithOneBodyAreSuspect, unless the default rules are off.
func TestManyURLsWithOneBodyAreSuspect(t *testing.T) {
	t.Parallel()
	d := startWithRules(t, 20, nil)
	off := false
	d.putRules("quiet.example", &off)
	for target, want := range map[string]string{"shop.example": "SUSPECT_SOFT", "quiet.example": "OK"} {
		for i := range 5 {
			got := d.fetched(target, client.Facts{
				Status: 200, BodyBytes: 4000, BodyHash: "same", Request: &client.Request{URL: fmt.Sprintf("https://%s/p/%d", target, i)},
			})
			if i < 4 && got.Class != "OK" || i == 4 && got.Class != want {
				t.Errorf("%s: URL %d: %+v", target, i+1, got)
			}
		}
	}
}

// TestParserSuspect breaks a parser: an event comes, and no proxy is charged.
func TestParserSuspect(t *testing.T) {
	t.Parallel()
	var offset atomic.Int64
	began := time.Now()
	d := startWithRules(t, 8, func(o *app.Options) {
		o.RecoverEvery = 20 * time.Millisecond
		o.Clock = func() time.Time { return began.Add(time.Duration(offset.Load())) }
	})
	crawl := func(n int, valid bool) {
		for i := range n {
			got := d.fetched("shop.example", client.Facts{Status: 200, Valid: &valid, Items: int64(i)})
			if got.Class != "OK" {
				t.Fatalf("page %d: %+v", i, got)
			}
		}
	}
	crawl(40, true)
	offset.Add(int64(15 * time.Minute))
	crawl(30, false)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	offset.Add(int64(time.Second))
	if e := nextEvents(ctx, d.api)(); e.Event != "parser_suspect" || e.Pool != "default" || e.Subject != "shop.example" {
		t.Fatalf("event %+v", e)
	}
	proxies, _, err := d.api.Proxies(t.Context(), client.ProxyFilter{})
	d.must(err)
	for _, p := range proxies {
		if p.State != "active" && p.State != "new" || p.Streak != 0 || p.Until != nil {
			t.Errorf("a broken parser changed a proxy: %+v", p)
		}
	}
}

// TestWallsWithStatus200 fetches walls from a real server, one of them
// compressed, and good pages, as a worker does.
func TestWallsWithStatus200(t *testing.T) {
	t.Parallel()
	d := startWithRules(t, 10, nil)
	d.putRules("shop.example", nil, client.Rule{Name: "product", When: client.RuleWhen{
		Status: []int{200}, MustContain: &client.RulePattern{Text: `itemprop="price"`},
	}})
	pages := map[string]string{
		"/good":      `<html><h1>Blue chair</h1><p>A chair of oak with a seat of linen, for those who sit long.</p><b itemprop="price">129</b></html>`,
		"/captcha":   `<html><p>Please solve this captcha, so that we know that you are no robot of any kind.</p></html>`,
		"/suspended": `{"error":"account suspended"}`,
		"/wall":      `<html><script>window._cf_chl_opt={cvId:'3'}</script><b itemprop="price">0</b></html>`,
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, pages[r.URL.Path])
		_ = z.Close()
	}))
	t.Cleanup(site.Close)
	for path, want := range map[string]string{"/good": "OK", "/captcha": "BLOCKED_SOFT", "/suspended": "BLOCKED_SOFT", "/wall": "BLOCKED_SOFT"} {
		lease := d.acquire(client.AcquireRequest{})
		rules, err := d.api.LeaseRules(t.Context(), &lease)
		d.must(err)
		res, err := http.Get(site.URL + path)
		d.must(err)
		body, err := io.ReadAll(res.Body)
		d.must(err)
		_ = res.Body.Close()
		got, err := d.api.Report(t.Context(), lease.ID, client.Facts{
			Phase: "body", Status: res.StatusCode, HTTPS: true, BodyBytes: int64(len(body)),
			Matched: rules.Match(client.Page{Status: res.StatusCode, Header: res.Header, Body: body, Size: int64(len(body))}),
		})
		d.must(err)
		if got.Class != want || len(got.UnknownRules) > 0 {
			t.Errorf("%s: %+v, want %s", path, got, want)
		}
	}
}
