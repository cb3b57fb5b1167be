package proxy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

// jsonReader reads JSON that is not one value a line: an array of proxies, an
// object that holds such an array, or objects one behind the other. It walks
// the text and holds one proxy's record at a time.
type jsonReader struct {
	list   *List
	source jsonSource
	open   []container
	more   entries
	tail   *lineReader // reads on where the JSON ends and something else begins
}

// container is an array or object that the reader is inside of.
type container struct {
	array  bool
	line   int
	scheme Scheme // of a list that stands under a scheme's name
	// What an object holds beside lists: it may be a proxy itself.
	raw    []byte
	aside  []string // lists under names that are not known
	lists  int
	nested bool // in a list's place: objects in it are proxies
}

// listName says whether a key names a list of proxies.
func listName(name string) bool {
	switch plainName(name) {
	case "proxies", "proxy", "proxylist", "data", "list", "items", "results", "result", "records", "rows", "servers", "ips", "response",
		"content", "payload", "entries":
		return true
	}
	return false
}

func (r *jsonReader) next() (Entry, error) {
	for {
		if e, ok := r.more.take(); ok {
			return e, nil
		}
		if r.tail != nil {
			return r.tail.next()
		}
		e, found, err := r.step()
		if found || err != nil {
			return e, err
		}
	}
}

// step goes on by one value; found says that it was a proxy.
func (r *jsonReader) step() (e Entry, found bool, err error) {
	c, err := r.source.peek()
	e.Line = r.source.line
	if err != nil {
		return e, false, r.end(err)
	}
	if len(r.open) == 0 {
		return r.root(c)
	}
	in := &r.open[len(r.open)-1]
	if in.array {
		return r.item(c, in)
	}
	return r.member(c, in)
}

// end is the end of the text.
func (r *jsonReader) end(err error) error {
	if !errors.Is(err, io.EOF) {
		r.list.text.err = err
		return io.EOF
	}
	if len(r.open) > 0 {
		r.open = nil
		return errCut
	}
	return err
}

func (r *jsonReader) root(c byte) (Entry, bool, error) {
	switch c {
	case '{':
		r.push(container{})
		return Entry{}, false, nil
	case '[':
		r.push(container{array: true})
		return Entry{}, false, nil
	case '"':
		return r.value("")
	case '#':
		r.source.comment()
		return Entry{}, false, nil
	}
	// What follows is read line by line.
	r.list.text.n = r.source.line - 1
	r.tail = &lineReader{list: r.list}
	return Entry{}, false, nil
}

func (r *jsonReader) push(c container) {
	c.line = r.source.line
	_, _ = r.source.in.ReadByte() // the bracket that was seen
	r.open = append(r.open, c)
}

func (r *jsonReader) pop() container {
	c := r.open[len(r.open)-1]
	_, _ = r.source.in.ReadByte()
	r.open = r.open[:len(r.open)-1]
	return c
}

// item goes on in an array.
func (r *jsonReader) item(c byte, in *container) (Entry, bool, error) {
	switch c {
	case ']':
		r.pop()
		return Entry{}, false, nil
	case '}', ':':
		_, _ = r.source.in.ReadByte() // what is left of a value that was refused
		return Entry{}, false, nil
	}
	return r.value(in.scheme)
}

// value takes a whole value and reads it as a proxy.
func (r *jsonReader) value(scheme Scheme) (Entry, bool, error) {
	line := r.source.line
	raw, err := r.source.value()
	if err != nil {
		return Entry{Line: line}, false, r.broken(err)
	}
	e, err := r.more.value(r.list, line, raw, r.schemeOr(scheme))
	return e, err == nil, err
}

// schemeOr is the scheme that a list's name gives, or that of the options.
func (r *jsonReader) schemeOr(scheme Scheme) Scheme {
	if scheme == "" {
		return r.list.opts.Scheme
	}
	return scheme
}

// broken makes sure that the end of the stream is not taken for a bad value.
func (r *jsonReader) broken(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		r.open = nil
		return errCut
	case errors.Is(err, errBroken), errors.Is(err, errLongValue), errors.Is(err, errNotText):
		return err
	}
	return r.end(err)
}

// member goes on in an object.
func (r *jsonReader) member(c byte, in *container) (Entry, bool, error) {
	line := r.source.line
	switch c {
	case '}':
		return r.finish(r.pop())
	case '"':
	default:
		r.source.skip()
		return Entry{Line: line}, false, errNotJSON
	}
	raw, err := r.source.value()
	if err != nil {
		return Entry{Line: line}, false, r.broken(err)
	}
	name := bytes.Clone(raw) // the value takes its place
	if c, err = r.source.peek(); err != nil || c != ':' {
		return Entry{Line: line}, false, errNotJSON
	}
	_, _ = r.source.in.ReadByte()
	if c, err = r.source.peek(); err != nil {
		return Entry{Line: line}, false, r.end(err)
	}
	return r.memberValue(name, c, in)
}

