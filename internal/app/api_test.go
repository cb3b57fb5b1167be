package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/api/apitest"
	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
)

// checked is a transport that holds every request and answer against the contract.
type checked struct {
	t        *testing.T
	contract *apitest.Contract
	mu       sync.Mutex
	called   map[string]bool
}

func (c *checked) RoundTrip(r *http.Request) (*http.Response, error) {
	op := c.contract.Find(r.Method, r.URL.EscapedPath())
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || op == nil {
		return res, err
	}
	c.mu.Lock()
	c.called[op.ID] = true
	c.mu.Unlock()
	if res.Header.Get("Content-Type") == "text/event-stream" {
		return res, nil // it has no end
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	if err := op.CheckAnswer(res.StatusCode, res.Header.Get("Content-Type"), body); err != nil {
		c.t.Errorf("%s %s: %d: %v\n%.2000s", r.Method, r.URL.Path, res.StatusCode, err, body)
	}
	return res, nil
}

// daemon is a running daemon with an API client whose answers are checked.
type daemon struct {
	t   *testing.T
	app *app.App
	api *client.Client
	rt  *checked
	log *bytes.Buffer
	mu  *sync.Mutex
}

// syncBuffer is a log that can be read while it is written.
type syncBuffer struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (s syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func start(t *testing.T, change func(*app.Options)) *daemon {
	t.Helper()
	contract, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, log: &bytes.Buffer{}, mu: &sync.Mutex{}, rt: &checked{t: t, contract: contract, called: map[string]bool{}}}
	o := app.Options{
		Listen: "127.0.0.1:0", Store: filepath.Join(t.TempDir(), "hostler.db"),
		Log: slog.New(slog.NewTextHandler(syncBuffer{d.mu, d.log}, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&o)
	}
	if d.app, err = app.New(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	d.app.Start(t.Context())
	t.Cleanup(d.stop)
	d.api = d.client("")
	return d
}

func (d *daemon) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := d.app.Stop(ctx); err != nil {
		d.t.Errorf("stop: %v", err)
	}
}

func (d *daemon) client(token string) *client.Client {
	d.t.Helper()
	api, err := client.New(d.app.URL(), client.WithToken(token), client.WithHTTPClient(&http.Client{Transport: d.rt}))
	if err != nil {
		d.t.Fatal(err)
	}
	return api
}

func (d *daemon) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *daemon) add(list string) {
	d.t.Helper()
	_, err := d.api.Import(d.t.Context(), strings.NewReader(list), client.ImportOptions{AllowSpecial: true})
	d.must(err)
}

func (d *daemon) acquire(r client.AcquireRequest) client.Lease {
	d.t.Helper()
	if r.Target == "" {
		r.Target = "shop.example"
	}
	got, err := d.api.Acquire(d.t.Context(), r)
	d.must(err)
	return got.Leases[0]
}

func isProblem(t *testing.T, err error, slug string) {
	t.Helper()
	_ = wantProblem(t, err, slug)
}

func wantProblem(t *testing.T, err error, slug string) *client.Problem {
	t.Helper()
	var p *client.Problem
	if !errors.As(err, &p) || p.Slug() != slug {
		t.Fatalf("got %v, want the problem %s", err, slug)
	}
	return p
}

// TestEveryCall walks through the whole API; every answer is held against the contract.
func TestEveryCall(t *testing.T) {
	d := start(t, nil)
	ctx := t.Context()
	imported, err := d.api.Import(ctx, strings.NewReader("# list\n10.0.0.1:8080\n10.0.0.2:8080:bob:pa:ss\nnonsense\n10.0.0.1:8080\n"),
		client.ImportOptions{Group: "acct", Region: "de", Labels: map[string]string{"plan": "dc"}, AllowSpecial: true})
	d.must(err)
	if imported.Accepted != 2 || imported.Duplicates != 1 || len(imported.Rejected) != 1 || imported.Rejected[0].Line != 4 {
		t.Fatalf("imported %+v", imported)
	}
	lease := d.acquire(client.AcquireRequest{
		Worker: "w1", WorkerConcurrency: 4, RequestID: "r1", Session: "s1",
		Request: &client.Request{URL: "https://u:p@shop.example/a?q=secret", Method: "GET", Attempt: 1},
	})
	again := d.acquire(client.AcquireRequest{
		Worker: "w1", WorkerConcurrency: 4, RequestID: "r1", Session: "s1",
		Request: &client.Request{URL: "https://u:p@shop.example/a?q=secret", Method: "GET", Attempt: 1},
	})
	if lease.ID != again.ID || lease.Target != "shop.example" || lease.TTLMS != 30_000 {
		t.Fatalf("leases %+v and %+v", lease, again)
	}
	live, err := d.api.Leases(ctx, "", 10)
	d.must(err)
	if len(live) != 1 || live[0].Lease != lease.ID[:8] || live[0].Request.URL != "https://shop.example/a?q" {
		t.Fatalf("live leases %+v", live)
	}
	beat, err := d.api.Heartbeat(ctx, "w1", 4, []string{lease.ID, "foreign"})
	d.must(err)
	if beat.Leases[0].Result != "ok" || beat.Leases[1].Result != "lost" || len(beat.Advice) != 1 {
		t.Fatalf("heartbeat %+v", beat)
	}
	reported, err := d.api.Report(ctx, lease.ID, client.Facts{Phase: "proxy_dial", Error: "refused", ElapsedMS: 40, Fence: lease.Fence})
	d.must(err)
	if reported.Result != "applied" || reported.Class != "PROXY_DIAL" || !reported.Retry.Allowed {
		t.Fatalf("reported %+v", reported)
	}
	_, err = d.api.Acquire(ctx, client.AcquireRequest{
		Worker: "w1", WorkerConcurrency: 4, RequestID: "r1", Session: "s1", Target: "shop.example",
		Request: &client.Request{URL: "https://u:p@shop.example/a?q=secret", Method: "GET", Attempt: 1},
	})
	isProblem(t, err, client.RequestEnded)
	_, err = d.api.Acquire(ctx, client.AcquireRequest{RequestID: "r1", Target: "other.example"})
	isProblem(t, err, client.RequestConflict)
	why, err := d.api.Why(ctx, "", lease.Proxy.ID)
	d.must(err)
	if why.Proxy.State != "cooling" || len(why.Failures) != 1 || why.Failures[0].Worker != "w1" || !strings.Contains(why.Because, "cooling") {
		t.Fatalf("why %+v", why)
	}
	second := d.acquire(client.AcquireRequest{Worker: "w2"})
	results, err := d.api.Reports(ctx, []client.LeaseReport{
		{Lease: second.ID, Facts: client.Facts{Phase: "body", Status: 200, HTTPS: true}},
		{Lease: "nobody's", Facts: client.Facts{Status: 200}},
		{Lease: second.ID, Facts: client.Facts{Phase: "yesterday"}},
	})
	d.must(err)
	if results[0].Result != "applied" || results[1].Result != "invalid" || results[2].Result != "invalid" {
		t.Fatalf("results %+v", results)
	}
	valid := false
	d.must(d.api.Note(ctx, client.Note{Lease: second.ID, Valid: &valid}))
	_, err = d.api.Notes(ctx, "w2", 1, []client.Note{{Lease: second.ID, Ban: true}})
	d.must(err)
	p, err := d.api.Acquire(ctx, client.AcquireRequest{Target: "shop.example"})
	_ = p
	refused := wantProblem(t, err, client.NoProxy)
	if refused.Reasons["cooling"] != 1 || refused.Reasons["pair_cooling"] != 1 || refused.RetryAfterMS < 100 {
		t.Fatalf("refused %+v", refused)
	}
	third := d.acquire(client.AcquireRequest{Target: "https://www.other.example/x", Worker: "w2"})
	d.must(d.api.Release(ctx, third.ID))
	exchanged, err := d.api.Exchange(ctx, client.ExchangeRequest{
		Reports: []client.LeaseReport{{Lease: third.ID, Facts: client.Facts{Status: 200}}},
		Notes:   []client.Note{{Lease: second.ID, Items: 3}}, Worker: "w2", Seq: 2, Acquire: &client.AcquireRequest{Target: "third.example"},
	})
	d.must(err)
	if exchanged.Results[0].Result != "stale" || len(exchanged.Leases) != 1 {
		t.Fatalf("exchanged %+v", exchanged)
	}
	d.must(d.api.Revoke(ctx, exchanged.Leases[0].ID))
	d.add("10.0.0.9:3128")
	url, err := d.api.TakeProxy(ctx, "", "once.example", 0)
	d.must(err)
	if !strings.HasPrefix(url, "http://") {
		t.Fatalf("took %q", url)
	}
	d.walkHand()
	d.walkViews(lease.Proxy.ID, lease.ID)
	d.walkAdmin(lease.Proxy.ID)
	listening, leave := context.WithTimeout(ctx, 50*time.Millisecond)
	defer leave()
	for _, err := range d.api.Events(listening, 0) {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("listening while nothing happens: %v", err)
		}
	}
	d.walkSources()
	var missing []string
	for _, op := range d.rt.contract.Operations() {
		if !d.rt.called[op.ID] {
			missing = append(missing, op.ID)
		}
	}
	if len(missing) > 0 {
		t.Errorf("never called: %v", missing)
	}
}

