package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/rules"
)

// Body rules are settings like all others, but no part of pool.Policy: nothing
// below the keeper reads them. As a setting, a target's rules are one line of
// JSON; in the file they are YAML, and their faults have lines.
const (
	defaultRules = "default_rules"
	kindRules    = "rules"
)

// defaultRulesField is the pool's switch. What it is set to stands in the
// settings, see [RuleSettings].
func defaultRulesField() Field {
	return Field{
		Path: defaultRules, Kind: "switch",
		Doc: "Whether the default body rules hold: marks of the well-known bot walls, weak signs, and the statistics of a target's pages (docs/rules.md).",
		get: func(*pool.Policy) string { return "true" },
		set: func(_ *pool.Policy, v string) error { return checkSwitch(v) },
	}
}

// ruleFields are what each target can have of its own.
func ruleFields() []NamedField {
	none := func(*pool.Policy, string) (string, bool) { return "", false }
	return []NamedField{
		{
			Section: "targets", Setting: "rules", Kind: kindRules,
			Doc: "What the target's answers mean (docs/rules.md). Up to 64 rules.",
			set: func(_ *pool.Policy, _, v string) error { _, err := rules.Parse([]byte(v)); return err },
			get: none,
		},
		{
			Section: "targets", Setting: defaultRules, Kind: "switch",
			Doc: "Whether the default body rules hold for this target; the pool's value if not set.",
			set: func(_ *pool.Policy, _, v string) error { return checkSwitch(v) },
			get: none,
		},
	}
}

func checkSwitch(v string) error {
	if _, err := strconv.ParseBool(v); err != nil {
		return fmt.Errorf("%q is neither true nor false", v)
	}
	return nil
}

// IsRules says whether a setting is a target's rules: JSON, not a value or list.
func IsRules(path string) bool {
	f, _, ok := namedField(path)
	return ok && f.Kind == kindRules
}

// RuleSettings gives the settings of body rules that follow from defaults, a
// file's settings, and edits over them.
func RuleSettings(file, overrides Settings) Settings {
	out := Settings{defaultRules: "true"}
	for _, layer := range []Settings{file, overrides} {
		for path, value := range layer {
			f, _, ok := ruleField(path)
			switch {
			case path == defaultRules, ok && f.Kind != kindRules:
				on, _ := strconv.ParseBool(value) // checked when it was taken in
				out[path] = strconv.FormatBool(on)
			case ok:
				out[path] = value
			}
		}
	}
	return out
}

func ruleField(path string) (f NamedField, target string, ok bool) {
	if f, target, ok = namedField(path); ok {
		ok = f.Setting == "rules" || f.Setting == defaultRules
	}
	return f, target, ok
}

// RuleBook makes the rules of a pool out of the settings that were checked when
// they were taken in.
func RuleBook(file, overrides Settings) (*rules.Book, error) {
	targets := map[string]rules.Own{}
	settings := RuleSettings(file, overrides)
	for path, value := range settings {
		f, target, ok := ruleField(path)
		if !ok {
			continue
		}
		own := targets[target]
		var err error
		if f.Kind == kindRules {
			own.Rules, err = rules.Parse([]byte(value))
		} else {
			own.Defaults = new(value == "true")
		}
		if err != nil {
			return nil, &Error{Path: path, Text: err.Error()}
		}
		targets[target] = own
	}
	return rules.NewBook(settings[defaultRules] == "true", targets), nil
}

// All gives all settings in force: the policy's, and those of body rules.
func All(p *pool.Policy, file, overrides Settings) Settings {
	all := Values(p)
	maps.Copy(all, RuleSettings(file, overrides))
	return all
}

// rules reads a target's rules; every fault gets its line.
func (r *fileReader) rules(n ast.Node, path string) (text string, ok bool) {
	lines := map[string]ast.Node{"": n}
	before := len(r.errs)
	v := r.value(n, path, "", lines)
	if len(r.errs) > before {
		return "", false
	}
	list, err := rules.FromValue(v)
	for _, fault := range split(err) {
		r.fault(nearest(lines, fault.Path), path+fault.Path, fault.Text)
	}
	return rules.Format(list), err == nil
}

// split gives the faults of an error that joins them.
func split(err error) (list []*rules.Error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if fault, ok := errors.AsType[*rules.Error](e); ok {
				list = append(list, fault)
			}
		}
	}
	return list
}

// nearest gives the node at a path, or that of the nearest level above.
func nearest(lines map[string]ast.Node, path string) ast.Node {
	for {
		if n, ok := lines[path]; ok {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

// value turns a node into what JSON would give, and remembers where it stands.
func (r *fileReader) value(n ast.Node, path, at string, lines map[string]ast.Node) any {
	lines[at] = n
	switch v := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		m := map[string]any{}
		r.each(n, path+at, func(key string, value ast.Node) { m[key] = r.value(value, path, at+"."+key, lines) })
		return m
	case *ast.SequenceNode:
		list := make([]any, len(v.Values))
		for i, item := range v.Values {
			list[i] = r.value(item, path, fmt.Sprintf("%s[%d]", at, i), lines)
		}
		return list
	case *ast.StringNode:
		return v.Value
	case *ast.LiteralNode:
		return v.Value.Value
	case *ast.IntegerNode:
		return json.Number(fmt.Sprint(v.Value))
	case *ast.FloatNode:
		return json.Number(v.GetToken().Value)
	case *ast.BoolNode:
		return v.Value
	case *ast.NullNode:
		return nil
	default:
		r.fault(n, path+at, "must be a text, a number, a list or a mapping")
		return nil
	}
}
