// Package rules says what an answer's body, status, headers and redirect mean
// for one target: a wall that came with status 200, a 404 that is a ban, a 403
// that is none. It is pure. Whoever sees bodies (a worker, the intercepting
// gateway) evaluates; the daemon hands the rules out and reads the names of
// those that hit. testdata/golden.json holds every evaluator in every language
// to the same answers; docs/rules.md describes it.
package rules

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Kind is how sure a rule is.
type Kind string

// The kinds. A weak hit needs a second opinion: another proxy that sees the
// same for the same request.
const (
	Decisive Kind = "decisive"
	Weak     Kind = "weak"
)

// Class is what a hit means.
type Class string

// The classes. OK takes what looks like a fault for a good answer.
const (
	None    Class = ""
	OK      Class = "ok"
	Blocked Class = "blocked"
	Suspect Class = "suspect" // of weak rules only
	Rate    Class = "rate"
	Geo     Class = "geo"
)

// Rule is one rule of a target.
type Rule struct {
	Name  string `json:"name"`
	Kind  Kind   `json:"kind,omitempty"`
	Class Class  `json:"class,omitempty"`
	When  When   `json:"when"`
}

// When is what a rule asks of an answer. It hits when every condition holds
// and, if it makes demands, at least one of them is not met: "when the status is
// 200 it must contain the price".
type When struct {
	// Conditions; those that are not set hold.
	Status       []int    `json:"status,omitempty"`        // one of them, 100 to 599
	Header       *Header  `json:"header,omitempty"`        // is there and matches
	RedirectHost string   `json:"redirect_host,omitempty"` // this host or one below it
	Contains     *Pattern `json:"contains,omitempty"`      // within the first 16 KiB
	MaxBytes     int64    `json:"max_bytes,omitempty"`     // the body is no longer
	MaxText      int      `json:"max_text,omitempty"`      // it has no more visible characters, see [VisibleText]

	// Demands.
	MustContain    *Pattern `json:"must_contain,omitempty"`
	MustNotContain *Pattern `json:"must_not_contain,omitempty"`
	MinBytes       int64    `json:"min_bytes,omitempty"` // the body is no shorter
}

// Header is a header that must be there; without a value, whatever it holds.
type Header struct {
	Name  string   `json:"name"`
	Value *Pattern `json:"value,omitempty"`
}

// Pattern is a text to look for, byte by byte; or words, any of which will do,
// ASCII letters in either case; or a regular expression (RE2). In JSON it is a
// string, or an object with the one member words or regexp.
type Pattern struct {
	Text   string
	Words  []string
	Regexp bool
}

// MarshalJSON writes the pattern's form.
func (p Pattern) MarshalJSON() ([]byte, error) {
	switch {
	case p.Regexp:
		return encode(map[string]string{"regexp": p.Text})
	case len(p.Words) > 0:
		return encode(map[string][]string{"words": p.Words})
	default:
		return encode(p.Text)
	}
}

// UnmarshalJSON reads either form.
func (p *Pattern) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		*p = Pattern{}
		return json.Unmarshal(text, &p.Text)
	}
	var form struct {
		Words  []string
		Regexp string
	}
	err := json.Unmarshal(text, &form)
	*p = Pattern{Text: form.Regexp, Words: form.Words, Regexp: form.Regexp != ""}
	return err
}

// Bounds of what one target can have.
const (
	MaxRules   = 64
	MaxPattern = 1024 // bytes of a pattern, of all its words together
	maxWords   = 32
	maxName    = 64
	maxStatus  = 40
	maxHost    = 253
	maxProgram = 250 // instructions of a compiled expression
)

// Error is a fault of a rule: where, such as [2].when.status, and what.
type Error struct{ Path, Text string }

// Error gives both.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Text
	}
	return e.Path + ": " + e.Text
}

// Parse reads a list of rules as JSON. Its error joins all faults, each an *Error.
func Parse(text []byte) ([]Rule, error) {
	v, err := value(text)
	if err != nil {
		return nil, &Error{Text: "is not a JSON list of rules"}
	}
	return FromValue(v)
}

// Format writes rules as JSON on one line, always the same for the same rules.
func Format(list []Rule) string {
	if list == nil {
		list = []Rule{}
	}
	text, err := encode(list)
	if err != nil {
		panic("rules cannot be written: " + err.Error()) // plain data
	}
	return string(text)
}

// faults reads rules and gathers what is wrong.
type faults struct {
	list []error
	dots bool // names can hold dots: the default rules are among them
}

func (f *faults) add(path, format string, args ...any) {
	f.list = append(f.list, &Error{path, fmt.Sprintf(format, args...)})
}

func (f *faults) err() error { return errors.Join(f.list...) }
