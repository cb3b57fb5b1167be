package rules

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// matcher looks for one pattern.
type matcher struct {
	text  []byte
	words [][]byte // in lower case
	re    *regexp.Regexp
}

// newMatcher makes the matcher of a pattern that was checked; nil for nil.
func newMatcher(p *Pattern) *matcher {
	switch {
	case p == nil:
		return nil
	case len(p.Words) > 0:
		m := &matcher{}
		for _, w := range p.Words {
			m.words = append(m.words, lower([]byte(w)))
		}
		return m
	case !p.Regexp:
		return &matcher{text: []byte(p.Text)}
	}
	re, err := compile(p.Text)
	if err != nil {
		panic("a rule was not checked: " + err.Error())
	}
	return &matcher{re: re}
}

func (m *matcher) in(b *content) bool {
	switch {
	case m.re != nil:
		return m.re.Match(b.bytes)
	case m.words != nil:
		return slices.ContainsFunc(m.words, func(w []byte) bool { return bytes.Contains(b.folded(), w) })
	default:
		return bytes.Contains(b.bytes, m.text)
	}
}

// content is what is looked at, and once it was asked for, in lower case.
type content struct{ bytes, low []byte }

func (c *content) folded() []byte {
	if c.low == nil {
		c.low = lower(c.bytes)
	}
	return c.low
}

// lower gives a copy with the ASCII letters in lower case.
func lower(b []byte) []byte {
	out := make([]byte, len(b))
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		out[i] = c
	}
	return out
}

// compile takes the expressions that mean the same in Go and in Python (with
// re.ASCII), and that stay cheap: time is linear in text and program.
func compile(text string) (*regexp.Regexp, error) {
	if bad := unportable(text); bad != "" {
		return nil, fmt.Errorf("%s does not mean the same in every language; docs/rules.md says what can be used", bad)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, errors.New("is not a regular expression (RE2): " + reason(err))
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, errors.New("cannot be compiled")
	}
	if len(prog.Inst) > maxProgram {
		return nil, fmt.Errorf("is too large an expression: %d steps, more than %d", len(prog.Inst), maxProgram)
	}
	return regexp.Compile(text)
}

// reason is a syntax error without the package's prefix.
func reason(err error) string {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return e.Code.String()
	}
	return "cannot be read"
}

// unportable names the first part of an expression that other languages read
// otherwise: \Q..\E, \z, \Z, \C, \p, \x{..}, \v, POSIX classes, flags other than
// (?i), (?s), (?m) at the very start, names in another form than (?P<name>, and
// "$", which in Python also stands before a last line end.
func unportable(text string) string {
	class := false
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case text[i] == '\\':
			if bad := unportableEscape(rest); bad != "" {
				return bad
			}
			i++
		case class:
			if strings.HasPrefix(rest, "[:") || strings.HasPrefix(rest, "[") {
				return "[ within a class"
			}
			class = text[i] != ']'
		case text[i] == '[':
			class = true
			if next := strings.TrimPrefix(rest[1:], "^"); strings.HasPrefix(next, "]") {
				return "] at the start of a class"
			}
		case text[i] == '$':
			return "$"
		case strings.HasPrefix(rest, "(?"):
			if bad := unportableGroup(rest, i == 0); bad != "" {
				return bad
			}
		}
	}
	return ""
}

func unportableEscape(rest string) string {
	if len(rest) < 2 {
		return ""
	}
	if strings.IndexByte(`QEzZCpPvGkKXRhHN`, rest[1]) >= 0 || strings.HasPrefix(rest, `\x{`) || rest[1] >= '0' && rest[1] <= '9' {
		return rest[:2]
	}
	return ""
}

func unportableGroup(rest string, first bool) string {
	if strings.HasPrefix(rest, "(?:") || strings.HasPrefix(rest, "(?P<") {
		return ""
	}
	if flags, _, ok := strings.Cut(rest[2:], ")"); ok && first && flags != "" && strings.Trim(flags, "ims") == "" {
		return ""
	}
	return rest[:min(len(rest), 4)]
}
