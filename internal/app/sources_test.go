package app_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
	"github.com/hostler-proxy/hostler/internal/fetch"
)

// script is a real HTTP server whose next answers a test writes.
type script struct {
	*httptest.Server
	mu     sync.Mutex
	answer http.HandlerFunc
	asked  int
	heads  []string
}

func newScript(t *testing.T) *script {
	t.Helper()
	s := &script{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked++
		s.heads = append(s.heads, fmt.Sprint(r.URL, r.Header))
		answer := s.answer
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *script) does(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = h
}

func (s *script) says(list string) {
	s.does(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, list) })
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// hosts is a list of n public addresses, from first on. Nobody dials them.
func hosts(first, n int, behind string) string {
	var b strings.Builder
	for i := first; i < first+n; i++ {
		fmt.Fprintf(&b, "8.8.%d.%d:8080%s\n", i>>8, i&255, behind)
	}
	return b.String()
}

func (d *daemon) apply(text string) *client.Applied {
	d.t.Helper()
	res, err := d.api.ApplyConfig(d.t.Context(), strings.NewReader(text), false)
	d.must(err)
	return res
}

func (d *daemon) source(name string) client.Source {
	d.t.Helper()
	list, err := d.api.Sources(d.t.Context())
	d.must(err)
	for _, s := range list {
		if s.Name == name {
			return s
		}
	}
	d.t.Fatalf("there is no source %s", name)
	return client.Source{}
}

// fetched waits for the fetch that follows a change of the settings.
func (d *daemon) fetchedSource(name string) client.Source {
	d.t.Helper()
	var s client.Source
	d.until(func() bool { s = d.source(name); return s.State != "never" })
	return s
}

func (d *daemon) refresh(name string) *client.SourceRefreshed {
	d.t.Helper()
	res, err := d.api.RefreshSource(d.t.Context(), name, false)
	d.must(err)
	return res
}

func (d *daemon) proxies(f client.ProxyFilter) []client.Proxy {
	d.t.Helper()
	list, err := d.api.AllProxies(d.t.Context(), f)
	d.must(err)
	return list
}

// oneSource is a policy file with one source that comes by itself only once.
func oneSource(url, more string) string {
	return "sources:\n  acme:\n    url: " + url + "/list\n    interval: 700h\n" + more
}

// walkSources makes every call about sources.
func (d *daemon) walkSources() {
	d.t.Helper()
	list := newScript(d.t)
	list.says(hosts(0, 3, ""))
	d.apply(oneSource(list.URL, "    pool: walk\n"))
	d.fetchedSource("acme")
	d.refresh("acme")
	list.says(hosts(0, 1, ""))
	if res := d.refresh("acme"); res.Result != "held" {
		d.t.Errorf("%+v", res)
	}
	res, err := d.api.AcceptSource(d.t.Context(), "acme")
	d.must(err)
	if res.Removed != 2 {
		d.t.Errorf("%+v", res)
	}
	d.apply("sources: {}")
}

