package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// encode writes JSON without escapes for HTML: it also stands in YAML files.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// value reads one JSON value; numbers keep their text.
func value(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("more than one value")
	}
	return v, nil
}

// FromValue reads a list of rules out of what JSON or YAML hold: lists, maps,
// strings and json.Number. Its error joins all faults, each an *Error.
func FromValue(v any) ([]Rule, error) {
	var f faults
	return f.rules(v)
}

// maxHanded bounds the rules that a daemon hands out, its default ones among them.
const maxHanded = 1000

// ParseSet reads the rules that a daemon hands out. A rule that a newer daemon
// has and this evaluator does not understand is left out.
func ParseSet(text []byte) (*Set, error) {
	v, err := value(text)
	items, ok := v.([]any)
	if err != nil || !ok || len(items) > maxHanded {
		return nil, &Error{Text: "is not a JSON list of rules"}
	}
	var list []Rule
	names := map[string]bool{}
	for _, item := range items {
		f := faults{dots: true}
		r := f.rule("", item)
		if f.err() == nil && !names[r.Name] {
			list = append(list, r)
			names[r.Name] = true
		}
	}
	return NewSet(list), nil
}

func (f *faults) rules(v any) ([]Rule, error) {
	items, ok := v.([]any)
	if !ok {
		f.add("", "must be a list of rules")
		return nil, f.err()
	}
	if len(items) > MaxRules {
		f.add("", "has %d rules, more than %d", len(items), MaxRules)
		return nil, f.err()
	}
	list := make([]Rule, 0, len(items))
	names := map[string]bool{}
	for i, item := range items {
		path := "[" + strconv.Itoa(i) + "]"
		r := f.rule(path, item)
		if names[r.Name] && r.Name != "" {
			f.add(path+".name", "%q stands twice", r.Name)
		}
		names[r.Name] = true
		list = append(list, r)
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	return list, nil
}

// object calls the reader of each member; others are refused by name.
func (f *faults) object(path string, v any, members map[string]func(string, any)) {
	m, ok := v.(map[string]any)
	if !ok {
		f.add(path, "must be a mapping of names to values")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		read, known := members[name]
		if !known {
			f.add(path+"."+name, "is not known here; there are: %s", strings.Join(slices.Sorted(maps.Keys(members)), ", "))
			continue
		}
		read(path+"."+name, m[name])
	}
}

func (f *faults) rule(path string, v any) (r Rule) {
	f.object(path, v, map[string]func(string, any){
		"name":  func(at string, v any) { r.Name = f.name(at, v) },
		"kind":  func(at string, v any) { r.Kind = Kind(f.word(at, v, string(Decisive), string(Weak))) },
		"class": func(at string, v any) { r.Class = Class(f.word(at, v, "blocked", "suspect", "rate", "geo", "ok")) },
		"when":  func(at string, v any) { r.When = f.when(at, v) },
	})
	if m, ok := v.(map[string]any); ok {
		for _, name := range []string{"name", "when"} {
			if _, there := m[name]; !there {
				f.add(path, "has no %s", name)
			}
		}
	}
	f.complete(path, &r)
	return r
}

// complete fills what follows from the rest: a rule is decisive, and means a
// block, unless it says otherwise.
func (f *faults) complete(path string, r *Rule) {
	switch {
	case r.Kind == "" && r.Class == Suspect:
		r.Kind = Weak
	case r.Kind == "":
		r.Kind = Decisive
	}
	switch {
	case r.Class == None && r.Kind == Weak:
		r.Class = Suspect
	case r.Class == None:
		r.Class = Blocked
	case r.Kind == Weak && r.Class != Suspect:
		f.add(path+".class", "a weak rule can only suspect")
	case r.Kind == Decisive && r.Class == Suspect:
		f.add(path+".class", "a decisive rule cannot suspect; make it weak, or name another class")
	}
}

func (f *faults) when(path string, v any) (w When) {
	f.object(path, v, map[string]func(string, any){
		"status":           func(at string, v any) { w.Status = f.statuses(at, v) },
		"header":           func(at string, v any) { w.Header = f.header(at, v) },
		"redirect_host":    func(at string, v any) { w.RedirectHost = f.host(at, v) },
		"contains":         func(at string, v any) { w.Contains = f.pattern(at, v) },
		"max_bytes":        func(at string, v any) { w.MaxBytes = f.number(at, v, 1, 1<<40) },
		"max_text":         func(at string, v any) { w.MaxText = int(f.number(at, v, 1, 10_000)) },
		"must_contain":     func(at string, v any) { w.MustContain = f.pattern(at, v) },
		"must_not_contain": func(at string, v any) { w.MustNotContain = f.pattern(at, v) },
		"min_bytes":        func(at string, v any) { w.MinBytes = f.number(at, v, 1, 1<<40) },
	})
	if m, ok := v.(map[string]any); ok && len(m) == 0 {
		f.add(path, "is empty: the rule would hit every answer")
	}
	return w
}

func (f *faults) text(path string, v any) string {
	s, ok := v.(string)
	if !ok {
		f.add(path, "must be a text")
	}
	return s
}

func (f *faults) word(path string, v any, known ...string) string {
	s, ok := v.(string)
	if !ok || !slices.Contains(known, s) {
		f.add(path, "must be one of: %s", strings.Join(known, ", "))
		return ""
	}
	return s
}

// name has no dots: those of the default rules have.
func (f *faults) name(path string, v any) string {
	s := f.text(path, v)
	if s == "" || len(s) > maxName || strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && (!f.dots || c != '.')
	}) {
		f.add(path, "must be 1 to %d letters, digits, - and _", maxName)
	}
	return s
}

