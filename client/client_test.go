package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/hostler-proxy/hostler/client"
)

// scripted answers everything with one answer.
func scripted(status int, kind, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

func TestNewRefusesAddressesThatCannotBe(t *testing.T) {
	for _, address := range []string{
		"", "127.0.0.1:7070", "ftp://127.0.0.1", "http://", "http://user:marker@127.0.0.1:7070", "http://127.0.0.1:7070/?token=marker",
		"http://127.0.0.1:7070/#marker", "http://mark er:7070", "http://127.0.0.1:marker",
	} {
		_, err := client.New(address)
		if err == nil {
			t.Errorf("%q was taken", address)
		} else if strings.Contains(err.Error(), "marker") {
			t.Errorf("%q: the error quotes it: %v", address, err)
		}
	}
	if _, err := client.New("http://127.0.0.1:7070", client.WithToken("mark\ner")); err == nil || strings.Contains(err.Error(), "mark") {
		t.Errorf("a token with a line end: %v", err)
	}
}

func TestTokenAndPathAreSentAsTheyAre(t *testing.T) {
	var got []string
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.RequestURI+" "+r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusNoContent)
	}), client.WithToken("hst_marker"), client.WithHTTPClient(nil))
	if err := c.DeletePool(t.Context(), "a/b ?%2F#ü"); err != nil {
		t.Fatal(err)
	}
	base, err := client.New(c.BaseURL() + "/prefix%2Fx/")
	if err != nil {
		t.Fatal(err)
	}
	if err := base.RevokeToken(t.Context(), "crawl"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"DELETE /v1/pools/a%2Fb%20%3F%252F%23%C3%BC Bearer hst_marker",
		"DELETE /prefix%2Fx/v1/tokens/crawl ",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNamesThatArePathsAreRefused(t *testing.T) {
	c := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("sent %s", r.RequestURI) }))
	for _, name := range []string{"", ".", ".."} {
		if err := c.DeletePool(t.Context(), name); err == nil {
			t.Errorf("%q was sent", name)
		}
		if _, err := c.Report(t.Context(), name, client.Facts{}); err == nil {
			t.Errorf("%q was sent", name)
		}
	}
}

func TestProblem(t *testing.T) {
	c := serve(t, scripted(503, "application/problem+json", `{"type":"/problems/no-proxy","title":"No proxy is free","status":503,
		"detail":"none for this target","reasons":{"cooling":2,"leased":9,"expired":0,"gated":2},"exact":false,"retry_after_ms":740,
		"advice":{"concurrency":3,"start_gap_ms":20},"new_field":1}`))
	_, err := c.Acquire(t.Context(), client.AcquireRequest{Target: "a"})
	p, ok := errors.AsType[*client.Problem](err)
	if !ok || !client.IsProblem(err, client.NoProxy) || client.IsProblem(err, client.Internal) || errors.Is(err, client.ErrUnreachable) {
		t.Fatalf("%v", err)
	}
	if p.Status != 503 || p.RetryAfter() != 740*time.Millisecond || p.Exact == nil || *p.Exact || p.Advice.Concurrency != 3 {
		t.Errorf("%+v", p)
	}
	if want := "No proxy is free: none for this target (leased 9, cooling 2, gated 2)"; p.Error() != want {
		t.Errorf("%q, want %q", p.Error(), want)
	}
}

