// Package apitest checks requests and answers against the HTTP contract in
// api/openapi.yaml. Tests of the daemon's handlers and of the clients use it, so
// that none of them can drift from what is written there.
package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/hostler-proxy/hostler/api"
)

// Contract is the parsed document.
type Contract struct {
	doc object
	ops []*Operation
}

type object = map[string]any

// Load parses the contract of this repository.
func Load() (*Contract, error) { return Parse(api.OpenAPI()) }

// Parse reads an OpenAPI document as far as the checks need it.
func Parse(text []byte) (*Contract, error) {
	var raw any
	if err := yaml.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("the contract is not YAML: %w", err)
	}
	plain, err := json.Marshal(raw) // one kind of number, and aliases resolved
	if err != nil {
		return nil, fmt.Errorf("the contract is not JSON-like: %w", err)
	}
	c := &Contract{}
	if err := json.Unmarshal(plain, &c.doc); err != nil {
		return nil, err
	}
	return c, c.readOperations()
}

// Doc is the whole document as plain JSON values; it is not to be changed.
func (c *Contract) Doc() map[string]any { return c.doc }

// Resolve follows a reference such as #/components/schemas/Lease.
func (c *Contract) Resolve(ref string) (any, error) {
	rest, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, fmt.Errorf("%q does not point into the document", ref)
	}
	var at any = c.doc
	for part := range strings.SplitSeq(rest, "/") {
		m, _ := at.(object)
		if at, ok = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]; !ok {
			return nil, fmt.Errorf("%q points at nothing", ref)
		}
	}
	return at, nil
}

// deref follows $ref until there is none.
func (c *Contract) deref(v any) object {
	m, _ := v.(object)
	for range 10 {
		ref, ok := m["$ref"].(string)
		if !ok {
			return m
		}
		to, err := c.Resolve(ref)
		if err != nil {
			return object{"not": object{}}
		}
		m, _ = to.(object)
	}
	return m
}

// Operation is one call of the API.
type Operation struct {
	ID     string
	Method string
	Path   string // with its {names}
	Role   string // x-role; "" = nobody asks
	Node   map[string]any

	c      *Contract
	params []object
}

func (c *Contract) readOperations() error {
	paths, _ := c.doc["paths"].(object)
	if len(paths) == 0 {
		return errors.New("the contract has no paths")
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item, _ := paths[path].(object)
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			node, ok := item[method].(object)
			if !ok {
				continue
			}
			o := &Operation{Method: strings.ToUpper(method), Path: path, Node: node, c: c}
			o.ID, _ = node["operationId"].(string)
			o.Role, _ = node["x-role"].(string)
			for _, list := range []any{item["parameters"], node["parameters"]} {
				for _, p := range listOf(list) {
					o.params = append(o.params, c.deref(p))
				}
			}
			c.ops = append(c.ops, o)
		}
	}
	return nil
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

// Operations lists all calls by path and method.
func (c *Contract) Operations() []*Operation { return c.ops }

// Find gives the operation of a request's method and escaped path, nil if there is none.
func (c *Contract) Find(method, escapedPath string) *Operation {
	var found *Operation
	for _, o := range c.ops {
		if o.Method == method && matches(o.Path, escapedPath) && (found == nil || !strings.Contains(o.Path, "{")) {
			found = o
		}
	}
	return found
}

func matches(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if !strings.HasPrefix(want[i], "{") && want[i] != got[i] {
			return false
		}
	}
	return true
}

// Parameters are the operation's parameters, those of its path included.
func (o *Operation) Parameters() []map[string]any { return o.params }

// CheckRequest says what of a request is not as the contract has it.
func (o *Operation) CheckRequest(r *http.Request, body []byte) error {
	faults := append(o.checkPath(r.URL.EscapedPath()), o.checkQuery(r.URL.Query())...)
	return errors.Join(append(faults, o.checkBody(r.Header.Get("Content-Type"), body)...)...)
}

func (o *Operation) checkPath(path string) (faults []error) {
	names, values := strings.Split(o.Path, "/"), strings.Split(path, "/")
	for i, name := range names {
		if !strings.HasPrefix(name, "{") || i >= len(values) {
			continue
		}
		value, err := url.PathUnescape(values[i])
		if err != nil {
			return []error{err}
		}
		name = strings.Trim(name, "{}")
		p := o.param("path", name)
		if p == nil {
			return []error{fmt.Errorf("path: %s is not described", name)}
		}
		faults = append(faults, o.c.Check(p["schema"], value, name)...)
	}
	return faults
}

