package proxy

import (
	"encoding/json"
	"errors"
	"strings"
)

// jsonlReader reads one JSON value a line: an object with the fields of a
// proxy, or a string that holds a line.
type jsonlReader struct {
	list *List
	more entries
}

func (r *jsonlReader) next() (Entry, error) {
	if e, ok := r.more.take(); ok {
		return e, nil
	}
	for {
		text, err := r.list.text.next()
		e := Entry{Line: r.list.text.n}
		if err != nil {
			return e, err
		}
		if text = strings.TrimSpace(text); text == "" || text[0] == '#' {
			continue
		}
		return r.more.value(r.list, e.Line, []byte(text), r.list.opts.Scheme)
	}
}

// value reads a JSON object or string.
func (m *entries) value(l *List, line int, raw []byte, scheme Scheme) (Entry, error) {
	switch raw[0] {
	case '{':
		return m.record(l, line, raw, scheme)
	case '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return Entry{Line: line}, errNotJSON
		}
		if strings.ContainsFunc(text, control) {
			return Entry{Line: line}, errors.New("the text holds control characters or is not UTF-8")
		}
		return l.parseLine(line, strings.TrimSpace(text), scheme)
	}
	return Entry{Line: line}, errors.New("neither a JSON object nor a string")
}

var errNotJSON = errors.New("not JSON")