func (d *daemon) walkViews(id, lease string) {
	ctx := d.t.Context()
	pools, err := d.api.Pools(ctx)
	d.must(err)
	p := pools[0]
	if sum := p.New + p.Probation + p.Active + p.Cooling + p.Suspended + p.Draining + p.Disabled + p.Expired; sum != p.Proxies {
		d.t.Errorf("states add up to %d of %d", sum, p.Proxies)
	}
	_, err = d.api.Pool(ctx, "default")
	d.must(err)
	d.must(d.api.Export(ctx, client.ExportOptions{Format: "json", Passwords: true}, io.Discard))
	for _, f := range []client.ProxyFilter{
		{}, {State: "cooling"}, {View: "ready"}, {View: "leased"}, {Region: "de"}, {Group: "acct", Label: "plan=dc"}, {Sort: "score", Limit: 1},
	} {
		_, _, err = d.api.Proxies(ctx, f)
		d.must(err)
	}
	_, err = d.api.Proxy(ctx, "", id)
	d.must(err)
	_, err = d.api.Workers(ctx, "")
	d.must(err)
	_, err = d.api.Targets(ctx, "")
	d.must(err)
	_, err = d.api.Target(ctx, "", "shop.example")
	d.must(err)
	_, err = d.api.Target(ctx, "", "never.example")
	isProblem(d.t, err, client.UnknownTarget)
	_, err = d.api.TargetRules(ctx, "", "shop.example")
	d.must(err)
	_, err = d.api.Groups(ctx, "")
	d.must(err)
	_, err = d.api.Waiters(ctx, "", 0)
	d.must(err)
	_, err = d.api.Capacity(ctx, "", "shop.example", client.WhatIf{})
	d.must(err)
	s, err := d.api.Session(ctx, "", "s1")
	d.must(err)
	if s.Proxy == "" {
		d.t.Errorf("session %+v", s)
	}
	d.must(d.api.EndSession(ctx, "", "s1"))
	_, err = d.api.Session(ctx, "", "s1")
	isProblem(d.t, err, client.UnknownSession)
	d.must(d.api.PostFailure(ctx, client.FinalFailure{Target: "shop.example", Worker: "w1", Reason: "gave up", Attempts: []string{"a", "b"}, Lease: lease}))
	final := true
	failures, _, err := d.api.Failures(ctx, client.FailureFilter{Final: &final})
	d.must(err)
	if len(failures) != 1 || failures[0].Reason != "gave up" || failures[0].Proxy != id {
		d.t.Errorf("final failures %+v", failures)
	}
	d.must(d.api.Health(ctx))
	d.must(d.api.Ready(ctx))
	_, err = d.api.OpenAPI(ctx)
	d.must(err)
}

