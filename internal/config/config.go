// Package config reads the policy file, checks it, and says what a change
// changes. It is pure: bytes in, values out.
//
// A file has one section per pool:
//
//	pools:
//	  default:
//	    ttl: 30s
//	    cooldown:
//	      ladder: [30s, 1m, 2m, 4m, 8m, 10m]
//	    targets:
//	      shop.example: {reuse_interval: 12s}
//
// Whatever a file does not say keeps its default. Unknown names and wrong values
// are refused with their line.
package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// Settings are the values of one pool by their paths, as they were written.
type Settings map[string]string

// File is a parsed policy file.
type File struct {
	Pools map[string]Settings
	// Sources are all sources of proxies; nil = the file says nothing of them.
	Sources map[string]Settings
}

// Error is a fault of a file, with its place.
type Error struct {
	Line int
	Path string
	Text string
}

// Error gives place and fault in one sentence.
func (e *Error) Error() string {
	switch {
	case e.Line > 0 && e.Path != "":
		return fmt.Sprintf("line %d: %s: %s", e.Line, e.Path, e.Text)
	case e.Line > 0:
		return fmt.Sprintf("line %d: %s", e.Line, e.Text)
	default:
		return e.Path + ": " + e.Text
	}
}

// maxFile bounds a policy file.
const maxFile = 1 << 20

// Parse reads a file. Its error joins all faults that were found, each an *Error.
func Parse(text []byte) (*File, error) {
	if len(text) > maxFile {
		return nil, &Error{Path: "file", Text: "larger than 1 MiB"}
	}
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, syntaxError(err)
	}
	f := &File{Pools: map[string]Settings{}}
	r := &fileReader{file: f}
	for _, doc := range tree.Docs {
		if doc.Body != nil {
			r.root(doc.Body)
		}
	}
	return f, errors.Join(r.errs...)
}

// syntaxError keeps the place and the sentence of a YAML error, without the
// library's drawing of the source, which could quote a secret.
func syntaxError(err error) error {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.Token != nil {
		return &Error{Line: syntax.Token.Position.Line, Text: "not valid YAML: " + syntax.Message}
	}
	return &Error{Path: "file", Text: "not valid YAML"}
}

// fileReader walks the tree and gathers settings and faults.
type fileReader struct {
	file *File
	errs []error
}

func (r *fileReader) fault(n ast.Node, path, text string) {
	line := 0
	if n != nil && n.GetToken() != nil {
		line = n.GetToken().Position.Line
	}
	r.errs = append(r.errs, &Error{Line: line, Path: path, Text: text})
}

func (r *fileReader) root(n ast.Node) {
	r.each(n, "file", func(key string, value ast.Node) {
		if key == "sources" {
			r.sources(value)
			return
		}
		if key != "pools" {
			r.fault(value, key, "unknown setting; known here are: pools, sources")
			return
		}
		r.each(value, "pools", func(name string, value ast.Node) {
			if err := CheckName(name); err != nil {
				r.fault(value, "pools."+name, err.Error())
				return
			}
			if r.file.Pools[name] == nil {
				r.file.Pools[name] = Settings{}
			}
			if value.Type() != ast.NullType {
				r.settings(value, name, "")
			}
		})
	})
}

// each calls do for every entry of a mapping.
func (r *fileReader) each(n ast.Node, path string, do func(string, ast.Node)) {
	var entries []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		entries = m.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{m}
	default:
		r.fault(n, path, "must be a mapping of names to values")
		return
	}
	seen := map[string]bool{}
	for _, e := range entries {
		key := keyText(e.Key)
		if seen[key] {
			r.fault(e, path+"."+key, "stands twice")
			continue
		}
		seen[key] = true
		do(key, e.Value)
	}
}

func keyText(n ast.MapKeyNode) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	return strings.Trim(n.String(), `"'`)
}

// settings reads the settings of a pool below a prefix.
func (r *fileReader) settings(n ast.Node, poolName, prefix string) {
	r.each(n, "pools."+poolName, func(key string, value ast.Node) {
		path := prefix + key
		if IsRules(path) {
			if text, ok := r.rules(value, path); ok {
				r.file.Pools[poolName][path] = text
			}
			return
		}
		switch value.(type) {
		case *ast.MappingNode, *ast.MappingValueNode:
			if !known(path + ".") {
				r.fault(value, path, unknownText(path))
				return
			}
			r.settings(value, poolName, path+".")
			return
		}
		text, ok := scalar(value)
		if !ok {
			r.fault(value, path, "must be a single value or a list of values")
			return
		}
		if err := Check(path, text); err != nil {
			r.fault(value, path, err.Error())
			return
		}
		r.file.Pools[poolName][path] = text
	})
}

