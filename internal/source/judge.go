package source

import "fmt"

// Verdict is what is done with an answer.
type Verdict uint8

// The verdicts.
const (
	Take   Verdict = iota // put the set in force
	Same                  // it is the set in force
	Hold                  // too small to be believed: wait for a word, or for equal answers
	Refuse                // it is no list; the set in force stays
)

var verdictNames = [...]string{"taken", "unchanged", "held", "failed"}

// String gives the wire name.
func (v Verdict) String() string { return verdictNames[v] }

// Answer is what a fetch brought, in numbers.
type Answer struct {
	Fault     string // why it is no list at all; "" = it may be one
	Unchanged bool   // the origin says that it is the set in force
	Proxies   int    // different ones
	Rejected  int    // lines or records that gave none
	First     string // why the first of those did not
	Digest    string // equal for equal sets
}

// Held is a set that waits.
type Held struct {
	Digest  string
	Proxies int
	Seen    int // equal answers in a row
}

// Decision is a verdict with its reason, and the set that waits after it.
type Decision struct {
	Verdict Verdict
	Reason  string // "" when the set is in force
	Held    *Held
}

// enough is how many equal answers in a row are believed, however small.
const enough = 3

// Judge says what to do with an answer. inForce is how many proxies the source
// has in the pool now, held what waits from before (nil = nothing). A failure in
// between does not break a row of equal answers: it says nothing about the set.
func Judge(inForce int, held *Held, a *Answer) Decision {
	switch {
	case a.Fault != "":
		return Decision{Refuse, a.Fault, held}
	case a.Unchanged:
		return Decision{Same, "", nil}
	case a.Proxies == 0 && a.Rejected == 0:
		return Decision{Refuse, "the list is empty", held}
	case a.Rejected > a.Proxies:
		return Decision{Refuse, fmt.Sprintf("%d of %d lines are no proxies, so this is hardly a list; the first: %s",
			a.Rejected, a.Rejected+a.Proxies, a.First), held}
	case 2*a.Proxies >= inForce:
		return Decision{Take, "", nil}
	}
	next := Held{a.Digest, a.Proxies, 1}
	if held != nil && held.Digest == a.Digest {
		next.Seen = held.Seen + 1
	}
	if next.Seen >= enough {
		return Decision{Take, "", nil}
	}
	return Decision{Hold, fmt.Sprintf("the list has %d proxies where %d are in force: less than half waits for an accept, or for %d equal answers in a row (now %d)",
		a.Proxies, inForce, enough, next.Seen), &next}
}