func (d *daemon) walkAdmin(id string) {
	ctx := d.t.Context()
	paused := "disabled"
	until := time.Now().Add(time.Hour)
	d.must(d.api.PatchProxy(ctx, "", id, client.ProxyPatch{State: &paused, Reason: "by hand", Until: &until}))
	would, err := d.api.PatchProxies(ctx, client.ProxyFilter{Group: "acct"}, client.ProxyPatch{State: &paused}, client.Bulk{DryRun: true})
	d.must(err)
	if would.Matched != 2 || len(would.First) != 2 || would.First[0].Group != "acct" {
		d.t.Errorf("a dry run matched %+v", would)
	}
	d.must(d.api.DeleteProxy(ctx, "", id))
	isProblem(d.t, d.api.DeleteProxy(ctx, "", id), client.UnknownProxy)
	_, err = d.api.PutPool(ctx, "second", map[string]any{"ttl_ms": 5000, "cooldown": map[string]any{"ladder_ms": []int{1000, 2000}}})
	d.must(err)
	_, err = d.api.PutPool(ctx, "second", map[string]any{"ttl_ms": 1})
	isProblem(d.t, err, client.InvalidRequest)
	d.must(d.api.DeletePool(ctx, "second"))
	isProblem(d.t, d.api.DeletePool(ctx, "second"), client.UnknownPool)
	ms := int64(250)
	_, err = d.api.PutTarget(ctx, "", "shop.example", client.TargetPolicy{ReuseIntervalMS: &ms})
	d.must(err)
	applied, err := d.api.ApplyConfig(ctx, strings.NewReader("pools: {default: {ttl: 20s, targets: {shop.example: {reuse_interval: 9s}}}}"), false)
	d.must(err)
	if len(applied.Changes) != 1 || len(applied.KeptOverrides) != 1 {
		d.t.Errorf("applied %+v", applied)
	}
	_, err = d.api.ApplyConfig(ctx, strings.NewReader("pools: {default: {ttl: 20s, ttk: 1}}"), false)
	if p := wantProblem(d.t, err, client.InvalidRequest); !strings.Contains(p.Detail, "did you mean") {
		d.t.Errorf("a typing error: %s", p.Detail)
	}
	_, err = d.api.Config(ctx)
	d.must(err)
	_, err = d.api.NewToken(ctx, "w", "worker")
	isProblem(d.t, err, client.InvalidRequest) // the first must be an operator's
	token, err := d.api.NewToken(ctx, "op", "operator")
	d.must(err)
	_, err = d.api.Pools(ctx)
	isProblem(d.t, err, client.Unauthorized)
	d.api = d.client(token.Token)
	_, err = d.api.Tokens(ctx)
	d.must(err)
	d.must(d.api.RevokeToken(ctx, "op"))
	d.api = d.client("")
	d.must(d.api.Ready(ctx))
}

