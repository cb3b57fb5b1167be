package proxy

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// lineReader reads one proxy a line. In any form, lines of several forms and
// JSON objects may stand in one list.
type lineReader struct {
	list *List
	as   form
	more entries
}

func (r *lineReader) next() (Entry, error) {
	if e, ok := r.more.take(); ok {
		return e, nil
	}
	for {
		text, err := r.list.text.next()
		e := Entry{Line: r.list.text.n}
		if err != nil {
			return e, err
		}
		text = strings.TrimSpace(text)
		switch {
		case text == "" || text[0] == '#':
			continue
		case r.as != formAny:
			e.Proxy, err = parse(text, r.list.opts.Scheme, r.as)
			return e, err
		case text[0] == '{':
			raw, err := wholeRecord(&r.list.text, text)
			if err != nil {
				return e, err
			}
			return r.more.record(r.list, e.Line, raw, r.list.opts.Scheme)
		case text[0] == '"' && json.Valid([]byte(text)):
			return r.more.value(r.list, e.Line, []byte(text), r.list.opts.Scheme)
		}
		if text = stripComment(text); text != "" {
			return r.list.parseLine(e.Line, text, r.list.opts.Scheme)
		}
	}
}

// stripComment cuts a comment: # behind white space. A # inside a word can be
// part of a password.
func stripComment(s string) string {
	for i := 1; i < len(s); i++ {
		if s[i] == '#' && (s[i-1] == ' ' || s[i-1] == '\t') {
			return strings.TrimSpace(s[:i])
		}
	}
	return s
}

// maxRecordLines bounds the lines that one JSON object or CSV row goes on over.
const maxRecordLines = 200

// wholeRecord adds the lines that a JSON object goes on in. A line that cannot
// stand in the object ends it: the object is broken, and the line is read anew.
func wholeRecord(text *lines, first string) ([]byte, error) {
	raw := append(make([]byte, 0, len(first)), first...)
	var s scanner
	err := s.through(first)
	for n := 1; err == nil && s.depth() > 0; n++ {
		line, err := text.next()
		if errors.Is(err, io.EOF) {
			return nil, errOpenObject
		}
		if err != nil {
			return nil, err
		}
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if strings.IndexByte(`"}]`, line[0]) < 0 || len(raw)+len(line) > maxLine || n > maxRecordLines || s.through("\n"+line) != nil {
			text.unread([]string{line})
			return nil, errOpenObject
		}
		raw = append(append(raw, '\n'), line...)
	}
	return raw, err
}

var errOpenObject = errors.New("the JSON object does not end")

// entries are proxies that one record gave beyond the first.
type entries []Entry

func (m *entries) take() (Entry, bool) {
	if len(*m) == 0 {
		return Entry{}, false
	}
	e := (*m)[0]
	*m = (*m)[1:]
	return e, true
}

// record reads a JSON object; proxies that it lists under further schemes come
// with the next takes.
func (m *entries) record(l *List, line int, raw []byte, scheme Scheme) (Entry, error) {
	e, more, err := l.readObject(line, raw, scheme)
	for _, scheme := range more {
		also := e
		also.Proxy.Scheme = scheme
		*m = append(*m, also)
	}
	return e, err
}

// Separators that can end a proxy; what stands behind is something else.
const separators = " \t|,;"

var (
	errBehindPass = errors.New("ambiguous: what stands behind white space can be part of the password; cut it, or say format=hostport, or put the password into a URL")
	errCells      = errors.New("cells without names: give the list a header such as host,port, or name the columns with --columns, or columns= in the API")
	errPipes      = errors.New("what stands behind | is not country, region and city: write credentials as host:port:user:pass")
	errSeveral    = errors.New("there is more than one proxy on the line: one a line; chains of proxies are not taken")
	errSpaces     = errors.New("not a proxy: it holds white space (in credentials, write a URL with %20)")
)

// parseLine reads a line in the form that it has, and what public lists write
// behind the proxy.
func (l *List) parseLine(line int, text string, scheme Scheme) (Entry, error) {
	e := Entry{Line: line}
	var err error
	cut := strings.IndexAny(text, separators)
	if cut < 0 {
		e.Proxy, err = parse(text, scheme, formAny)
		return e, err
	}
	head, tail := strings.Clone(text[:cut]), text[cut:] // the tail must not stay in memory with the proxy
	whole, errWhole := parse(text, scheme, formAny)
	p, errHead := parse(head, scheme, formAny)
	spaces := strings.ContainsAny(text, " \t")
	switch {
	case errWhole == nil && errHead == nil && strings.IndexByte(tail, '@') >= 0:
		return e, errSeveral
	case errWhole == nil && errHead == nil && spaces:
		return e, errBehindPass
	case errWhole == nil && strings.Count(text, "://") < 2 && (!spaces || strings.Contains(head, "://")):
		e.Proxy = whole // the separator is part of the credentials
		return e, nil
	case errHead != nil && (tail[0] == ',' || tail[0] == ';'):
		return e, errCells
	case errHead != nil && spaces && (errWhole == nil || strings.IndexByte(head, ':') < 0):
		return e, errSpaces
	case errHead != nil:
		return e, errHead
	}
	e.Proxy = p
	return e, l.readTail(&e, tail)
}

// readTail reads what stands behind a proxy.
func (l *List) readTail(e *Entry, tail string) error {
	sep, rest := tail[0], strings.TrimSpace(tail[1:])
	word := rest
	if end := strings.IndexAny(rest, separators); end >= 0 {
		word = rest[:end]
	}
	if p, err := parse(word, SchemeHTTP, formAny); err == nil && strings.ContainsAny(p.Host, ".:") {
		return errSeveral
	}
	switch sep {
	case ',', ';':
		return errCells
	case '|':
		return e.readPlace(rest)
	}
	if code := word; len(code) >= 2 && upper(code[0]) && upper(code[1]) && (len(code) == 2 || code[2] == '-') {
		e.Region = strings.Clone(code[:2])
	}
	l.note(e.Line, "text behind a proxy, such as flags,", "")
	return nil
}

// readPlace reads country|region|city, or a country's code alone.
func (e *Entry) readPlace(text string) error {
	country, more, _ := strings.Cut(text, "|")
	country = strings.TrimSpace(country)
	code := more == "" && len(country) == 2 && upper(country[0]) && upper(country[1])
	if !code && strings.Count(more, "|") != 1 {
		return errPipes
	}
	if country != "" && country != "?" && country != "-" {
		e.Region = strings.Clone(country)
	}
	return e.checkTexts()
}

func upper(c byte) bool { return c >= 'A' && c <= 'Z' }

// ReadEntry reads one line of a list, or one JSON record.
func ReadEntry(text string, defaultScheme Scheme) (Entry, error) {
	l := List{noted: map[string]bool{}}
	if text = strings.TrimSpace(text); text == "" {
		return Entry{}, errNoPort
	}
	if text[0] == '{' {
		e, _, err := l.readObject(0, []byte(text), defaultScheme)
		return e, err
	}
	return l.parseLine(0, text, defaultScheme)
}