func TestForeignErrorPagesAreNotQuoted(t *testing.T) {
	for _, kind := range []string{"text/html", "application/problem+json", "application/json"} {
		c := serve(t, scripted(502, kind, `<p>marker http://user:marker@192.0.2.1/</p>`))
		err := c.Ready(t.Context())
		p, ok := errors.AsType[*client.Problem](err)
		if !ok || p.Type != "about:blank" || p.Status != 502 || err.Error() != "The server answered 502 Bad Gateway" {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	c := serve(t, http.RedirectHandler(elsewhere.BaseURL(), http.StatusTemporaryRedirect), client.WithHTTPClient(&http.Client{}))
	_, err := c.Report(t.Context(), leaseID, client.Facts{})
	if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status != http.StatusTemporaryRedirect {
		t.Errorf("%v", err)
	}
}

func TestAnswersThatAreNotOurs(t *testing.T) {
	for _, tt := range []struct{ kind, body, want string }{
		{"text/html", "<html>", "is this a Hostler server?"},
		{"application/json", "{", "not what this client expects"},
		{"application/json", `{"pools":7}`, "not what this client expects"},
	} {
		c := serve(t, scripted(200, tt.kind, tt.body))
		if _, err := c.Pools(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v", tt.kind, tt.body, err)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 1<<20)
		for range 17 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	if _, err := c.OpenAPI(t.Context()); err == nil || !strings.Contains(err.Error(), "larger than 16777216 bytes") {
		t.Errorf("%v", err)
	}
	if _, _, err := c.Proxies(t.Context(), client.ProxyFilter{}); err == nil || strings.Contains(err.Error(), "larger than") {
		t.Errorf("a list is bounded otherwise: %v", err) // it is read to its end, and is no JSON
	}
}

func TestAllProxiesReadsEveryPage(t *testing.T) {
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		next := map[string]string{"": "a", "a": "b", "b": ""}[r.URL.Query().Get("cursor")]
		_, _ = fmt.Fprintf(w, `{"proxies":[{"id":"%s"}],"cursor":%q}`, "after"+next, next)
	}))
	list, err := c.AllProxies(t.Context(), client.ProxyFilter{})
	if err != nil || len(list) != 3 {
		t.Errorf("%v %v", list, err)
	}
}

func TestUnreachable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	nobody, err := client.New("http://"+closed.Addr().String(), client.WithToken("hst_marker"))
	if err != nil {
		t.Fatal(err)
	}
	hangUp := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	brokenOff := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "{")
	}))
	silent := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		client.WithTimeout(20*time.Millisecond))
	for name, c := range map[string]*client.Client{"nobody": nobody, "hang up": hangUp, "broken off": brokenOff, "silent": silent} {
		_, err := c.Target(t.Context(), "marker-pool", "marker-target")
		if !errors.Is(err, client.ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, ok := errors.AsType[*client.Problem](err); ok || strings.Contains(err.Error(), "marker") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = nobody.Pools(t.Context())
	if _, ok := errors.AsType[*net.OpError](err); !ok {
		t.Errorf("the cause is lost: %v", err)
	}
}

func TestTheContextEndsACall(t *testing.T) {
	arrived := make(chan struct{}, 2)
	c := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // before that the server does not look for the caller's end
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := c.Acquire(ctx, client.AcquireRequest{Target: "a", WaitMS: 60_000}); !errors.Is(err, context.Canceled) ||
		errors.Is(err, client.ErrUnreachable) {
		t.Errorf("%v", err)
	}
	late, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer end()
	if err := c.Ready(late); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, client.ErrUnreachable) {
		t.Errorf("%v", err)
	}
}

