package fetch_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/internal/fetch"
	"github.com/hostler-proxy/hostler/internal/source"
)

const marker = "S3cr3t-MARK"

func environment(name string) (string, bool) {
	if name == "TOKEN" {
		return marker, true
	}
	return "", false
}

func parse(t *testing.T, settings map[string]string) *source.Source {
	t.Helper()
	s, err := source.Parse("acme", settings)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const good = "8.8.8.8:80\n8.8.4.4:80:user:pass\nnot a proxy\n"

func packed(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.Bytes()
}

// raw answers with bytes of its own making on the bare connection.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(text))
		_ = conn.Close()
	}
}

func send(status int, headers map[string]string, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// TestAnswers: what each kind of answer becomes. "" = a list of two.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		do   http.HandlerFunc
		want string
	}{
		"good":                   {send(200, nil, good), ""},
		"good as text/html":      {send(200, map[string]string{"Content-Type": "text/html"}, good), ""},
		"gzip":                   {send(200, map[string]string{"Content-Encoding": "gzip"}, string(packed(good))), ""},
		"a .gz file":             {send(200, map[string]string{"Content-Type": "application/gzip"}, string(packed(good))), ""},
		"IPv6 first":             {send(200, nil, "[2001:4860::1]:80\n8.8.4.4:80:user:pass\nnot a proxy\n"), ""},
		"JSON lines":             {send(200, nil, `{"host":"8.8.8.8","port":80}`+"\n"+`{"host":"8.8.4.4","port":80}`+"\n"+`{"host":"8.8.4.4"}`), ""},
		"JSON cut off":           {send(200, nil, `[{"host":"8.8.8.8","port":80},{"host":"8.8.4.4","po`), "does not end as such"},
		"JSON lines cut off":     {send(200, nil, `{"host":"8.8.8.8","port":80}`+"\n"+`{"host":"8.8.4.4","po`), "does not end as such"},
		"401":                    {send(401, nil, good), "answers 401: are the credentials right"},
		"403":                    {send(403, nil, good), "answers 403"},
		"404":                    {send(404, nil, good), "the server answers 404"},
		"500":                    {send(500, nil, good), "the server answers 500"},
		"206":                    {send(206, nil, good), "the server answers 206"},
		"304 unasked":            {send(304, nil, ""), "the server answers 304"},
		"HTML":                   {send(200, nil, "\n <!DOCTYPE html><title>8.8.8.8:80</title>"), "a web page and not a list"},
		"cut off":                {raw("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + good), "cut off or is damaged"},
		"cut off in a chunk":     {raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100\r\n" + good), "cut off or is damaged"},
		"gzip cut off":           {send(200, map[string]string{"Content-Encoding": "gzip"}, string(packed(good)[:30])), "cut off or is damaged"},
		"gzip damaged":           {send(200, map[string]string{"Content-Encoding": "gzip"}, string(packed(good)[:20])+"xxxxxxxxxxxxxxxxxxxxx"), "cut off or is damaged"},
		"not gzip at all":        {send(200, map[string]string{"Content-Encoding": "gzip"}, good), "says gzip and is not"},
		"packed unasked":         {send(200, map[string]string{"Content-Encoding": "br"}, good), "in a way that nobody asked for"},
		"too large":              {send(200, nil, strings.Repeat(good, 100)), "larger than max_bytes, 2048"},
		"a bomb":                 {send(200, map[string]string{"Content-Encoding": "gzip"}, string(packed(strings.Repeat(" ", 1<<20)))), "larger than max_bytes"},
		"no HTTP":                {raw("SSH-2.0-" + marker + "\r\n"), "does not speak HTTP"},
		"hangs up":               {raw(""), "broke off"},
		"silence":                {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no whole answer within the timeout"},
		"redirect to nowhere":    {send(302, map[string]string{"Location": "http://"}, ""), "no plain URL"},
		"redirect with a user":   {send(302, map[string]string{"Location": "http://u:" + marker + "@8.8.8.8/"}, ""), "no plain URL"},
		"redirect to a file":     {send(302, map[string]string{"Location": "file:///etc/passwd"}, ""), "no plain URL"},
		"redirect to ftp":        {send(302, map[string]string{"Location": "ftp://8.8.8.8/"}, ""), "away from http"},
		"redirect round":         {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }, "more than 5 redirects"},
		"redirect without place": {send(302, nil, ""), "the server answers 302"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.do)
			defer server.Close()
			timeout := "20s"
			if name == "silence" {
				timeout = "100ms"
			}
			f := fetch.Fetcher{Env: environment}
			s := parse(t, map[string]string{
				"url": server.URL + "/?t=${TOKEN}", "headers.Authorization": "Bearer ${TOKEN}", "timeout": timeout, "max_bytes": "2048",
			})
			res, err := f.Fetch(t.Context(), s, fetch.Mark{})
			if c.want == "" {
				if err != nil || len(res.Entries) != 2 || res.Rejects != 1 || res.Rejected[0].Line != 3 {
					t.Fatalf("got %+v %v", res, err)
				}
				return
			}
			var fault *fetch.Error
			if !errors.As(err, &fault) || !strings.Contains(fault.Text, c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if strings.Contains(fmt.Sprintf("%v %+v", err, res), marker) {
				t.Fatalf("the fault leaks: %v", err)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		_ = l.Close()
		f := fetch.Fetcher{Env: environment}
		_, err = f.Fetch(t.Context(), parse(t, map[string]string{"url": "http://" + address}), fetch.Mark{})
		if err == nil || !strings.Contains(err.Error(), "refuses the connection") {
			t.Fatal(err)
		}
	})
}

func TestUnsetVariableIsNamed(t *testing.T) {
	f := fetch.Fetcher{Env: environment}
	_, err := f.Fetch(t.Context(), parse(t, map[string]string{"url": "http://8.8.8.8/", "query.key": "${NOPE}"}), fetch.Mark{})
	if err == nil || !strings.Contains(err.Error(), "query.key: the environment of the daemon has no NOPE") {
		t.Fatal(err)
	}
}

func TestNotModified(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == `"v1"` && r.Header.Get("If-Modified-Since") == "yesterday" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Last-Modified", "yesterday")
		_, _ = w.Write([]byte(good))
	}))
	defer server.Close()
	var f fetch.Fetcher
	s := parse(t, map[string]string{"url": server.URL})
	first, err := f.Fetch(t.Context(), s, fetch.Mark{})
	if err != nil || first.Unchanged || first.Mark.ETag != `"v1"` {
		t.Fatalf("%+v %v", first, err)
	}
	again, err := f.Fetch(t.Context(), s, first.Mark)
	if err != nil || !again.Unchanged || again.Mark != first.Mark {
		t.Fatalf("%+v %v", again, err)
	}
}

