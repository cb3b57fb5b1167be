package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// readObject reads a JSON object with the fields of a proxy. more are the
// schemes under which the proxy is listed too.
func (l *List) readObject(line int, raw []byte, scheme Scheme) (e Entry, more []Scheme, err error) {
	e.Line = line
	raw = bytes.TrimSuffix(raw, []byte(","))
	if !json.Valid(raw) {
		return e, nil, errNotJSON
	}
	var rec record
	var odd string
	err = members(raw, func(name string, value []byte) error {
		f := fieldOf(name)
		if f == fieldNone || f == fieldAside {
			if s, err := ParseScheme(name); err == nil && s != SchemeHTTP && s != SchemeHTTPS && truthy(value) {
				odd = name
			}
			l.note(line, "key", name)
			return nil
		}
		return rec.setJSON(f, value)
	})
	if err == nil && odd != "" && rec.said[fieldScheme] == "" && rec.said[fieldType] == "" {
		err = errors.New("the key " + quoted(odd) + " says something of the scheme that is not understood: say it with scheme")
	}
	if err != nil {
		return e, nil, err
	}
	e, more, err = rec.entry(scheme)
	e.Line = line
	return e, more, err
}

func truthy(value []byte) bool {
	switch strings.Trim(string(value), `"`) {
	case "", "0", "false", "null", "no", "-":
		return false
	}
	return true
}

// setJSON takes a field's JSON value: null says nothing.
func (r *record) setJSON(f field, value []byte) error {
	switch value[0] {
	case '"':
		return r.set(f, unquote(value))
	case 'n':
		return nil
	case '[', '{':
		switch f {
		case fieldLabels:
			return r.setLabels(value)
		case fieldScheme, fieldType:
			return r.set(f, strings.Join(words(value), ","))
		case fieldCountry, fieldRegion, fieldCode:
			return nil // where a list nests more than a word
		}
		return errors.New("the " + f.String() + " is a list or an object")
	}
	return r.set(f, string(value)) // a number, or true and false
}

func (r *record) setLabels(value []byte) error {
	labels := map[string]string{}
	if value[0] != '{' {
		return errors.New("the labels are not an object of texts")
	}
	err := members(value, func(name string, value []byte) error {
		switch value[0] {
		case '"':
			labels[name] = unquote(value)
		case '{', '[', 'n':
			return errors.New("the labels are not an object of texts")
		default:
			labels[name] = string(value)
		}
		return nil
	})
	if len(labels) > 0 {
		r.labels = labels
	}
	return err
}

// words gives the strings in a JSON list, and those under type in its objects.
func words(value []byte) (list []string) {
	each(value, func(item []byte) {
		switch item[0] {
		case '"':
			list = append(list, unquote(item))
		case '{':
			_ = members(item, func(name string, value []byte) error {
				if value[0] == '"' && (fieldOf(name) == fieldType || fieldOf(name) == fieldScheme) {
					list = append(list, unquote(value))
				}
				return nil
			})
		}
	})
	return list
}

// unquote decodes a valid JSON string.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return strconv.Quote(string(raw)) // cannot be: the text was checked
	}
	return s
}

// members calls do for each member of a valid JSON object.
func members(raw []byte, do func(name string, value []byte) error) error {
	rest := raw[1:]
	for {
		rest = bytes.TrimLeft(rest, " \t\r\n,")
		if rest[0] == '}' {
			return nil
		}
		end := valueEnd(rest)
		name := unquote(rest[:end])
		rest = bytes.TrimLeft(rest[end:], " \t\r\n:")
		end = valueEnd(rest)
		if err := do(name, rest[:end]); err != nil {
			return err
		}
		rest = rest[end:]
	}
}

// each calls do for each value of a valid JSON array; of an object there are none.
func each(raw []byte, do func(value []byte)) {
	if raw[0] != '[' {
		return
	}
	rest := raw[1:]
	for {
		rest = bytes.TrimLeft(rest, " \t\r\n,")
		if rest[0] == ']' {
			return
		}
		end := valueEnd(rest)
		do(rest[:end])
		rest = rest[end:]
	}
}

// valueEnd finds where the value that a valid JSON text begins with ends.
func valueEnd(raw []byte) int {
	if raw[0] != '"' && raw[0] != '{' && raw[0] != '[' {
		if end := bytes.IndexAny(raw, " \t\r\n,}]:"); end >= 0 {
			return end
		}
		return len(raw)
	}
	depth, inString := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
			continue
		case c == '"':
			inString = !inString
		case inString:
			continue
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		default:
			continue
		}
		if depth == 0 && !inString {
			return i + 1
		}
	}
	return len(raw)
}