// TestSourceFailuresKeepTheSet: whatever is no good list leaves all proxies where
// they are, and the source says why.
func TestSourceFailuresKeepTheSet(t *testing.T) {
	list := newScript(t)
	list.says(hosts(0, 10, ":u:p"))
	d := start(t, nil)
	d.apply(oneSource(list.URL, "    timeout: 20s\n    max_bytes: 4096\n"))
	if s := d.fetchedSource("acme"); s.State != "ok" || s.Counts.Proxies != 10 || s.Reason != "" || s.Stale || s.LastSuccessAt == nil || s.From != list.URL+"/list" {
		t.Fatalf("the first fetch: %+v", s)
	}
	plain := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	failures := 0
	for name, c := range map[string]struct {
		do           http.HandlerFunc
		result, want string
	}{
		"error":            {plain(500, hosts(50, 10, "")), "failed", "the server answers 500"},
		"forbidden":        {plain(403, ""), "failed", "are the credentials right"},
		"HTML":             {plain(200, "<html>"+hosts(50, 10, "")), "failed", "web page"},
		"text of an error": {plain(200, "Too many requests.\nTry again later.\n"), "failed", "hardly a list"},
		"mostly broken":    {plain(200, hosts(50, 10, "")+strings.Repeat("garbage\n", 11)), "failed", "11 of 21 lines are no proxies"},
		"empty":            {plain(200, ""), "failed", "the list is empty"},
		"comments":         {plain(200, "# nothing today\n"), "failed", "the list is empty"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9999")
			_, _ = io.WriteString(w, hosts(50, 10, ""))
		}, "failed", "cut off"},
		"too large":  {plain(200, hosts(0, 1000, "")), "failed", "max_bytes"},
		"much less":  {plain(200, hosts(0, 4, ":u:p")), "held", "4 proxies where 10 are in force"},
		"much other": {plain(200, hosts(50, 4, "")), "held", "4 proxies where 10 are in force"},
	} {
		list.does(c.do)
		res := d.refresh("acme")
		if res.Result != c.result || !strings.Contains(res.Reason, c.want) {
			t.Errorf("%s: got %s %q, want %s %q", name, res.Result, res.Reason, c.result, c.want)
		}
		s := d.source("acme")
		if c.result == "failed" {
			failures++
			if s.State != "failing" || s.Counts.Failures < 1 {
				t.Errorf("%s: the source is %+v", name, s)
			}
		} else if s.State != "held" || s.Held == nil {
			t.Errorf("%s: the source is %+v", name, s)
		}
		if s.Reason != res.Reason || s.Counts.Proxies != 10 || len(d.proxies(client.ProxyFilter{Source: "acme"})) != 10 {
			t.Errorf("%s: %d proxies, reason %q", name, s.Counts.Proxies, s.Reason)
		}
	}
	list.says(hosts(1, 10, ":u:p"))
	if res := d.refresh("acme"); res.Result != "taken" || res.Added != 1 || res.Removed != 1 || res.Unchanged != 9 {
		t.Errorf("afterwards: %+v", res)
	}
	if s := d.source("acme"); s.State != "ok" || s.Reason != "" || s.Counts.Failures != 0 || s.Held != nil {
		t.Errorf("afterwards: %+v", s)
	}
	names := map[string]bool{}
	events, _ := d.app.Keeper().EventsAfter(0)
	for _, e := range events {
		names[e.Name] = true
	}
	if !names["source_failing"] || !names["source_held"] || !names["source_ok"] {
		t.Errorf("events: %v", names)
	}
}

// TestSmallSetWaits: less than half waits for a word, or for three equal fetches.
func TestSmallSetWaits(t *testing.T) {
	list := newScript(t)
	list.says(hosts(0, 100, ""))
	d := start(t, nil)
	d.apply(oneSource(list.URL, ""))
	d.fetchedSource("acme")
	_, err := d.api.AcceptSource(t.Context(), "acme")
	isProblem(t, err, client.Conflict)
	list.says(hosts(0, 40, ""))
	for seen := 1; seen <= 2; seen++ {
		if res := d.refresh("acme"); res.Result != "held" || res.Held.Seen != seen || res.Removed != 60 || res.Unchanged != 40 {
			t.Fatalf("fetch %d: %+v", seen, res)
		}
	}
	list.does(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	d.refresh("acme")
	if s := d.source("acme"); s.State != "failing" || s.Held == nil || s.Held.Seen != 2 {
		t.Fatalf("a failure between: %+v", s)
	}
	list.says(hosts(0, 40, ""))
	if res := d.refresh("acme"); res.Result != "taken" || res.Removed != 60 {
		t.Fatalf("the third: %+v", res)
	}
	list.says(hosts(200, 10, ""))
	if res := d.refresh("acme"); res.Result != "held" || res.Held.Seen != 1 || res.Added != 10 || res.Removed != 40 {
		t.Fatalf("another: %+v", res)
	}
	list.does(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }) // accepting fetches nothing
	res, err := d.api.AcceptSource(t.Context(), "acme")
	d.must(err)
	if res.Result != "taken" || res.Added != 10 || res.Removed != 40 || res.Held != nil {
		t.Fatalf("accepted: %+v", res)
	}
	if s := d.source("acme"); s.State != "ok" || s.Counts.Proxies != 10 || s.Counts.Listed != 10 {
		t.Fatalf("afterwards: %+v", s)
	}
}