// memberValue goes into a list or takes what is none.
func (r *jsonReader) memberValue(quotedName []byte, c byte, in *container) (Entry, bool, error) {
	name := unquote(quotedName)
	scheme, errScheme := ParseScheme(name)
	if errScheme != nil {
		scheme = in.scheme
	}
	switch {
	case c == '[' && (errScheme == nil || listName(name)):
		in.lists++
		r.push(container{array: true, scheme: scheme})
		return Entry{}, false, nil
	case c == '{' && listName(name):
		in.lists++
		r.push(container{nested: true, scheme: scheme})
		return Entry{}, false, nil
	}
	line := r.source.line
	raw, err := r.source.value()
	if err != nil {
		return Entry{Line: line}, false, r.broken(err)
	}
	if c == '{' && in.nested && hasAddress(raw) {
		in.lists++
		e, err := r.more.value(r.list, line, raw, r.schemeOr(in.scheme))
		return e, err == nil, err
	}
	if c == '[' {
		in.aside = append(in.aside, name)
	}
	in.keep(quotedName, raw)
	return Entry{}, false, nil
}

// keep remembers a member, in case the object is a proxy itself.
func (c *container) keep(name, value []byte) {
	if len(c.raw)+len(name)+len(value) > maxLine {
		return
	}
	if len(c.raw) > 0 {
		c.raw = append(c.raw, ',')
	}
	c.raw = append(append(append(c.raw, name...), ':'), value...)
}

// finish reads an object that ended as a proxy, unless it held lists.
func (r *jsonReader) finish(c container) (Entry, bool, error) {
	if c.lists > 0 {
		for _, name := range c.aside {
			r.list.note(c.line, "list under a name that is not known,", name)
		}
		return Entry{}, false, nil
	}
	raw := append(append([]byte{'{'}, c.raw...), '}')
	if !hasAddress(raw) {
		if c.nested && len(c.raw) == 0 {
			return Entry{}, false, nil // an empty list of proxies by name
		}
		return Entry{Line: c.line}, false, errNoList
	}
	e, err := r.more.record(r.list, c.line, raw, r.schemeOr(c.scheme))
	return e, err == nil, err
}

var errCut = errors.New("the JSON ends in the middle")

var errNoList = errors.New("neither a proxy nor a list of proxies: known names of lists are proxies, data, items, list, records, result, results, rows and the schemes")

// hasAddress says whether an object has a key for a proxy's address.
func hasAddress(raw []byte) bool {
	if !json.Valid(raw) {
		return false
	}
	found := false
	_ = members(raw, func(name string, value []byte) error {
		f := fieldOf(name)
		found = found || value[0] == '"' && (f == fieldHost || f == fieldProxy)
		return nil
	})
	return found
}

// jsonSource gives JSON text value by value.
type jsonSource struct {
	in   *bufio.Reader
	line int
	buf  []byte
}

var errLongValue = errors.New("the JSON value is longer than 64 KiB")

// peek gives the next byte that is neither white space nor a comma.
func (s *jsonSource) peek() (byte, error) {
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case '\n':
			s.line++
		case ' ', '\t', '\r', ',':
		default:
			return c, s.in.UnreadByte()
		}
	}
}

// comment passes over a line.
func (s *jsonSource) comment() {
	for {
		if c, err := s.in.ReadByte(); err != nil || c == '\n' {
			s.line++
			return // an error comes again
		}
	}
}

// skip passes over what cannot be read: up to where a value can begin, at least
// one byte.
func (s *jsonSource) skip() {
	_, _ = s.in.ReadByte()
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return
		}
		if c == '\n' || c == '"' || c == '}' || c == '{' {
			_ = s.in.UnreadByte()
			return
		}
	}
}

// value takes one value. The bytes are good until the next call.
func (s *jsonSource) value() ([]byte, error) {
	s.buf = s.buf[:0]
	var scan scanner
	size := 0
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) && size > 0 && scan.depth() == 0 && !scan.inString {
				return s.taken(size)
			}
			return nil, err
		}
		scalar := scan.depth() == 0 && !scan.inString && scan.last != 0
		if scalar && (c == ',' || c == ']' || c == '}' || c == ' ' || c == '\n' || c == '\r' || c == '\t') {
			_ = s.in.UnreadByte()
			return s.taken(size)
		}
		if err := scan.step(c); err != nil {
			return nil, s.giveUp(c, size)
		}
		if c == '\n' {
			s.line++
		}
		if size++; size <= maxLine {
			s.buf = append(s.buf, c)
		}
		if scan.depth() == 0 && !scan.inString && (c == '}' || c == ']' || c == '"') {
			return s.taken(size)
		}
	}
}

// giveUp leaves the byte that breaks a value to the next one, unless nothing
// else was taken.
func (s *jsonSource) giveUp(c byte, size int) error {
	if size > 0 || c == '\n' {
		_ = s.in.UnreadByte()
	}
	return errBroken
}

func (s *jsonSource) taken(size int) ([]byte, error) {
	switch {
	case size > maxLine:
		return nil, errLongValue
	case !utf8.Valid(s.buf):
		return nil, errNotText
	}
	return s.buf, nil
}