// TestRoles: a token may do what its role says, and no more.
func TestRoles(t *testing.T) {
	d := start(t, nil)
	ctx := t.Context()
	d.add("10.0.0.1:8080:u:p")
	op, err := d.api.NewToken(ctx, "op", "operator")
	d.must(err)
	d.api = d.client(op.Token)
	clients := map[string]*client.Client{"operator": d.api, "unknown": d.client("hst_wrong"), "none": d.client("")}
	for _, role := range []string{"worker", "viewer"} {
		token, err := d.api.NewToken(ctx, role, role)
		d.must(err)
		clients[role] = d.client(token.Token)
	}
	calls := map[string]struct {
		do      func(*client.Client) error
		allowed []string
	}{
		"acquire": {func(c *client.Client) error {
			got, err := c.Acquire(ctx, client.AcquireRequest{Target: "a.example"})
			if err == nil {
				err = c.Release(ctx, got.Leases[0].ID)
			}
			return err
		}, []string{"operator", "worker"}},
		"list":   {func(c *client.Client) error { _, _, err := c.Proxies(ctx, client.ProxyFilter{}); return err }, []string{"operator", "viewer"}},
		"export": {func(c *client.Client) error { return c.Export(ctx, client.ExportOptions{}, io.Discard) }, []string{"operator", "viewer"}},
		"export with passwords": {func(c *client.Client) error {
			return c.Export(ctx, client.ExportOptions{Passwords: true}, io.Discard)
		}, []string{"operator"}},
		"tokens": {func(c *client.Client) error { _, err := c.Tokens(ctx); return err }, []string{"operator"}},
		"audit":  {func(c *client.Client) error { _, _, err := c.Audit(ctx, client.AuditFilter{}); return err }, []string{"operator", "viewer"}},
		"doctor": {func(c *client.Client) error { _, err := c.Doctor(ctx); return err }, []string{"operator", "viewer"}},
		"backup": {func(c *client.Client) error { _, err := c.Backup(ctx, io.Discard); return err }, []string{"operator"}},
		"revoke": {func(c *client.Client) error {
			_, err := c.RevokeLeases(ctx, client.LeaseFilter{Worker: "nobody"}, client.Bulk{})
			return err
		}, []string{"operator"}},
		"import": {func(c *client.Client) error {
			_, err := c.Import(ctx, strings.NewReader("10.0.0.2:80"), client.ImportOptions{AllowSpecial: true})
			return err
		}, []string{"operator"}},
		"health": {func(c *client.Client) error { return c.Health(ctx) }, []string{"operator", "worker", "viewer", "none"}},
	}
	for name, call := range calls {
		for role, c := range clients {
			err := call.do(c)
			if slices.Contains(call.allowed, role) {
				if err != nil {
					t.Errorf("%s as %s: %v", name, role, err)
				}
				continue
			}
			var p *client.Problem
			if !errors.As(err, &p) || p.Status != 401 && p.Status != 403 {
				t.Errorf("%s as %s: %v, want 401 or 403", name, role, err)
			}
		}
	}
}

