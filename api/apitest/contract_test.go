package apitest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hostler-proxy/hostler/api/apitest"
)

func load(t *testing.T) *apitest.Contract {
	t.Helper()
	c, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFind(t *testing.T) {
	c := load(t)
	for path, want := range map[string]string{
		"POST /v1/leases":                "acquireLeases",
		"POST /v1/leases/abc/report":     "reportLease",
		"POST /v1/proxies/import":        "importProxies",
		"GET /v1/targets/a%2Fb":          "getTarget",
		"GET /v1/proxies/import":         "getProxy",
		"GET /v1/nothing":                "",
		"PUT /v1/leases":                 "",
		"POST /v1/workers/w-1/heartbeat": "heartbeat",
	} {
		method, path, _ := strings.Cut(path, " ")
		got := ""
		if o := c.Find(method, path); o != nil {
			got = o.ID
		}
		if got != want {
			t.Errorf("%s %s: %q, want %q", method, path, got, want)
		}
	}
}

func TestCheckRequestFindsFaults(t *testing.T) {
	c := load(t)
	const id = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
	for _, tt := range []struct{ name, method, url, kind, body, want string }{
		{"good", "POST", "/v1/leases", "application/json; charset=utf-8", `{"target":"a"}`, ""},
		{"missing", "POST", "/v1/leases", "application/json", `{}`, "target: is missing"},
		{"unknown field", "POST", "/v1/leases", "application/json", `{"target":"a","tagret":"b"}`, "tagret: is not described"},
		{"nested", "POST", "/v1/leases", "application/json", `{"target":"a","select":{"labels":{"k":1}}}`, "select.labels.k: is integer"},
		{"range", "POST", "/v1/leases", "application/json", `{"target":"a","count":101}`, "count: 101 is more"},
		{"fraction", "POST", "/v1/leases", "application/json", `{"target":"a","ttl_ms":1000.5}`, "ttl_ms: is number"},
		{"word", "POST", "/v1/leases/x/report", "application/json", `{"phase":"teleport"}`, "phase: teleport is not one of"},
		{"taken-in field", "POST", "/v1/reports", "application/json", `{"reports":[{"lease":"x","phase":"sent"},{}]}`, "reports[1].lease: is missing"},
		{"content type", "POST", "/v1/leases", "text/plain", `{"target":"a"}`, "content type"},
		{"not JSON", "POST", "/v1/leases", "application/json", `{`, "body:"},
		{"needless body", "GET", "/v1/pools", "", `{}`, "takes none"},
		{"query", "GET", "/v1/proxies?stat=new", "", "", "stat is not a parameter"},
		{"query word", "GET", "/v1/proxies?state=tired", "", "", "state: tired"},
		{"query number", "GET", "/v1/proxies?limit=1001", "", "", "limit: 1001 is more"},
		{"query missing", "GET", "/v1/proxy", "", "", "target is missing"},
		{"path", "GET", "/v1/proxies/xyz", "", "", `id: "xyz" does not match`},
		{"time", "PATCH", "/v1/proxies/" + id, "application/json", `{"until":"2026-12-01T12:00:00Z"}`, "milliseconds"},
		{"null", "PATCH", "/v1/proxies/" + id, "application/json", `{"expires_at":null}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := http.NewRequest(tt.method, "http://127.0.0.1:7070"+tt.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", tt.kind)
			err = c.Find(tt.method, r.URL.EscapedPath()).CheckRequest(r, []byte(tt.body))
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestCheckAnswerFindsFaults(t *testing.T) {
	c := load(t)
	const problem = `{"type":"/problems/no-proxy","title":"No proxy is free","status":503,"reasons":{"cooling":1},"exact":true,"retry_after_ms":740}`
	for _, tt := range []struct {
		name, path string
		status     int
		kind, body string
		want       string
	}{
		{"good", "/v1/tokens", 200, "application/json", `{"tokens":[]}`, ""},
		{"missing", "/v1/tokens", 200, "application/json", `{}`, "tokens: is missing"},
		{"null", "/v1/tokens", 200, "application/json", `{"tokens":null}`, "tokens: is null"},
		{"seconds", "/v1/tokens", 200, "application/json", `{"tokens":[{"name":"a","role":"worker","created_at":"2026-12-01T12:00:00Z"}]}`, "milliseconds"},
		{"status", "/v1/tokens", 201, "application/json", `{"tokens":[]}`, "status 201 is not described"},
		{"problem", "/v1/proxy", 503, "application/problem+json", problem, ""},
		{"default", "/v1/tokens", 405, "application/problem+json", `{"type":"/problems/method-not-allowed","title":"t","status":405}`, ""},
		{"problem type", "/v1/tokens", 500, "application/problem+json", `{"type":"/problems/oops","title":"t","status":500}`, "/problems/oops is not one of"},
		{"problem as JSON", "/v1/tokens", 500, "application/json", `{}`, "content type"},
		{"text", "/v1/proxy", 200, "text/plain; charset=utf-8", "http://192.0.2.1:80\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := c.Find("GET", tt.path).CheckAnswer(tt.status, tt.kind, []byte(tt.body))
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestParseRefusesWhatIsNoContract(t *testing.T) {
	for _, text := range []string{"", "a: [", "openapi: 3.1.0", "- 1"} {
		if _, err := apitest.Parse([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
