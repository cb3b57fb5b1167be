package proxy

import "errors"

// scanner follows JSON text byte by byte as far as is needed to find where a
// value ends.
type scanner struct {
	open     []byte // the brackets that are open, the innermost last
	inString bool
	escaped  bool
	last     byte // the last byte that is no white space
}

// maxDepth bounds how deep brackets may stand in each other.
const maxDepth = 64

var errBroken = errors.New("not JSON: brackets or quotes do not match")

func (s *scanner) depth() int { return len(s.open) }

// step takes a byte. Its error says that no JSON can begin like this; the byte
// was not taken then.
func (s *scanner) step(c byte) error {
	if s.inString {
		return s.stepString(c)
	}
	switch c {
	case ' ', '\t', '\r', '\n':
		return nil
	case '"':
		s.inString = true
	case '{', '[':
		if k := len(s.open); k == maxDepth || k > 0 && s.open[k-1] == '{' && s.last != ':' {
			return errBroken // in an object a bracket stands behind a colon only
		}
		s.open = append(s.open, c)
	case '}', ']':
		k := len(s.open)
		if k == 0 || s.open[k-1] != c-2 { // { and }, [ and ] are two apart
			return errBroken
		}
		s.open = s.open[:k-1]
	}
	s.last = c
	return nil
}

func (s *scanner) stepString(c byte) error {
	switch {
	case c == '\n':
		return errBroken
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.inString, s.last = false, c
	}
	return nil
}

// through takes a text; without an error it does not end inside a string.
func (s *scanner) through(text string) error {
	for i := range len(text) {
		if err := s.step(text[i]); err != nil {
			return err
		}
	}
	if s.inString {
		return errBroken
	}
	return nil
}