// TestBadRequests: each is refused with the field, and nothing happens.
func TestBadRequests(t *testing.T) {
	d := start(t, nil)
	d.add("10.0.0.1:8080")
	for _, c := range []struct {
		name, method, path, body string
		header                   map[string]string
		status                   int
		field, slug              string
	}{
		{"no target", "POST", "/v1/leases", `{}`, nil, 400, "target", "invalid-request"},
		{"unknown field", "POST", "/v1/leases", `{"target":"a.example","tarqet":"b"}`, nil, 400, "tarqet", "invalid-request"},
		{"wrong type", "POST", "/v1/leases", `{"target":"a.example","count":"many"}`, nil, 400, "count", "invalid-request"},
		{"count 0", "POST", "/v1/leases", `{"target":"a.example","count":0}`, nil, 400, "count", "invalid-request"},
		{"count 101", "POST", "/v1/leases", `{"target":"a.example","count":101}`, nil, 400, "count", "invalid-request"},
		{"ttl too short", "POST", "/v1/leases", `{"target":"a.example","ttl_ms":999}`, nil, 400, "ttl_ms", "invalid-request"},
		{"wait too long", "POST", "/v1/leases", `{"target":"a.example","wait_ms":60001}`, nil, 400, "wait_ms", "invalid-request"},
		{"absent pool", "POST", "/v1/leases", `{"target":"a.example","pool":"nope"}`, nil, 404, "", "unknown-pool"},
		{"not JSON", "POST", "/v1/leases", `{"target":`, nil, 400, "body", "invalid-request"},
		{"two objects", "POST", "/v1/leases", `{"target":"a.example"}{}`, nil, 400, "body", "invalid-request"},
		{"huge", "POST", "/v1/leases", `{"target":"` + strings.Repeat("a", 300_000) + `"}`, nil, 413, "", "too-large"},
		{"control bytes", "POST", "/v1/leases", `{"target":"a.example","worker":"a\u0007b"}`, nil, 400, "worker", "invalid-request"},
		{"form", "POST", "/v1/leases", `target=a.example`, map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415, "", "unsupported-media-type"},
		{"foreign lease", "POST", "/v1/leases/AAAA/report", `{"status":200}`, nil, 404, "", "unknown-lease"},
		{"foreign release", "POST", "/v1/leases/AAAA/release", ``, nil, 404, "", "unknown-lease"},
		{"bad proxy id", "GET", "/v1/proxies/zz", ``, nil, 404, "", "unknown-proxy"},
		{"unknown parameter", "GET", "/v1/proxies?stat=cooling", ``, nil, 400, "stat", "invalid-request"},
		{"bad state", "GET", "/v1/proxies?state=ill", ``, nil, 400, "state", "invalid-request"},
		{"bad cursor", "GET", "/v1/proxies?cursor=!!", ``, nil, 400, "cursor", "invalid-request"},
		{"bad since", "GET", "/v1/failures?since=yesterday", ``, nil, 400, "since", "invalid-request"},
		{"patch of all", "PATCH", "/v1/proxies", `{"state":"disabled"}`, nil, 400, "group", "invalid-request"},
		{"ordered state", "PATCH", "/v1/proxies?group=g", `{"state":"cooling"}`, nil, 400, "state", "invalid-request"},
		{"no such path", "GET", "/v1/nothing", ``, nil, 404, "", "not-found"},
		{"no such method", "PUT", "/v1/leases", ``, nil, 405, "", "method-not-allowed"},
		{"another host", "GET", "/v1/pools", ``, map[string]string{"Host": "evil.example"}, 403, "", "misdirected-host"},
		{"another site", "POST", "/v1/leases", `{"target":"a.example"}`, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, "", "cross-origin"},
		{"another origin", "POST", "/v1/leases", `{"target":"a.example"}`, map[string]string{"Origin": "http://evil.example"}, 403, "", "cross-origin"},
		{"final failure without final", "POST", "/v1/failures", `{"target":"a.example"}`, nil, 400, "final", "invalid-request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), c.method, d.app.URL()+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if c.body != "" {
				req.Header.Set("Content-Type", "application/json")
			}
			for name, value := range c.header {
				if name == "Host" {
					req.Host = value
				}
				req.Header.Set(name, value)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close() //nolint:errcheck // decoded
			var p client.Problem
			if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != c.status || p.Field != c.field || p.Slug() != c.slug {
				t.Errorf("got %d %s field %q: %s", res.StatusCode, p.Type, p.Field, p.Detail)
			}
			if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") {
				t.Errorf("content type %q", res.Header.Get("Content-Type"))
			}
		})
	}
	info, err := d.app.Keeper().Store().Pool(t.Context(), "default")
	d.must(err)
	if info.Totals.Granted != 0 {
		t.Errorf("%d leases were granted by bad requests", info.Totals.Granted)
	}
}