// TestSourceTakesOnlyItsOwn: what another source lists, or an operator brought
// in, stays when a source no longer lists it.
func TestSourceTakesOnlyItsOwn(t *testing.T) {
	a, b := newScript(t), newScript(t)
	a.says(hosts(0, 6, ""))
	b.says(hosts(5, 3, ""))
	d := start(t, nil)
	d.add("8.8.0.0:8080\n8.8.9.9:8080")
	d.apply("sources:\n  a: {url: " + a.URL + ", interval: 700h, region: de, labels: {from: a}}\n  b: {url: " + b.URL + ", interval: 700h, region: us}\n")
	d.fetchedSource("a")
	d.fetchedSource("b")
	held := d.acquire(client.AcquireRequest{Select: &client.Select{Labels: map[string]string{"from": "a"}, Exclude: []string{d.id("8.8.0.5")}}})
	a.says(hosts(6, 6, "")) // 6 and 7 are b's too; nothing of the old is left
	dry, err := d.api.RefreshSource(t.Context(), "a", true)
	d.must(err)
	before := fmt.Sprint(d.proxies(client.ProxyFilter{}))
	if after := fmt.Sprint(d.proxies(client.ProxyFilter{})); before != after {
		t.Error("a dry run changed something")
	}
	res := d.refresh("a")
	if res.Added != 4 || res.Updated != 2 || res.Removed != 4 || res.Left != 2 {
		t.Errorf("got %+v", res)
	}
	if dry.DryRun = false; fmt.Sprint(dry) != fmt.Sprint(res) {
		t.Errorf("the dry run said %+v", dry)
	}
	got := map[string]string{}
	for _, p := range d.proxies(client.ProxyFilter{}) {
		got[p.Host] = p.Source + " " + p.State
	}
	for host, want := range map[string]string{
		"8.8.0.0": " new", "8.8.9.9": " new", "8.8.0.5": "b new", "8.8.0.6": "b,a new", "8.8.0.8": "a new",
	} {
		if strings.TrimPrefix(got[host], "") != want {
			t.Errorf("%s: %q, want %q", host, got[host], want)
		}
	}
	if got[held.Proxy.Host] != "a draining" {
		t.Errorf("the leased one is %q", got[held.Proxy.Host])
	}
	d.must(errOnly(d.api.Report(t.Context(), held.ID, client.Facts{Phase: "body", Status: 200})))
	if n := len(d.proxies(client.ProxyFilter{})); n != 9 {
		t.Errorf("%d proxies are left: %v", n, got)
	}
	if n := len(d.proxies(client.ProxyFilter{Source: "hand"})); n != 2 {
		t.Errorf("%d are the operator's", n)
	}
	d.apply("sources:\n  b: {url: " + b.URL + ", interval: 700h, region: us}\n")
	if n := len(d.proxies(client.ProxyFilter{Source: "a"})); n != 4 { // 6 and 7 are b's alone now
		t.Errorf("with its source gone, %d proxies of 4 are left", n)
	}
	d.apply("sources:\n  b: {url: " + b.URL + ", interval: 700h, pool: other}\n")
	d.until(func() bool { return d.source("b").Counts.Proxies == 3 })
	if n := len(d.proxies(client.ProxyFilter{Source: "b"})); n != 3 {
		t.Errorf("in the old pool, %d proxies of 3 are left", n)
	}
	_, err = d.api.RefreshSource(t.Context(), "a", false)
	isProblem(t, err, client.UnknownSource)
}

func (d *daemon) id(host string) string {
	d.t.Helper()
	for _, p := range d.proxies(client.ProxyFilter{}) {
		if p.Host == host {
			return p.ID
		}
	}
	d.t.Fatalf("there is no proxy %s", host)
	return ""
}

// TestChangedPasswordUpdatesInPlace: leases, counts and sessions go on.
func TestChangedPasswordUpdatesInPlace(t *testing.T) {
	list := newScript(t)
	list.says("8.8.8.8:80:u:old\n8.8.4.4:80:u:one\n8.8.4.4:80:u:two\n")
	d := start(t, nil)
	d.apply("pools: {default: {reuse_interval: 0s}}\n" + oneSource(list.URL, ""))
	d.fetchedSource("acme")
	only := &client.Select{Exclude: []string{}}
	for _, p := range d.proxies(client.ProxyFilter{}) {
		if p.Host == "8.8.4.4" {
			only.Exclude = append(only.Exclude, p.ID)
		}
	}
	first := d.acquire(client.AcquireRequest{Select: only, Session: "s"})
	d.must(errOnly(d.api.Report(t.Context(), first.ID, client.Facts{Phase: "body", Status: 200})))
	second := d.acquire(client.AcquireRequest{Select: only, Session: "s"})
	list.says("8.8.8.8:80:u:new\n8.8.4.4:80:u:one\n8.8.4.4:80:u:three\n")
	dry, err := d.api.RefreshSource(t.Context(), "acme", true)
	d.must(err)
	if dry.Renewed != 2 || dry.Added != 0 || dry.Removed != 0 {
		t.Fatalf("a dry run: %+v", dry)
	}
	if res := d.refresh("acme"); res.Renewed != 2 || res.Added != 0 || res.Removed != 0 || res.Unchanged != 1 {
		t.Fatalf("got %+v", res)
	}
	d.must(errOnly(d.api.Report(t.Context(), second.ID, client.Facts{Phase: "body", Status: 200})))
	third := d.acquire(client.AcquireRequest{Select: only, Session: "s"})
	if third.Proxy.Password != "new" || third.SessionMoved || third.Proxy.ID == first.Proxy.ID {
		t.Errorf("got %+v", third)
	}
	p, err := d.api.Proxy(t.Context(), "", third.Proxy.ID)
	d.must(err)
	if p.Windows.Day.Total != 2 || p.Uses != 3 {
		t.Errorf("the record begins anew: %+v", p)
	}
	list.says("8.8.8.8:80:u:new\n8.8.4.4:80:u:x\n8.8.4.4:80:u:y\n")
	if res := d.refresh("acme"); res.Renewed != 0 || res.Added != 2 || res.Removed != 2 { // nobody knows which is which
		t.Errorf("two at once: %+v", res)
	}
}

