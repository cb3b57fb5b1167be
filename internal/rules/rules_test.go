package rules_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostler-proxy/hostler/internal/rules"
)

var update = flag.Bool("update", false, "write the default rules into the golden table")

// golden is the table of testdata/golden.json; docs/rules.md describes its form.
type golden struct {
	Sets    map[string]json.RawMessage `json:"sets"`
	Cases   []goldenCase               `json:"cases"`
	Refused []refusedCase              `json:"refused"`
}

type goldenCase struct {
	Name     string          `json:"name"`
	Set      string          `json:"set,omitempty"`
	Rules    json.RawMessage `json:"rules,omitempty"`
	Response struct {
		Status       int                 `json:"status"`
		Header       map[string][]string `json:"header"`
		Body         string              `json:"body"`
		BodyBase64   string              `json:"body_base64"`
		Before       int                 `json:"before"`
		After        int                 `json:"after"`
		Size         *int64              `json:"size"`
		RedirectHost string              `json:"redirect_host"`
	} `json:"response"`
	Matched []string `json:"matched"`
	Class   string   `json:"class"`
}

type refusedCase struct {
	Rules json.RawMessage `json:"rules"`
	Path  string          `json:"path"`
}

const goldenFile = "testdata/golden.json"

func readGolden(t *testing.T) golden {
	t.Helper()
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var g golden
	if err := d.Decode(&g); err != nil {
		t.Fatal(err)
	}
	return g
}

func (c *goldenCase) response(t *testing.T) *rules.Response {
	t.Helper()
	in := &c.Response
	body := []byte(in.Body)
	if in.BodyBase64 != "" {
		var err error
		if body, err = base64.StdEncoding.DecodeString(in.BodyBase64); err != nil {
			t.Fatal(err)
		}
	}
	body = append([]byte(strings.Repeat("x", in.Before)), append(body, strings.Repeat("x", in.After)...)...)
	r := &rules.Response{Status: in.Status, Header: in.Header, Body: body, Size: int64(len(body)), RedirectHost: in.RedirectHost}
	if in.Size != nil {
		r.Size = *in.Size
	}
	return r
}

func TestGolden(t *testing.T) {
	g := readGolden(t)
	for _, c := range g.Cases {
		t.Run(c.Name, func(t *testing.T) {
			text := c.Rules
			if c.Set != "" {
				text = g.Sets[c.Set]
			}
			set, err := rules.ParseSet(text)
			if err != nil {
				t.Fatal(err)
			}
			got := set.Evaluate(c.response(t))
			if got.Matched == nil {
				got.Matched = []string{}
			}
			if diff := cmp.Diff(c.Matched, got.Matched); diff != "" || string(got.Class) != c.Class {
				t.Errorf("class %q, want %q; matched (-want +got):\n%s", got.Class, c.Class, diff)
			}
			again, unknown := set.Decide(append(got.Matched, "no-such-rule"), false)
			if again.Class != got.Class || len(unknown) != 1 {
				t.Errorf("decided %q and %v from the names, %q from the page", again.Class, unknown, got.Class)
			}
		})
	}
}

