package pool

import (
	"slices"
	"strings"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// Selector narrows an acquire. The zero value takes any proxy. Region, Scheme
// and Group are matched exactly at any pool size; labels and exclusions are
// looked at one by one, see [lookLimit].
type Selector struct {
	Region, Scheme, Group string
	Labels                map[string]string
	Exclude               []proxy.ID
}

// Class is the part of the selector that waiters queue by: who has the same
// class competes for the same proxies.
func (s *Selector) Class() string {
	var b strings.Builder
	for _, part := range []string{s.Region, s.Scheme, s.Group, string(MakeLabels(s.Labels))} {
		b.WriteString(part)
		b.WriteByte(0)
	}
	return b.String()
}

// oneByOne says whether proxies must be looked at beyond their class.
func (s *Selector) oneByOne() bool { return len(s.Labels) > 0 || len(s.Exclude) > 0 }

// maxClasses bounds the selector classes of a pool. Proxies of further
// combinations share the last one, and are looked at one by one.
const maxClasses = 64

// classKey is region, scheme and group; in a selector "" means any.
type classKey struct{ region, scheme, group string }

func (k classKey) matches(want classKey) bool {
	return (want.region == "" || want.region == k.region) &&
		(want.scheme == "" || want.scheme == k.scheme) &&
		(want.group == "" || want.group == k.group)
}

func keyOf(spec *Spec) classKey {
	return classKey{spec.Region, string(spec.Scheme), spec.Group}
}

// classFor gives the class of a proxy, made on first use.
func (s *State) classFor(spec *Spec) uint16 {
	key := keyOf(spec)
	if n, ok := s.classOf[key]; ok {
		return n
	}
	n := uint16(len(s.classes))
	if len(s.classes) == maxClasses {
		n-- // the last class holds all further combinations
		s.classes[n].folded = true
		s.classes[n].group = nil
	} else {
		s.classes = append(s.classes, &selClass{key: key, group: s.group(spec.Group)})
	}
	s.classOf[key] = n
	clear(s.matching)
	return n
}

// matchingClasses lists the classes that can hold what a selector wants.
func (s *State) matchingClasses(sel *Selector) []uint16 {
	want := classKey{sel.Region, sel.Scheme, sel.Group}
	if want == (classKey{}) && len(s.all) == len(s.classes) {
		return s.all
	}
	if list, ok := s.matching[want]; ok {
		return list
	}
	list := []uint16{}
	for n, c := range s.classes {
		if c.folded || c.key.matches(want) {
			list = append(list, uint16(n))
		}
	}
	s.matching[want] = list
	if want == (classKey{}) {
		s.all = list
	}
	return list
}

// fits says whether a proxy of a matching class is what the selector wants.
func (q *query) fits(p *Proxy, folded bool) (reason Reason, ok bool) {
	if folded && !keyOf(p.Spec).matches(classKey{q.sel.Region, q.sel.Scheme, q.sel.Group}) {
		return ReasonFiltered, false
	}
	for k, v := range q.sel.Labels {
		if !p.Spec.Labels.Has(k, v) {
			return ReasonFiltered, false
		}
	}
	if slices.Contains(q.sel.Exclude, p.ID) {
		return ReasonExcluded, false
	}
	return 0, true
}
