package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hostler-proxy/hostler/api"
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

func TestOperationsAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	lowerCamel := regexp.MustCompile(`^[a-z][A-Za-z]*$`)
	for _, o := range load(t).Operations() {
		name := o.Method + " " + o.Path
		if !lowerCamel.MatchString(o.ID) || seen[o.ID] {
			t.Errorf("%s: operationId %q is not lowerCamel or not unique", name, o.ID)
		}
		seen[o.ID] = true
		for _, field := range []string{"summary", "description"} {
			if text, _ := o.Node[field].(string); strings.TrimSpace(text) == "" {
				t.Errorf("%s: no %s", name, field)
			}
		}
		if _, public := o.Node["security"]; public == slices.Contains([]string{"worker", "viewer", "operator"}, o.Role) {
			t.Errorf("%s: must say either x-role or security: []", name)
		}
		checkAnswers(t, name, o)
		checkParameters(t, name, o)
	}
}

// checkAnswers wants one success and, for everything else, problems.
func checkAnswers(t *testing.T, name string, o *apitest.Operation) {
	t.Helper()
	answers, _ := o.Node["responses"].(map[string]any)
	if answers["default"] == nil {
		t.Errorf("%s: no default answer", name)
	}
	if o.Role != "" && (answers["401"] == nil || answers["403"] == nil) {
		t.Errorf("%s: 401 and 403 are not described", name)
	}
	problem := `{"type":"/problems/internal","title":"Internal error","status":500}`
	good := 0
	for code := range answers {
		status := 500
		if code != "default" {
			if _, err := fmt.Sscan(code, &status); err != nil {
				t.Fatalf("%s: status %q", name, code)
			}
		}
		if status < 300 {
			good++
			continue
		}
		if status == http.StatusNotModified {
			continue // no problem, and no body
		}
		if err := o.CheckAnswer(status, "application/problem+json", []byte(problem)); err != nil {
			t.Errorf("%s: %s does not answer a problem: %v", name, code, err)
		}
	}
	if good != 1 {
		t.Errorf("%s: %d successes are described", name, good)
	}
}

func checkParameters(t *testing.T, name string, o *apitest.Operation) {
	t.Helper()
	for _, p := range o.Parameters() {
		if text, _ := p["description"].(string); text == "" || p["schema"] == nil {
			t.Errorf("%s: parameter %v has no description or no schema", name, p["name"])
		}
	}
	for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(o.Path, -1) {
		if !slices.ContainsFunc(o.Parameters(), func(p map[string]any) bool { return p["in"] == "path" && p["name"] == m[1] }) {
			t.Errorf("%s: the path's %s is not described", name, m[1])
		}
	}
}

// walk calls do for every object of the document outside of examples.
func walk(at string, v any, do func(at string, m map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		do(at, v)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key != "example" {
				walk(at+"/"+key, v[key], do)
			}
		}
	case []any:
		for i, item := range v {
			walk(fmt.Sprintf("%s/%d", at, i), item, do)
		}
	}
}

func TestReferencesResolve(t *testing.T) {
	c := load(t)
	n := 0
	walk("#", c.Doc(), func(at string, m map[string]any) {
		ref, ok := m["$ref"].(string)
		if !ok {
			return
		}
		n++
		if _, err := c.Resolve(ref); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	})
	if n == 0 {
		t.Error("no reference was seen: the test looks at nothing")
	}
}

func TestComponentsAreUsed(t *testing.T) {
	c := load(t)
	components, _ := c.Doc()["components"].(map[string]any)
	for _, kind := range []string{"schemas", "responses", "parameters"} {
		group, _ := components[kind].(map[string]any)
		for name := range group {
			if ref := `"#/components/` + kind + "/" + name + `"`; !bytes.Contains(api.OpenAPI(), []byte(ref)) {
				t.Errorf("%s is used nowhere", ref)
			}
		}
	}
}

func TestSchemasAreDescribed(t *testing.T) {
	components, _ := load(t).Doc()["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		schema, _ := schemas[name].(map[string]any)
		checkDescribed(t, name, schema)
		walk(name, schema, func(at string, m map[string]any) {
			props, _ := m["properties"].(map[string]any)
			for field, p := range props {
				checkProperty(t, at+"."+field, field, p)
			}
			for _, inner := range []string{"items", "additionalProperties"} {
				if s, ok := m[inner].(map[string]any); ok {
					checkDescribed(t, at+"/"+inner, s)
				}
			}
		})
	}
}