// TestNoSecretLeaks puts a marker into every place that takes a secret and looks
// for it in everything that comes out, the lease aside.
func TestNoSecretLeaks(t *testing.T) {
	const marker = "S3cr3t-MARK"
	d := start(t, nil)
	ctx := t.Context()
	var seen bytes.Buffer
	d.rt = &checked{t: t, contract: d.rt.contract, called: map[string]bool{}}
	list := strings.Join([]string{
		"10.0.0.1:8080:user:" + marker, "http://user:" + marker + "@10.0.0.2:8080", "user:" + marker + "@10.0.0.3:8080",
		"10.0.0.4:99999:user:" + marker, "http://user:" + marker + "@", "user:" + marker + "@bad host:1", "gopher://u:" + marker + "@10.0.0.5:1",
		"h1:8080:" + marker + ":9090", `{"host":"10.0.0.6","port":1,"username":"u","password":"` + marker + `"}`, `{"password":"` + marker + `"`,
		"http://u:%zz" + marker + "@10.0.0.7:80",
	}, "\n")
	imported, err := d.api.Import(ctx, strings.NewReader(list), client.ImportOptions{AllowSpecial: true})
	d.must(err)
	fmt.Fprintln(&seen, imported)
	got, err := d.api.Acquire(ctx, client.AcquireRequest{
		Target:  "http://u:" + marker + "@a.example/?token=" + marker,
		Request: &client.Request{URL: "http://u:" + marker + "@a.example/?token=" + marker},
	})
	d.must(err)
	if !strings.Contains(got.Leases[0].Proxy.URL, marker) {
		t.Fatal("the lease does not carry the password: the test looks at nothing")
	}
	fmt.Fprintf(&seen, "%v %+v %s\n", got.Leases[0].Proxy, got.Leases[0].Proxy, got.Leases[0])
	_, err = d.api.Report(ctx, got.Leases[0].ID, client.Facts{
		Phase: "proxy_dial", Error: "refused",
		Request: &client.Request{URL: "http://u:" + marker + "@a.example/%zz?token=" + marker},
	})
	d.must(err)
	_, err = d.client(marker).Pools(ctx)
	fmt.Fprintln(&seen, err)
	_, err = client.New("http://u:" + marker + "@[::1")
	fmt.Fprintln(&seen, err)
	for _, path := range []string{
		"/v1/proxies", "/v1/proxies/" + got.Leases[0].Proxy.ID + "/why", "/v1/leases", "/v1/failures", "/v1/targets", "/v1/workers",
		"/v1/pools", "/v1/groups", "/v1/config", "/v1/tokens", "/v1/audit", "/v1/doctor", "/v1/sessions", "/readyz", "/healthz", "/openapi.yaml",
		"/v1/proxies/" + marker, "/v1/leases?" + "limit=" + "x",
	} {
		res, err := http.Get(d.app.URL() + path)
		d.must(err)
		_, _ = io.Copy(&seen, res.Body)
		_ = res.Body.Close()
	}
	d.stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, text := range map[string]string{"answers": seen.String(), "log": d.log.String()} {
		if i := strings.Index(text, marker); i >= 0 {
			t.Errorf("the marker stands in the %s: ...%s...", name, text[max(0, i-200):min(len(text), i+60)])
		}
	}
}