// TestNoSecretOfASourceLeaks puts a marker into every place of a source that
// takes a secret and looks for it in everything that comes out.
func TestNoSecretOfASourceLeaks(t *testing.T) {
	const marker = "S3cr3t-MARK"
	list := newScript(t)
	list.does(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "http://u:"+marker+"@8.8.8.8/?t="+marker, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "8.8.8.8:80:u:"+marker+"\n8.8.8.8:x:u:"+marker+"\nhttp://u:"+marker+"@\n8.8.4.4:81:u:"+marker+"\n")
	})
	d := start(t, func(o *app.Options) {
		o.Fetcher = fetch.Fetcher{Env: func(name string) (string, bool) { return marker, name != "GONE" }}
	})
	var seen bytes.Buffer
	text := `
sources:
  good:
    url: ` + list.URL + `/${T}?q=` + marker + `
    headers: {Authorization: "Bearer ${T}", Cookie: "a=${T}", X-Plain: ` + marker + `}
    query: {key: "${T}", plain: ` + marker + `}
    basic: {username: ` + marker + `, password: "${T}"}
  moved: {url: "` + list.URL + `/moved?a=${T}"}
  away: {url: "http://no-such-host.invalid/${T}?a=` + marker + `"}
  res: {preset: oxylabs, params: {username: ` + marker + `, password: "${T}"}}
  file: {file: /nonexistent}
`
	applied := d.apply(text)
	fmt.Fprintf(&seen, "%+v\n", applied)
	for _, name := range []string{"good", "moved", "away", "res", "file"} {
		d.fetchedSource(name)
		fmt.Fprintf(&seen, "%+v\n", d.refresh(name))
	}
	if s := d.source("good"); s.State != "ok" || s.Counts.Rejected != 2 {
		t.Fatalf("the test looks at nothing: %+v", s)
	}
	for _, bad := range []string{
		"sources:\n  a: {url: \"http://u:" + marker + "@[::1\"}", "sources:\n  a: {url: \"http://u:" + marker + "@a.example/\"}",
		"sources:\n  a: {url: \"http://a.example/?token=" + marker + "\"}", "sources:\n  a: {url: \"http://a.example/\", headers: {X-Key: " + marker + "}}",
		"sources:\n  a: {url: \"http://a.example/\", basic: {username: u, password: " + marker + "}}",
		"sources:\n  a: {url: \"http://a.example/${GONE}?" + marker + "\"}", "sources:\n  a: {url: \"http://a.example/%zz" + marker + "\"}",
	} {
		_, err := d.api.ApplyConfig(t.Context(), strings.NewReader(bad), false)
		if err == nil {
			t.Errorf("taken: %s", bad)
		}
		fmt.Fprintln(&seen, err)
	}
	for _, path := range []string{"/v1/sources", "/v1/config", "/v1/proxies", "/v1/proxies?pool=res", "/readyz"} {
		res, err := http.Get(d.app.URL() + path)
		d.must(err)
		_, _ = io.Copy(&seen, res.Body)
		_ = res.Body.Close()
	}
	events, _ := d.app.Keeper().EventsAfter(0)
	fmt.Fprintf(&seen, "%+v\n", events)
	d.apply("sources: {}")
	d.stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	// a username is no secret to the operator who lists proxies; here it is the preset's
	out := strings.ReplaceAll(seen.String(), "customer-"+marker+"-sessid", "customer-user-sessid")
	for name, text := range map[string]string{"answers": out, "log": d.log.String()} {
		if i := strings.Index(text, marker); i >= 0 {
			t.Errorf("the marker stands in the %s: ...%s...", name, text[max(0, i-200):min(len(text), i+60)])
		}
	}
}