// TestTimeouts looks at the time that each call is given.
func TestTimeouts(t *testing.T) {
	var left time.Duration
	look := roundTripper(func(r *http.Request) (*http.Response, error) {
		left = -1
		if end, ok := r.Context().Deadline(); ok {
			left = time.Until(end)
		}
		return nil, errors.New("not sent")
	})
	c, err := client.New("http://127.0.0.1:7070", client.WithHTTPClient(&http.Client{Transport: look}), client.WithTimeout(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	within := func(name string, low, high time.Duration) {
		t.Helper()
		if left < low || left > high {
			t.Errorf("%s: %s left", name, left)
		}
	}
	_ = c.Ready(t.Context())
	within("usual", 59*time.Minute, time.Hour)
	_, _ = c.Acquire(t.Context(), client.AcquireRequest{Target: "a", WaitMS: 7_200_000})
	within("acquire with a wait", 179*time.Minute, 3*time.Hour)
	_, _ = c.Exchange(t.Context(), client.ExchangeRequest{Acquire: &client.AcquireRequest{Target: "a", WaitMS: 7_200_000}})
	within("exchange with a wait", 179*time.Minute, 3*time.Hour)
	_, _ = c.Import(t.Context(), strings.NewReader(""), client.ImportOptions{})
	within("import", -1, -1)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAListThatCannotBeReadIsNotTheServersFault(t *testing.T) {
	c := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	cause := errors.New("the disk is gone")
	_, err := c.Import(t.Context(), iotest.ErrReader(cause), client.ImportOptions{})
	if !errors.Is(err, cause) || errors.Is(err, client.ErrUnreachable) {
		t.Errorf("%v", err)
	}
}

func TestErrorsHoldNoSecrets(t *testing.T) {
	const token = "hst_tokenmarker"
	detail, err := json.Marshal("no such proxy http://user:pass-marker@p@192.0.2.1:80/x?key=query-marker (" + token + ") \x1b[31m")
	if err != nil {
		t.Fatal(err)
	}
	answer := serve(t, scripted(400, "application/problem+json",
		`{"type":"/problems/invalid-request","title":"The request is not valid","status":400,"detail":`+string(detail)+`}`), client.WithToken(token))
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("proxy socks5://user:pass-marker@192.0.2.1:80 for %s says %s", r.URL, r.Header.Get("Authorization"))
	})
	broken, err := client.New("http://127.0.0.1:7070", client.WithToken(token), client.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*client.Client{"answer": answer, "transport": broken} {
		_, err := c.Proxy(t.Context(), "query-marker", proxyID)
		if err == nil {
			t.Fatal(name)
		}
		for _, secret := range []string{"pass-marker", "query-marker", "tokenmarker", "user:", "\x1b"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %q in %q", name, secret, err)
			}
		}
		if !strings.Contains(err.Error(), "192.0.2.1:80") {
			t.Errorf("%s: nothing is left: %q", name, err)
		}
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	lease := client.Lease{ID: "q8Zt1mJx-idmarker", Target: "shop.example", Proxy: client.LeasedProxy{
		ID: proxyID, Scheme: "http", Host: "192.0.2.1", Username: "user", Password: "passmarker", URL: "http://user:passmarker@192.0.2.1:80",
	}}
	token := client.Token{Name: "crawl", Role: "worker", Token: "tokenmarker"}
	values := []any{
		lease, &lease, lease.Proxy, &lease.Proxy,
		[]client.Lease{lease},
		client.Acquired{Leases: []client.Lease{lease}},
		map[string]client.LeasedProxy{"a": lease.Proxy},
		client.Exchanged{Leases: []client.Lease{lease}},
		token, &token,
		[]client.Token{token},
	}
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	logJSON := slog.New(slog.NewJSONHandler(&out, nil))
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t"} {
			_, _ = fmt.Fprintf(&out, verb+"\n", v)
		}
		log.Info("text", "value", v)
	}
	for _, v := range []any{lease, &lease, lease.Proxy, client.Acquired{Leases: []client.Lease{lease}}, token} {
		logJSON.Info("json", "value", v)
	}
	if i := strings.Index(out.String(), "marker"); i >= 0 {
		t.Errorf("... %s ...", out.String()[max(0, i-60):i+6])
	}
	if want := "lease q8Zt1mJx of http proxy " + proxyID + " for shop.example"; lease.String() != want {
		t.Errorf("%q, want %q", lease.String(), want)
	}
}

func TestPatchLeavesOutWhatIsNotSaid(t *testing.T) {
	at := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for want, p := range map[string]client.ProxyPatch{
		`{}`:                                   {},
		`{"expires_at":null}`:                  {ExpiresAt: &time.Time{}},
		`{"until":"2026-12-01T12:00:00.000Z"}`: {Until: &at},
		`{"cap":0,"region":""}`:                {Cap: new(0), Region: new("")},
		`{"labels":{},"state":"active"}`:       {Labels: &map[string]string{}, State: new("active")},
	} {
		got, err := json.Marshal(p)
		if err != nil || string(got) != want {
			t.Errorf("%s, want %s (%v)", got, want, err)
		}
	}
}

// A list that broke off must not look whole.
func TestExportThatBreaksOff(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "http://h:1\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	if err := c.Export(t.Context(), client.ExportOptions{}, &list); !errors.Is(err, client.ErrUnreachable) || list.Len() == 0 {
		t.Errorf("got %v after %q", err, list.String())
	}
}

func TestKeptEvents(t *testing.T) {
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("follow") != "false" || r.Header.Get("Last-Event-ID") != "4" {
			t.Errorf("asked %s after %q", r.URL, r.Header.Get("Last-Event-ID"))
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: 5\nevent: a\ndata: {\"event\":\"a\"}\n\nid: 6\nevent: b\ndata: {\"event\":\"b\"}\n\n")
	}))
	list, err := c.KeptEvents(t.Context(), 4)
	if err != nil || len(list) != 2 || list[0].ID != 5 || list[1].Event != "b" {
		t.Fatalf("%+v, %v", list, err)
	}
	broken := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: 5\nevent: a\ndata: {}\n\n")
		http.NewResponseController(w).Flush() //nolint:errcheck // it breaks off anyway
		panic(http.ErrAbortHandler)
	}))
	if list, err := broken.KeptEvents(t.Context(), 0); !errors.Is(err, client.ErrUnreachable) || list != nil {
		t.Errorf("a list that breaks off is taken for whole: %+v, %v", list, err)
	}
}