// TestWaiters: acquires that wait are served first come, first served, a caller
// that left gets nothing, and a newcomer does not pass.
func TestWaiters(t *testing.T) {
	d := start(t, nil)
	d.must(errOnly(d.api.PutPool(t.Context(), "default", map[string]any{"reuse_interval_ms": 0})))
	d.add("10.0.0.1:8080")
	held := d.acquire(client.AcquireRequest{})
	type served struct {
		n     int
		lease client.Lease
		err   error
	}
	out := make(chan served, 10)
	gone, leave := context.WithCancel(t.Context())
	waiting := 0
	queue := func(ctx context.Context, n int) {
		go func() {
			got, err := d.api.Acquire(ctx, client.AcquireRequest{Target: "shop.example", WaitMS: 20_000})
			s := served{n: n, err: err}
			if err == nil {
				s.lease = got.Leases[0]
			}
			out <- s
		}()
		waiting++
		d.until(func() bool { return d.waiting() == waiting })
	}
	queue(t.Context(), 1)
	queue(gone, 2)
	queue(t.Context(), 3)
	_, err := d.api.Acquire(t.Context(), client.AcquireRequest{Target: "shop.example"})
	if p := wantProblem(t, err, client.NoProxy); p.Reasons["overloaded"] != 3 {
		t.Fatalf("a newcomer: %+v", p.Reasons)
	}
	leave()
	if s := <-out; s.n != 2 || s.err == nil {
		t.Fatalf("the one that left: %+v", s)
	}
	d.until(func() bool { return d.waiting() == 2 })
	for _, want := range []int{1, 3} {
		d.must(errOnly(d.api.Report(t.Context(), held.ID, client.Facts{Phase: "body", Status: 200})))
		s := <-out
		if s.n != want || s.err != nil {
			t.Fatalf("served %d (%v), want %d", s.n, s.err, want)
		}
		held = s.lease
	}
	d.must(d.api.Release(t.Context(), held.ID))
	// nothing falls due in time: refused at once, not after the wait
	begin := time.Now()
	d.must(errOnly(d.api.PutPool(t.Context(), "default", map[string]any{"reuse_interval_ms": 3_600_000})))
	lease := d.acquire(client.AcquireRequest{Target: "slow.example"})
	d.must(errOnly(d.api.Report(t.Context(), lease.ID, client.Facts{Phase: "body", Status: 200})))
	_, err = d.api.Acquire(t.Context(), client.AcquireRequest{Target: "slow.example", WaitMS: 30_000})
	if p := wantProblem(t, err, client.NoProxy); p.Reasons["reuse_interval"] != 1 || time.Since(begin) > 10*time.Second {
		t.Fatalf("after %s: %+v", time.Since(begin), p.Reasons)
	}
}