func (o *Operation) checkQuery(query url.Values) (faults []error) {
	for name, values := range query {
		p := o.param("query", name)
		if p == nil {
			faults = append(faults, fmt.Errorf("query: %s is not a parameter of %s", name, o.ID))
			continue
		}
		for _, text := range values {
			faults = append(faults, o.c.Check(p["schema"], o.c.fromText(p["schema"], text), name)...)
		}
	}
	for _, p := range o.params {
		if p["in"] == "query" && p["required"] == true && !query.Has(fmt.Sprint(p["name"])) {
			faults = append(faults, fmt.Errorf("query: %v is missing", p["name"]))
		}
	}
	return faults
}

func (o *Operation) param(in, name string) object {
	for _, p := range o.params {
		if p["in"] == in && p["name"] == name {
			return p
		}
	}
	return nil
}

// fromText reads a parameter as its schema says.
func (c *Contract) fromText(schema any, text string) any {
	switch c.deref(schema)["type"] {
	case "integer", "number":
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			return x
		}
	case "boolean":
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	}
	return text
}

func (o *Operation) checkBody(contentType string, body []byte) []error {
	wish := o.c.deref(o.Node["requestBody"])
	if wish == nil {
		if len(body) > 0 {
			return []error{fmt.Errorf("body: %s takes none", o.ID)}
		}
		return nil
	}
	content, _ := wish["content"].(object)
	for media, m := range content {
		if media != "application/json" {
			return nil // any content type is taken, and the body is no JSON
		}
		if mediaOf(contentType) != media {
			return []error{fmt.Errorf("body: the content type is %q and not %s", contentType, media)}
		}
		return o.c.checkJSON(m, body)
	}
	return nil
}

func mediaOf(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.TrimSpace(media)
}

func (c *Contract) checkJSON(media any, body []byte) []error {
	m, _ := media.(object)
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return []error{fmt.Errorf("body: %w", err)}
	}
	return c.Check(m["schema"], value, "")
}

// CheckAnswer says what of an answer is not as the contract has it.
func (o *Operation) CheckAnswer(status int, contentType string, body []byte) error {
	answer := o.answer(status)
	if answer == nil {
		return fmt.Errorf("%s: status %d is not described", o.ID, status)
	}
	content, _ := answer["content"].(object)
	if len(content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("%s %d: a body, and none is described", o.ID, status)
		}
		return nil
	}
	media := mediaOf(contentType)
	m, ok := content[media]
	if !ok {
		return fmt.Errorf("%s %d: the content type %q is not described", o.ID, status, contentType)
	}
	if !strings.HasSuffix(media, "json") {
		return nil
	}
	return errors.Join(o.c.checkJSON(m, body)...)
}

// answer is what is described for a status, the default included.
func (o *Operation) answer(status int) object {
	answers, _ := o.Node["responses"].(object)
	if a, ok := answers[strconv.Itoa(status)]; ok {
		return o.c.deref(a)
	}
	if status >= 400 {
		return o.c.deref(answers["default"])
	}
	return nil
}

// Example is the example of the operation's success: status, content type and
// body. The body is nil where the contract has no example.
func (o *Operation) Example() (status int, contentType string, body []byte) {
	answers, _ := o.Node["responses"].(object)
	for _, code := range slices.Sorted(maps.Keys(answers)) {
		if !strings.HasPrefix(code, "2") {
			continue
		}
		status, _ = strconv.Atoi(code)
		content, _ := o.c.deref(answers[code])["content"].(object)
		for media, m := range content {
			return status, media, exampleText(media, m)
		}
	}
	return status, "", nil
}

// RequestExample is the example of the operation's body, nil where there is none.
func (o *Operation) RequestExample() []byte {
	content, _ := o.c.deref(o.Node["requestBody"])["content"].(object)
	for media, m := range content {
		return exampleText(media, m)
	}
	return nil
}

func exampleText(media string, m any) []byte {
	node, _ := m.(object)
	example, ok := node["example"]
	if !ok {
		return nil
	}
	if text, isText := example.(string); isText && !strings.HasSuffix(media, "json") {
		return []byte(text)
	}
	b, err := json.Marshal(example)
	if err != nil {
		return nil
	}
	return b
}