func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{"120": 2 * time.Minute, "Tue, 01 Dec 2026 12:01:00 GMT": time.Minute, "-3": 0, "soon": 0, "999999": 24 * time.Hour} {
		server := httptest.NewServer(send(503, map[string]string{"Retry-After": value, "Date": "Tue, 01 Dec 2026 12:00:00 GMT"}, ""))
		var f fetch.Fetcher
		_, err := f.Fetch(t.Context(), parse(t, map[string]string{"url": server.URL}), fetch.Mark{})
		server.Close()
		if fault, ok := errors.AsType[*fetch.Error](err); !ok || fault.After != want {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// seen records what a server was sent.
type seen struct {
	mu   sync.Mutex
	list []string
}

func (s *seen) note(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, fmt.Sprintf("%s %v", r.URL, r.Header))
}

func (s *seen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.list, "\n")
}

// TestRedirects: credentials go to the source's own origin and nowhere else, and
// a redirect to another host leads to public addresses only.
func TestRedirects(t *testing.T) {
	var other, own seen
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		other.note(r)
		_, _ = w.Write([]byte(good))
	}))
	defer elsewhere.Close()
	port := elsewhere.URL[strings.LastIndex(elsewhere.URL, ":"):]
	mux := http.NewServeMux()
	for path, to := range map[string]string{
		"/same": "/list", "/port": elsewhere.URL + "/x", "/localhost": "http://localhost" + port + "/x", "/private": "http://10.255.255.1/x",
		"/metadata": "http://169.254.169.254/latest/", "/mapped": "http://[::ffff:10.255.255.1]/x", "/nat64": "http://[64:ff9b::a00:1]/x",
		"/zero": "http://0.0.0.0" + port + "/x", "/decimal": "http://2130706433" + port + "/x",
	} {
		mux.Handle(path, http.RedirectHandler(to, http.StatusFound))
	}
	mux.HandleFunc("/list", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(good)) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own.note(r)
		mux.ServeHTTP(w, r)
	}))
	defer server.Close()
	settings := map[string]string{
		"headers.X-Api-Key": "${TOKEN}", "headers.Cookie": "c=${TOKEN}", "query.token": "${TOKEN}", "basic.username": "u", "basic.password": "${TOKEN}",
	}
	get := func(path, allow string) error {
		all := maps.Clone(settings)
		all["url"], all["allow_special"] = server.URL+path, allow
		f := fetch.Fetcher{Env: environment}
		_, err := f.Fetch(t.Context(), parse(t, all), fetch.Mark{})
		return err
	}
	if err := get("/same", "false"); err != nil {
		t.Fatal(err)
	}
	if got := own.all(); strings.Count(got, "X-Api-Key:["+marker+"]") != 2 || strings.Count(got, "token="+marker) != 1 || !strings.Contains(got, "Authorization:[Basic ") {
		t.Errorf("the own origin got %s", got)
	}
	if err := get("/port", "false"); err != nil { // the same host on another port: another origin, and the named address
		t.Fatal(err)
	}
	if got := other.all(); strings.Contains(got, marker) || strings.Contains(got, "Basic") || got == "" {
		t.Errorf("another origin got %s", got)
	}
	for _, path := range []string{"/localhost", "/private", "/metadata", "/mapped", "/nat64", "/zero"} {
		for _, allow := range []string{"false", "true"} {
			if err := get(path, allow); err == nil || !strings.Contains(err.Error(), "special-purpose address") {
				t.Errorf("%s with allow_special %s: %v", path, allow, err)
			}
		}
	}
	if err := get("/decimal", "true"); err == nil {
		t.Error("an address in decimal led somewhere")
	}
	if n := strings.Count(other.all(), "/x"); n != 1 {
		t.Errorf("the other server was asked %d times", n)
	}
}

