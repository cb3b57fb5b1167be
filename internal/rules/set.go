package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Set is the rules of one target, ready for use. It is safe for concurrent use.
type Set struct {
	rules  []Rule
	made   []compiled
	byName map[string]int
	etag   string
	text   string
}

// compiled is a rule with its matchers.
type compiled struct {
	header, contains, mustContain, mustNot *matcher
}

// NewSet makes a set of rules that were checked, in their order; nil for none.
func NewSet(list []Rule) *Set {
	if len(list) == 0 {
		return nil
	}
	s := &Set{rules: slices.Clone(list), made: make([]compiled, len(list)), byName: map[string]int{}, text: Format(list)}
	for i := range list {
		w := &list[i].When
		c := compiled{contains: newMatcher(w.Contains), mustContain: newMatcher(w.MustContain), mustNot: newMatcher(w.MustNotContain)}
		if w.Header != nil {
			c.header = newMatcher(w.Header.Value)
		}
		s.made[i] = c
		s.byName[list[i].Name] = i
	}
	sum := sha256.Sum256([]byte(s.text))
	s.etag = hex.EncodeToString(sum[:8])
	return s
}

// Rules lists the rules in their order; they must not be changed.
func (s *Set) Rules() []Rule {
	if s == nil {
		return nil
	}
	return s.rules
}

// ETag names the version of the rules: the same for the same rules, "" for none.
func (s *Set) ETag() string {
	if s == nil {
		return ""
	}
	return s.etag
}

// Result is what the rules say of an answer.
type Result struct {
	// Matched are the names of the rules that hit, in the set's order.
	Matched []string
	// Class is what they mean together; None = nothing.
	Class Class
}

// Decide says what hits mean together: the first decisive rule in the set's order
// counts; without one, any weak hit makes the answer suspect. Names that the set
// does not have are given back. With ofStatus, only rules that name statuses count.
func (s *Set) Decide(matched []string, ofStatus bool) (r Result, unknown []string) {
	var hits []int
	for _, name := range matched {
		i, ok := -1, false
		if s != nil {
			i, ok = s.byName[name]
		}
		if !ok {
			unknown = append(unknown, name)
			continue
		}
		if !ofStatus || len(s.rules[i].When.Status) > 0 {
			hits = append(hits, i)
		}
	}
	slices.Sort(hits)
	return s.decide(slices.Compact(hits)), unknown
}

// decide takes the places of the rules that hit, in order.
func (s *Set) decide(hits []int) Result {
	var r Result
	decided := false
	for _, i := range hits {
		rule := &s.rules[i]
		r.Matched = append(r.Matched, rule.Name)
		switch {
		case decided:
		case rule.Kind == Decisive:
			r.Class, decided = rule.Class, true
		default:
			r.Class = Suspect
		}
	}
	return r
}