// TestGoldenHasTheDefaultRules keeps the table's set "default" what the daemon hands out.
func TestGoldenHasTheDefaultRules(t *testing.T) {
	want := rules.Format(rules.Defaults())
	g := readGolden(t)
	var have bytes.Buffer
	if err := json.Compact(&have, g.Sets["default"]); err != nil {
		t.Fatal(err)
	}
	if have.String() == want {
		return
	}
	if !*update {
		t.Fatal("the set differs; go test ./internal/rules -update writes it anew")
	}
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, []byte(want), "    ", "  "); err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, g.Sets["default"], pretty.Bytes(), 1)
	if err := os.WriteFile(goldenFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range readGolden(t).Refused {
		_, err := rules.Parse(c.Rules)
		if err == nil || !strings.Contains(err.Error(), c.Path+":") {
			t.Errorf("%s: got %v, want a fault at %s", c.Rules, err, c.Path)
		}
	}
	many := "[" + strings.Repeat(`{"name":"a","when":{"status":[200]}},`, 64) + `{"name":"b","when":{"status":[200]}}]`
	for text, want := range map[string]string{
		many: "65 rules, more than 64",
		`[{"name":"a","when":{"contains":"` + strings.Repeat("x", 1025) + `"}}]`:                     "longer than 1024",
		`[{"name":"a","when":{"contains":{"regexp":"` + strings.Repeat("[a-z]", 200) + `{1000}"}}}]`: "",
		`[{"name":"a","when":{"contains":{"regexp":"(` + strings.Repeat("ab?", 100) + `){100}"}}}]`:  "too large",
		`[{"name":"a","when":{"status":[200]}},{"name":"a","when":{"status":[200]}}]`:                "stands twice",
		`[{"name":"a","class":"rate","kind":"weak","when":{"status":[200]}}] x`:                      "not a JSON list",
		`[{"name":"a b","class":"none","kind":"weak","when":{"status":[200,9]}}]`:                    "[0].when.status:",
		`[{"name":"a","when":{"must_contain":"` + strings.Repeat("y", 1024) + `","status":[1000]}}]`: "[0].when.status",
		`[{"name":"default.f5","when":{"status":[200]}}]`:                                            "[0].name",
		`[{"name":"a","when":{"header":{"name":"X-A","value":{"regexp":"("}}}}]`:                     "missing closing )",
		`[{"name":"a","when":{"header":{"value":"x"}}}]`:                                             "has no name",
	} {
		if _, err := rules.Parse([]byte(text)); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.80s: got %v, want %s", text, err, want)
		}
	}
}