func checkDescribed(t *testing.T, at string, s map[string]any) {
	t.Helper()
	if text, _ := s["description"].(string); s["$ref"] == nil && strings.TrimSpace(text) == "" {
		t.Errorf("%s: no description", at)
	}
}

// checkProperty holds a property to the house style: described, durations in
// whole milliseconds, times as date-time.
func checkProperty(t *testing.T, at, field string, p any) {
	t.Helper()
	s, ok := p.(map[string]any)
	if !ok {
		t.Errorf("%s: is not a schema", at)
		return
	}
	checkDescribed(t, at, s)
	kind := fmt.Sprint(s["type"])
	text, _ := s["description"].(string)
	if strings.HasSuffix(field, "_ms") && s["$ref"] == nil && kind != "object" &&
		(!strings.Contains(kind, "integer") && !strings.Contains(kind, "array") || !strings.Contains(text, "milliseconds")) {
		t.Errorf("%s: a duration is a whole number, and its description says milliseconds", at)
	}
	if (strings.HasSuffix(field, "_at") || strings.HasSuffix(field, "until")) && s["format"] != "date-time" {
		t.Errorf("%s: a time has the format date-time", at)
	}
	if strings.HasSuffix(field, "rate") && !strings.Contains(kind, "null") {
		t.Errorf("%s: a rate is null when nothing was counted", at)
	}
}

func TestRequestBodiesAreClosed(t *testing.T) {
	c := load(t)
	for _, o := range c.Operations() {
		body, _ := o.Node["requestBody"].(map[string]any)
		content, _ := body["content"].(map[string]any)
		media, ok := content["application/json"].(map[string]any)
		if !ok {
			continue
		}
		ref, _ := media["schema"].(map[string]any)["$ref"].(string)
		schema, err := c.Resolve(ref)
		if err != nil {
			t.Fatalf("%s: %v", o.ID, err)
		}
		s, _ := schema.(map[string]any)
		if s["additionalProperties"] != false && s["unevaluatedProperties"] != false {
			t.Errorf("%s: the body takes fields that are not described", o.ID)
		}
	}
}

func TestExamplesAreAsDescribed(t *testing.T) {
	for _, o := range load(t).Operations() {
		if body := o.RequestExample(); body != nil {
			kind := "application/json"
			if !json.Valid(body) {
				kind = "text/plain"
			}
			if err := checkExampleRequest(o, kind, body); err != nil {
				t.Errorf("%s: the example of the request: %v", o.ID, err)
			}
		} else if o.Node["requestBody"] != nil {
			t.Errorf("%s: no example of the request", o.ID)
		}
		status, media, body := o.Example()
		if body == nil {
			if media == "application/json" {
				t.Errorf("%s: no example of the answer", o.ID)
			}
			continue
		}
		if err := o.CheckAnswer(status, media, body); err != nil {
			t.Errorf("%s: the example of the answer: %v", o.ID, err)
		}
	}
}

// checkExampleRequest checks the body alone: parameters have no examples.
func checkExampleRequest(o *apitest.Operation, kind string, body []byte) error {
	r, err := http.NewRequest(o.Method, "http://127.0.0.1/", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", kind)
	return o.CheckRequest(r, body)
}

func TestProblemTypesAreExplained(t *testing.T) {
	schema, err := load(t).Resolve("#/components/schemas/ProblemType")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := schema.(map[string]any)
	text, _ := s["description"].(string)
	list, _ := s["enum"].([]any)
	for _, v := range list {
		slug, ok := strings.CutPrefix(v.(string), "/problems/")
		if !ok || !strings.Contains(text, slug) {
			t.Errorf("%v is not explained", v)
		}
	}
}

func TestOpenAPIIsACopy(t *testing.T) {
	a := api.OpenAPI()
	a[0] = 'X'
	if api.OpenAPI()[0] == 'X' {
		t.Error("a caller can change the contract")
	}
}