// TestNoDowngrade needs TLS, and a client that trusts nobody: it fails before the
// redirect, so the rule itself is tested on follow.
func TestNoDowngrade(t *testing.T) {
	server := httptest.NewTLSServer(http.RedirectHandler("http://8.8.8.8/", http.StatusFound))
	defer server.Close()
	var f fetch.Fetcher
	_, err := f.Fetch(t.Context(), parse(t, map[string]string{"url": server.URL}), fetch.Mark{})
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Fatalf("an unknown certificate: %v", err)
	}
	if err := fetch.Follow("https://a.example/x", "http://a.example/y"); err == nil || !strings.Contains(err.Error(), "https to http") {
		t.Fatalf("a downgrade: %v", err)
	}
	if err := fetch.Follow("http://a.example/x", "https://b.example/y"); err != nil {
		t.Fatalf("an upgrade: %v", err)
	}
}

func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "list.txt")
	var f fetch.Fetcher
	s := parse(t, map[string]string{"file": name, "max_bytes": "1024"})
	fails := func(want string) {
		t.Helper()
		if _, err := f.Fetch(t.Context(), s, fetch.Mark{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("got %v, want %q", err, want)
		}
	}
	fails("no such file")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(good)
	stamp := fetch.Stamp(name)
	first, err := f.Fetch(t.Context(), s, fetch.Mark{})
	if err != nil || len(first.Entries) != 2 {
		t.Fatalf("%+v %v", first, err)
	}
	if again, err := f.Fetch(t.Context(), s, first.Mark); err != nil || !again.Unchanged {
		t.Fatalf("%+v %v", again, err)
	}
	write(good + "8.8.8.8:81\n")
	if fetch.Stamp(name) == stamp {
		t.Fatal("a change has the same stamp")
	}
	if more, err := f.Fetch(t.Context(), s, first.Mark); err != nil || len(more.Entries) != 3 {
		t.Fatalf("%+v %v", more, err)
	}
	write(strings.Repeat("x", 2000))
	fails("larger than max_bytes")
	write("<html>")
	fails("web page")
	s = parse(t, map[string]string{"file": t.TempDir()})
	fails("not a regular file")
}