// scalar gives the text of a value, or of a list of values.
func scalar(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return v.String(), true
	case *ast.SequenceNode:
		parts := make([]string, len(v.Values))
		for i, item := range v.Values {
			text, ok := scalar(item)
			if !ok {
				return "", false
			}
			parts[i] = text
		}
		return strings.Join(parts, ", "), true
	default:
		return "", false
	}
}

// known says whether any setting begins with a prefix.
func known(prefix string) bool {
	if named(prefix) {
		return true
	}
	return slices.ContainsFunc(Fields(), func(f Field) bool { return strings.HasPrefix(f.Path, prefix) })
}

// CheckName says whether a pool can have a name: it stands in URLs and keys.
func CheckName(name string) error {
	if name == "" || len(name) > 64 {
		return errors.New("a pool's name has 1 to 64 characters")
	}
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_.", c) {
			return errors.New("a pool's name has letters, digits and - _ . only")
		}
	}
	return nil
}

// Check says whether a setting exists and a value fits it.
func Check(path, value string) error {
	p := pool.DefaultPolicy()
	return set(&p, path, value)
}

func set(p *pool.Policy, path, value string) error {
	if f, name, ok := namedField(path); ok {
		return f.set(p, name, value)
	}
	for _, f := range Fields() {
		if f.Path == path {
			return f.set(p, value)
		}
	}
	return errors.New(unknownText(path))
}

// unknownText names the nearest setting: most unknown names are typing errors.
func unknownText(path string) string {
	if named(path) {
		return namedText(path)
	}
	best, distance := "", len(path)/2+1
	for _, f := range Fields() {
		if d := editDistance(path, f.Path); d < distance {
			best, distance = f.Path, d
		}
	}
	if best == "" {
		return "unknown setting; docs/configuration.md lists them"
	}
	return fmt.Sprintf("unknown setting; did you mean %s?", best)
}

// editDistance counts the letters to change, add or drop (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = min(diagonal, row[j], row[j+1]) + 1
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// Apply gives the policy that follows from defaults, a file's settings, and
// edits over them. Settings were checked when they were taken in.
func Apply(file, overrides Settings) (pool.Policy, error) {
	p := pool.DefaultPolicy()
	for _, layer := range []Settings{file, overrides} {
		for _, path := range slices.Sorted(maps.Keys(layer)) {
			if err := set(&p, path, layer[path]); err != nil {
				return p, &Error{Path: path, Text: err.Error()}
			}
		}
	}
	return p, Validate(&p)
}

// maxFallbacks bounds the pools that one acquire may ask.
const maxFallbacks = 8

// Validate checks what no single setting can: that they fit each other.
func Validate(p *pool.Policy) error {
	switch {
	case p.TTL > p.MaxLifetime:
		return &Error{Path: "ttl", Text: fmt.Sprintf("%s is longer than max_lifetime %s", p.TTL, p.MaxLifetime)}
	case p.Cooldown.SuspendFor > p.Cooldown.SuspendMax:
		return &Error{Path: "cooldown.suspend_for", Text: fmt.Sprintf("%s is longer than cooldown.suspend_max %s", p.Cooldown.SuspendFor, p.Cooldown.SuspendMax)}
	case p.Cooldown.RateHold > p.Cooldown.RateHoldMax:
		return &Error{Path: "cooldown.rate_hold", Text: fmt.Sprintf("%s is longer than cooldown.rate_hold_max %s", p.Cooldown.RateHold, p.Cooldown.RateHoldMax)}
	case p.Pacing.Start > p.Pacing.Max:
		return &Error{Path: "pacing.start", Text: fmt.Sprintf("%d is more than pacing.max %d", p.Pacing.Start, p.Pacing.Max)}
	case len(p.FallbackPools) > maxFallbacks:
		return &Error{Path: "fallback_pools", Text: fmt.Sprintf("%d pools are more than %d", len(p.FallbackPools), maxFallbacks)}
	case len(p.Cooldown.Ladder) == 0:
		return &Error{Path: "cooldown.ladder", Text: "has no step"}
	}
	return nil
}

// Change is one setting that differs.
type Change struct{ Path, From, To string }

// Diff lists the settings in which two policies differ, by path.
func Diff(a, b *pool.Policy) []Change { return DiffSettings(Values(a), Values(b)) }

// DiffSettings lists the settings that differ, by path.
func DiffSettings(before, after Settings) []Change {
	var list []Change
	for path, to := range after {
		if from := before[path]; from != to {
			list = append(list, Change{path, from, to})
		}
	}
	for path, from := range before {
		if _, ok := after[path]; !ok {
			list = append(list, Change{path, from, ""})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Path < list[j].Path })
	return list
}

// Values gives all settings of a policy, as they would be written in a file. What
// is no part of the policy comes with [All].
func Values(p *pool.Policy) Settings {
	v := Settings{}
	for _, f := range Fields() {
		v[f.Path] = f.get(p)
	}
	EachNamed(p, func(f NamedField, name, value string) { v[f.Path(name)] = value })
	return v
}
