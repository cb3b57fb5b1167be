package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/hostler-proxy/hostler/internal/source"
)

// maxFileSources bounds the sources of a file.
const maxFileSources = 1000

// sources reads the section of the sources: each whole, since its settings must
// fit each other.
func (r *fileReader) sources(n ast.Node) {
	if r.file.Sources == nil {
		r.file.Sources = map[string]Settings{}
	}
	if n.Type() == ast.NullType {
		return
	}
	r.each(n, "sources", func(name string, value ast.Node) {
		path := "sources." + name
		if err := source.CheckName(name); err != nil {
			r.fault(value, path, err.Error())
			return
		}
		faults := len(r.errs)
		settings := Settings{}
		r.sourceSettings(value, path+".", "", settings)
		if len(r.errs) > faults {
			return
		}
		if _, err := source.Parse(name, settings); err != nil {
			if field, ok := errors.AsType[*source.FieldError](err); ok {
				path, err = path+"."+field.Path, errors.New(field.Text)
			}
			r.fault(value, path, err.Error())
			return
		}
		r.file.Sources[name] = settings
	})
	if len(r.file.Sources) > maxFileSources {
		r.fault(n, "sources", fmt.Sprintf("are more than %d", maxFileSources))
	}
}

func (r *fileReader) sourceSettings(n ast.Node, at, prefix string, into Settings) {
	r.each(n, strings.TrimSuffix(at+prefix, "."), func(key string, value ast.Node) {
		path := prefix + key
		switch value.(type) {
		case *ast.MappingNode, *ast.MappingValueNode:
			if !source.Known(path + ".") {
				r.fault(value, at+path, "is not a section of a source; docs/configuration.md lists its settings")
				return
			}
			r.sourceSettings(value, at, path+".", into)
			return
		}
		text, ok := scalar(value)
		if _, list := value.(*ast.SequenceNode); !ok || list && path != "params.country" {
			r.fault(value, at+path, "must be a single value")
			return
		}
		if err := source.Check(path, text); err != nil {
			r.fault(value, at+path, err.Error())
			return
		}
		into[path] = text
	})
}

// FormatSources writes sources in the form of the file, each section as one line.
func FormatSources(sources map[string]Settings) string {
	if sources == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("sources:\n")
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		fmt.Fprintf(&b, "  %s:\n", strconv.Quote(name))
		writeTree(&b, tree(sources[name]), 4)
	}
	return b.String()
}

// node is a section of settings, or a value.
type node struct {
	value string
	below map[string]*node
}

// tree puts settings under the sections that their fields have.
func tree(s Settings) *node {
	root := &node{below: map[string]*node{}}
	for path, value := range s {
		at := root
		for _, level := range source.Levels(path) {
			next := at.below[level]
			if next == nil {
				next = &node{below: map[string]*node{}}
				at.below[level] = next
			}
			at = next
		}
		at.value = value
	}
	return root
}

func writeTree(b *strings.Builder, n *node, indent int) {
	for _, name := range slices.Sorted(maps.Keys(n.below)) {
		child := n.below[name]
		key := strings.Repeat(" ", indent) + quoted(name)
		if len(child.below) > 0 {
			fmt.Fprintf(b, "%s:\n", key)
			writeTree(b, child, indent+2)
			continue
		}
		fmt.Fprintf(b, "%s: %s\n", key, quoted(child.value))
	}
}

// quoted leaves simple words as they are: YAML reads them as what they say.
func quoted(s string) string {
	first := s != "" && strings.Trim(s[:1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/") == ""
	if first && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") == "" &&
		!slices.Contains([]string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(s)) {
		return s
	}
	return yamlQuote(s)
}

// yamlQuote writes a text between double quotes.
func yamlQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\t", `\t`).Replace(s) + `"`
}