// TestJSON reads an API page by page.
func TestJSON(t *testing.T) {
	item := func(n int) string { return fmt.Sprintf(`{"ip":"8.8.8.%d","port":80}`, n) }
	var own seen
	mux := http.NewServeMux()
	mux.HandleFunc("/plain", send(200, map[string]string{"ETag": "x"}, `{"d":[`+item(1)+`,`+item(2)+`]}`))
	mux.HandleFunc("/page", func(w http.ResponseWriter, r *http.Request) {
		pages := map[string]string{"0": item(1), "1": item(2), "2": ""}
		_, _ = fmt.Fprintf(w, `{"d":[%s]}`, pages[r.FormValue("p")])
	})
	mux.HandleFunc("/cursor", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("after") == "" {
			_, _ = fmt.Fprintf(w, `{"d":[%s],"meta":{"next":7}}`, item(1))
			return
		}
		_, _ = fmt.Fprintf(w, `{"d":[%s],"meta":{"next":null}}`, item(2))
	})
	mux.HandleFunc("/next", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("n") == "" {
			_, _ = fmt.Fprintf(w, `{"d":[%s],"next":"http://%s/next?n=2"}`, item(1), r.Host)
			return
		}
		_, _ = fmt.Fprintf(w, `{"d":[%s],"next":""}`, item(2))
	})
	mux.HandleFunc("/away", send(200, nil, `{"d":[`+item(1)+`],"next":"http://8.8.8.8/"}`))
	mux.HandleFunc("/deaf", send(200, nil, `{"d":[`+item(1)+`],"meta":{"next":"c"}}`))
	mux.HandleFunc("/broken", send(200, nil, `{"d":[`+item(1)+`,`))
	mux.HandleFunc("/elsewhere", send(200, nil, `{"data":[]}`))
	mux.HandleFunc("/html", send(200, nil, `<html>`))
	endless := 0
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		endless++
		_, _ = fmt.Fprintf(w, `{"d":[%s]}`, item(endless))
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own.note(r)
		mux.ServeHTTP(w, r)
	}))
	defer server.Close()
	for _, c := range []struct {
		path string
		more map[string]string
		want string
	}{
		{"/plain", nil, ""},
		{"/page", map[string]string{"json.paging.page": "p", "json.paging.first": "0"}, ""},
		{"/cursor", map[string]string{"json.paging.cursor": "meta.next", "json.paging.cursor_param": "after"}, ""},
		{"/next", map[string]string{"json.paging.next": "next"}, ""},
		{"/away", map[string]string{"json.paging.next": "next"}, "not on the same host"},
		{"/deaf", map[string]string{"json.paging.page": "p"}, "two pages are the same"},
		{"/deaf", map[string]string{"json.paging.cursor": "meta.next"}, "two pages are the same"},
		{"/broken", nil, "not JSON, or it was cut off"},
		{"/elsewhere", nil, `no list at json.records "d"`},
		{"/html", nil, "a web page"},
		{"/endless", map[string]string{"json.paging.page": "p", "json.paging.max_pages": "3"}, "more than 3 pages"},
	} {
		settings := map[string]string{
			"json.url": server.URL + c.path, "json.records": "d", "json.fields.host": "ip", "json.fields.port": "port", "query.token": "${TOKEN}",
		}
		maps.Copy(settings, c.more)
		f := fetch.Fetcher{Env: environment}
		res, err := f.Fetch(t.Context(), parse(t, settings), fetch.Mark{})
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", c.path, err, c.want)
			}
		case err != nil || len(res.Entries) != 2 || res.Entries[1].Line != 2:
			t.Errorf("%s: %+v %v", c.path, res, err)
		case c.more == nil && res.Mark.ETag == "", c.more != nil && res.Mark.ETag != "":
			t.Errorf("%s: mark %+v", c.path, res.Mark)
		}
	}
	for _, line := range own.list {
		if !strings.Contains(line, "token="+marker) {
			t.Errorf("a page was asked for without the token: %s", line)
		}
	}
}
