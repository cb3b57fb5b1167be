package app_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
	"github.com/hostler-proxy/hostler/internal/fetch"
)

// TestSourcesComeByThemselves: by the clock with "not modified", after a change
// of the settings at once, and not at a restart before their time.
func TestSourcesComeByThemselves(t *testing.T) {
	list := newScript(t)
	list.does(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"1"`)
		_, _ = io.WriteString(w, hosts(0, 5, ""))
	})
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("sources:\n  acme: {url: " + list.URL + ", interval: 1s}\n")
	options := func(o *app.Options) { o.Store, o.Config = filepath.Join(dir, "hostler.db"), policy }
	d := start(t, options)
	d.until(func() bool { return list.count() >= 3 })
	if s := d.source("acme"); s.State != "ok" || s.Counts.Proxies != 5 || s.Counts.Listed != 5 {
		t.Errorf("after several fetches: %+v", s)
	}
	write("sources:\n  acme: {url: " + list.URL + ", interval: 700h, region: de}\n")
	d.must(d.app.Reload(t.Context()))
	d.until(func() bool { return len(d.proxies(client.ProxyFilter{Region: "de"})) == 5 }) // without "not modified"
	write("sources:\n  acme: {url: nonsense}\n")
	if err := d.app.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "line 2: sources.acme.url") {
		t.Errorf("a bad file: %v", err)
	}
	write("pools: {default: {ttl: 21s}}\nsources:\n  acme: {url: " + list.URL + ", headers: {X-Key: \"${SURELY_NOT_SET}\"}}\n")
	if err := d.app.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "no SURELY_NOT_SET") {
		t.Errorf("an unset variable: %v", err)
	}
	if pools, err := d.api.Config(t.Context()); err != nil || pools["default"].Settings["ttl"] == "21s" {
		t.Errorf("half of a bad file was applied: %v", err)
	}
	d.until(func() bool { return d.source("acme").State == "ok" })
	before, asked := d.source("acme"), list.count()
	d.stop()
	write("pools: {}\n")
	d = start(t, options)
	after := d.source("acme")
	if after.NextAt == nil || !after.NextAt.Equal(*before.NextAt) || after.Counts != before.Counts || !after.LastSuccessAt.Equal(*before.LastSuccessAt) {
		t.Errorf("after a restart: %+v, before %+v", after, before)
	}
	d.refresh("acme")
	if list.count() != asked+1 {
		t.Errorf("the restart fetched: %d fetches, %d before", list.count(), asked)
	}
}

// TestLifetimesAreProlonged: with a ttl, "not modified" is not asked for.
func TestLifetimesAreProlonged(t *testing.T) {
	list := newScript(t)
	list.does(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"1"`)
		_, _ = io.WriteString(w, hosts(0, 1, ""))
	})
	d := start(t, nil)
	d.apply("sources:\n  acme: {url: " + list.URL + ", interval: 1s, ttl: 1h}\n")
	d.fetchedSource("acme")
	first := d.proxies(client.ProxyFilter{})[0].ExpiresAt
	d.until(func() bool { return d.proxies(client.ProxyFilter{})[0].ExpiresAt.After(*first) })
}

// TestFileSourceFollowsItsFile: a change is seen without a word.
func TestFileSourceFollowsItsFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "list.txt")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	write(hosts(0, 4, ""))
	d := start(t, nil)
	d.apply("sources:\n  own: {file: " + name + ", interval: 700h}\n")
	d.fetchedSource("own")
	write(hosts(1, 4, ""))
	d.until(func() bool {
		var list []string
		for _, p := range d.proxies(client.ProxyFilter{Source: "own"}) {
			list = append(list, p.Host)
		}
		return len(list) == 4 && strings.Contains(strings.Join(list, " "), "8.8.0.4")
	})
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if res := d.refresh("own"); res.Result != "failed" || !strings.Contains(res.Reason, "no such file") {
		t.Errorf("a file that went: %+v", res)
	}
}

