package rules

import "slices"

// Book holds the rules of a pool's targets.
type Book struct {
	own      map[string]*Set // targets with rules or a switch of their own
	all      *Set            // of every other target
	defaults bool
	switched map[string]bool // targets with a switch of their own
}

// Own is what a target has of its own.
type Own struct {
	Rules []Rule
	// Defaults says whether the default rules hold here too; nil = as in the pool.
	Defaults *bool
}

// NewBook makes the book of a pool whose rules were checked. A target's own rules
// come before the default ones, so that they can overrule them.
func NewBook(defaults bool, targets map[string]Own) *Book {
	b := &Book{own: map[string]*Set{}, defaults: defaults, switched: map[string]bool{}}
	if defaults {
		b.all = NewSet(Defaults())
	}
	for name, own := range targets {
		with := defaults
		if own.Defaults != nil {
			with = *own.Defaults
			b.switched[name] = with
		}
		list := slices.Clip(own.Rules)
		if with {
			list = append(list, Defaults()...)
		}
		b.own[name] = NewSet(list)
	}
	return b
}

// For gives the rules of a target; nil = none.
func (b *Book) For(target string) *Set {
	if s, ok := b.own[target]; ok {
		return s
	}
	return b.all
}

// Defaults says whether the default rules hold for a target, and with them the
// statistics.
func (b *Book) Defaults(target string) bool {
	if on, ok := b.switched[target]; ok {
		return on
	}
	return b.defaults
}