// TestFormatRoundTrips writes rules and reads them back.
func TestFormatRoundTrips(t *testing.T) {
	text := `[{"name":"a","kind":"decisive","class":"geo","when":{"status":[451,403],"header":{"name":"X-Wall"},"redirect_host":"b.example",` +
		`"contains":{"regexp":"<b>\\d+ & more"},"max_bytes":9,"max_text":3,"must_contain":"\"'\u00e4","must_not_contain":"\\n","min_bytes":2}}]`
	list, err := rules.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	again, err := rules.Parse([]byte(rules.Format(list)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(list, again); diff != "" {
		t.Error(diff)
	}
	a, b := rules.NewSet(list), rules.NewSet(again)
	if a.ETag() != b.ETag() || a.ETag() == "" || rules.NewSet(nil).ETag() != "" {
		t.Errorf("etags %q and %q", a.ETag(), b.ETag())
	}
}

func TestEvaluateFacts(t *testing.T) {
	list, err := rules.Parse([]byte(`[{"name":"gone","when":{"status":[404]}},{"name":"login","when":{"redirect_host":"login.example"}},
		{"name":"tiny","when":{"status":[200],"min_bytes":100}},{"name":"text","when":{"contains":"x"}},{"name":"head","when":{"header":{"name":"A"}}}]`))
	if err != nil {
		t.Fatal(err)
	}
	set := rules.NewSet(list)
	for _, tt := range []struct {
		status int
		host   string
		size   int64
		want   string
	}{
		{404, "", -1, "gone"},
		{302, "www.login.example:443", -1, "login"},
		{302, "notlogin.example", -1, ""},
		{200, "", 99, "tiny"},
		{200, "", 100, ""},
		{200, "", -1, ""}, // an unknown size blames nobody
	} {
		if got := strings.Join(set.EvaluateFacts(tt.status, tt.host, tt.size).Matched, ","); got != tt.want {
			t.Errorf("%+v: got %q", tt, got)
		}
	}
	var none *rules.Set
	if r := none.EvaluateFacts(404, "", 0); r.Class != rules.None || r.Matched != nil {
		t.Errorf("no rules say %+v", r)
	}
}

func TestBook(t *testing.T) {
	off := false
	own := []rules.Rule{{Name: "a", Kind: rules.Decisive, Class: rules.OK, When: rules.When{Status: []int{403}}}}
	b := rules.NewBook(true, map[string]rules.Own{"a.example": {Rules: own}, "b.example": {Rules: own, Defaults: &off}, "c.example": {Defaults: &off}})
	n := len(rules.Defaults())
	for target, want := range map[string]int{"a.example": n + 1, "b.example": 1, "c.example": 0, "d.example": n} {
		if got := len(b.For(target).Rules()); got != want {
			t.Errorf("%s has %d rules, want %d", target, got, want)
		}
	}
	if got := b.For("a.example").Evaluate(&rules.Response{Status: 403, Body: []byte("error code: 1020"), Size: 16}); got.Class != rules.OK {
		t.Errorf("a target's own rule does not overrule: %+v", got)
	}
	if rules.NewBook(false, nil).For("x") != nil {
		t.Error("a pool without rules has some")
	}
}

func TestVisibleText(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, " a\t\n b ": 2, "<b>a</b>": 1, "<!-- a > b -->c": 1, "<script>if (a<b) x</script>y": 1,
		"<SCRIPT src=x>a</ScRiPt >y": 1, "<style>p{}</style >z": 1, "<scripty>a</scripty>": 1, "<noscript>turn it on</noscript>": 0,
		"äöü": 3, "\xff\xfe": 2, "a<": 1, "<script>never ends": 0, "<!-- never": 0, "&amp;": 5, "<template>x</template>y": 1,
	} {
		if got := rules.VisibleText([]byte(text), 100); got != want {
			t.Errorf("%q shows %d, want %d", text, got, want)
		}
	}
	if got := rules.VisibleText([]byte("abcdef"), 4); got != 4 {
		t.Errorf("counted %d past the bound", got)
	}
}

// FuzzRules reads anything: what is taken can be written, read again and used.
func FuzzRules(f *testing.F) {
	f.Add([]byte(`[{"name":"a","when":{"contains":{"regexp":"a+$"},"status":[200]}}]`), []byte("<b>aa"), "a.example", 200)
	f.Add([]byte(rules.Format(rules.Defaults())), []byte("captcha"), "", 403)
	f.Add([]byte(`[{"name":"a","when":{"must_contain":"x","max_text":3,"redirect_host":"A."}}]`), []byte("<script"), "x:1", 0)
	f.Fuzz(func(t *testing.T, text, body []byte, host string, status int) {
		set, err := rules.ParseSet(text)
		if err != nil {
			return
		}
		again, err := rules.ParseSet([]byte(rules.Format(set.Rules())))
		if err != nil || again.ETag() != set.ETag() {
			t.Fatalf("%s is not read back: %v", text, err)
		}
		for _, size := range []int64{-1, int64(len(body)), int64(len(body)) + 1} {
			r := &rules.Response{Status: status, Body: body, Size: size, RedirectHost: host, Header: map[string][]string{"A": {host}}}
			got := set.Evaluate(r)
			decided, unknown := set.Decide(got.Matched, false)
			if len(unknown) > 0 || decided.Class != got.Class || (got.Class == rules.None) != (len(got.Matched) == 0) {
				t.Fatalf("%+v, from its names %+v and %v", got, decided, unknown)
			}
		}
		if n := rules.VisibleText(body, 1<<20); n > len(body) {
			t.Fatalf("%d visible characters in %d bytes", n, len(body))
		}
	})
}

// BenchmarkDefaults evaluates the default rules on a good page.
func BenchmarkDefaults(b *testing.B) {
	set := rules.NewSet(rules.Defaults())
	for name, size := range map[string]int{"9KB": 9 << 10, "40KB": 40 << 10, "200KB": 200 << 10} {
		body := bytes.Repeat([]byte("<p class=\"item\">A chair of oak, 129 euro, access to all.</p>\n"), size/60)
		r := &rules.Response{Status: 200, Header: map[string][]string{"Content-Type": {"text/html"}}, Body: body, Size: int64(len(body))}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if len(set.Evaluate(r).Matched) > 0 {
					b.Fatal("a good page hits")
				}
			}
		})
	}
}