// TestOneFetchAtATime: callers wait for each other, and a change of the settings
// breaks a fetch off.
func TestOneFetchAtATime(t *testing.T) {
	list := newScript(t)
	list.says(hosts(0, 3, ""))
	d := start(t, nil)
	d.apply(oneSource(list.URL, "    timeout: 5m\n"))
	d.fetchedSource("acme")
	entered := make(chan struct{}, 10)
	var mu sync.Mutex
	running, most := 0, 0
	list.does(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		entered <- struct{}{}
		<-r.Context().Done()
		mu.Lock()
		running--
		mu.Unlock()
	})
	out := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := d.api.RefreshSource(context.Background(), "acme", false)
			out <- err
		}()
	}
	<-entered
	list.says(hosts(3, 3, ""))
	d.apply(oneSource(list.URL, "    region: de\n"))
	isProblem(t, <-out, client.Conflict)
	if err := <-out; err != nil { // it came after the change, or it was broken off too
		isProblem(t, err, client.Conflict)
	}
	d.until(func() bool { return len(d.proxies(client.ProxyFilter{Region: "de"})) == 3 })
	if most != 1 {
		t.Errorf("%d fetches ran at once", most)
	}
}

// TestPresetAndJSONSources bring in what their parameters and mapping say.
func TestPresetAndJSONSources(t *testing.T) {
	api := newScript(t)
	api.does(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("page") == "2" {
			_, _ = io.WriteString(w, `{"results":[]}`)
			return
		}
		_, _ = io.WriteString(w, `{"results":[{"proxy_address":"8.8.8.8","port":8080,"username":"u","password":"p","country_code":"US"},{"proxy_address":"x y"}]}`)
	})
	d := start(t, func(o *app.Options) {
		o.Fetcher = fetch.Fetcher{Env: func(name string) (string, bool) { return "v-" + name, true }}
	})
	d.apply(`
sources:
  res:
    preset: decodo
    pool: res
    params: {username: "${DECODO_USER}", password: "${DECODO_PASSWORD}", country: [us, de]}
  api:
    json:
      url: ` + api.URL + `/api/v2/proxy/list/
      records: results
      fields: {host: proxy_address, port: port, username: username, password: password, region: country_code}
      paging: {page: page}
    headers: {Authorization: "Token ${API_TOKEN}"}
    interval: 700h
`)
	d.fetchedSource("api")
	if list := d.proxies(client.ProxyFilter{Source: "api"}); len(list) != 1 || list[0].Region != "US" || list[0].Username != "u" {
		t.Errorf("by the mapping: %+v", list)
	}
	if s := d.fetchedSource("res"); s.Kind != "preset" || s.From != "decodo" || s.Counts.Proxies != 2 {
		t.Errorf("by the preset: %+v", s)
	}
	lease := d.acquire(client.AcquireRequest{Pool: "res", Select: &client.Select{Region: "de"}})
	if u := lease.Proxy.Username; !strings.HasPrefix(u, "user-v-DECODO_USER-country-de-session-") || strings.Contains(u, "{") || lease.Proxy.Password != "v-DECODO_PASSWORD" {
		t.Errorf("leased %q", u)
	}
	if !strings.Contains(api.heads[0], "Authorization:[Token v-API_TOKEN]") {
		t.Errorf("the API was asked with %v", api.heads)
	}
}

// TestStaleSourceSaysSo: no good fetch for three intervals.
func TestStaleSourceSaysSo(t *testing.T) {
	list := newScript(t)
	list.says(hosts(0, 3, ""))
	var mu sync.Mutex
	ahead := time.Duration(0)
	d := start(t, func(o *app.Options) {
		o.Clock = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(ahead)
		}
	})
	d.apply(oneSource(list.URL, ""))
	if s := d.fetchedSource("acme"); s.Stale {
		t.Fatalf("at first: %+v", s)
	}
	list.does(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	mu.Lock()
	ahead = 3*700*time.Hour + time.Minute
	mu.Unlock()
	d.refresh("acme")
	if s := d.source("acme"); !s.Stale || s.State != "failing" || s.Counts.Proxies != 3 {
		t.Errorf("after three intervals: %+v", s)
	}
}