func (f *faults) number(path string, v any, low, high int64) int64 {
	n, ok := v.(json.Number)
	x, err := strconv.ParseInt(n.String(), 10, 64)
	if !ok || err != nil || x < low || x > high {
		f.add(path, "must be a whole number within %d and %d", low, high)
		return 0
	}
	return x
}

func (f *faults) statuses(path string, v any) []int {
	items, ok := v.([]any)
	if !ok {
		items = []any{v}
	}
	if len(items) == 0 || len(items) > maxStatus {
		f.add(path, "must be 1 to %d statuses", maxStatus)
		return nil
	}
	list := make([]int, len(items))
	for i, item := range items {
		list[i] = int(f.number(path, item, 100, 599))
	}
	return list
}

func (f *faults) header(path string, v any) *Header {
	var h Header
	f.object(path, v, map[string]func(string, any){
		"name":  func(at string, v any) { h.Name = f.headerName(at, v) },
		"value": func(at string, v any) { h.Value = f.pattern(at, v) },
	})
	if h.Name == "" {
		f.add(path, "has no name")
	}
	return &h
}

func (f *faults) headerName(path string, v any) string {
	s := f.text(path, v)
	if s == "" || len(s) > 100 || strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	}) {
		f.add(path, "must be the name of a header")
	}
	return s
}

func (f *faults) host(path string, v any) string {
	s := strings.ToLower(strings.TrimSuffix(f.text(path, v), "."))
	if s == "" || len(s) > maxHost || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c == 0x7f || strings.ContainsRune("/:@?#", c) }) {
		f.add(path, "must be a host, without scheme, port and path")
	}
	return s
}

func (f *faults) pattern(path string, v any) *Pattern {
	var p Pattern
	if text, ok := v.(string); ok {
		p.Text = text
	} else {
		f.object(path, v, map[string]func(string, any){
			"regexp": func(at string, v any) { p.Text, p.Regexp = f.text(at, v), true },
			"words":  func(at string, v any) { p.Words = f.words(at, v) },
		})
	}
	switch {
	case (p.Text == "") == (len(p.Words) == 0):
		f.add(path, "must be a text, {words: [TEXT, ...]} or {regexp: EXPRESSION}")
	case len(p.Text)+len(strings.Join(p.Words, "")) > MaxPattern:
		f.add(path, "is longer than %d bytes", MaxPattern)
	case p.Regexp:
		if _, err := compile(p.Text); err != nil {
			f.add(path, "%v", err)
		}
	}
	return &p
}

func (f *faults) words(path string, v any) []string {
	items, ok := v.([]any)
	if !ok || len(items) == 0 || len(items) > maxWords {
		f.add(path, "must be a list of 1 to %d texts", maxWords)
		return nil
	}
	list := make([]string, len(items))
	for i, item := range items {
		if list[i] = f.text(path, item); list[i] == "" {
			f.add(path, "holds an empty text")
		}
	}
	return list
}