func errOnly[T any](_ T, err error) error { return err }

// waiting is how many acquires wait, as a newcomer is told.
func (d *daemon) waiting() int { return d.app.Keeper().Waiting("default") }

// until polls for a condition, with a deadline.
func (d *daemon) until(ok func() bool) {
	d.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			d.t.Fatal("waited for a condition for 10 s")
		}
		<-tick.C
	}
}

// TestEmptyPoolSaysSo: a refusal for want of proxies is not one for want of free ones.
func TestEmptyPoolSaysSo(t *testing.T) {
	d := start(t, nil)
	_, err := d.api.Acquire(t.Context(), client.AcquireRequest{Target: "shop.example"})
	if p := wantProblem(t, err, client.NoProxy); !strings.Contains(p.Detail, "holds no proxies") {
		t.Fatalf("an empty pool: %q", p.Detail)
	}
	d.add("10.0.0.1:8080")
	d.acquire(client.AcquireRequest{})
	_, err = d.api.Acquire(t.Context(), client.AcquireRequest{Target: "shop.example"})
	if p := wantProblem(t, err, client.NoProxy); strings.Contains(p.Detail, "holds no proxies") {
		t.Fatalf("all are leased: %q", p.Detail)
	}
}

// TestDeadWorkerGivesBack: leases of a silent worker come back by themselves.
func TestDeadWorkerGivesBack(t *testing.T) {
	d := start(t, nil)
	d.must(errOnly(d.api.PutPool(t.Context(), "default", map[string]any{"grace_ms": 0, "lock_delay_ms": 0, "reuse_interval_ms": 0})))
	d.add("10.0.0.1:8080")
	d.acquire(client.AcquireRequest{TTLMS: 1000})
	begin := time.Now()
	d.acquire(client.AcquireRequest{WaitMS: 30_000})
	if took := time.Since(begin); took < 900*time.Millisecond || took > 8*time.Second {
		t.Errorf("a second worker got it after %s", took)
	}
}

// TestStopLetsWaitersGo: a stop answers those that wait, quickly.
func TestStopLetsWaitersGo(t *testing.T) {
	d := start(t, nil)
	d.add("10.0.0.1:8080")
	d.acquire(client.AcquireRequest{})
	out := make(chan error, 1)
	go func() {
		_, err := d.api.Acquire(context.Background(), client.AcquireRequest{Target: "shop.example", WaitMS: 60_000})
		out <- err
	}()
	d.until(func() bool { return d.waiting() == 1 })
	begin := time.Now()
	d.stop()
	err := <-out
	if p := wantProblem(t, err, client.StoreUnavailable); p.RetryAfterMS == 0 || time.Since(begin) > 5*time.Second {
		t.Errorf("after %s: %+v", time.Since(begin), p)
	}
}
