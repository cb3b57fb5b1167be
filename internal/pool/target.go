package pool

import (
	"container/list"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// Target is the record of a site. Its windows count all outcomes on it; votes
// collect the first attributable outcome of each voter per epoch, for verdicts.
type Target struct {
	Name     string
	InFlight int
	LastUsed Time
	Windows  Windows
	Classes  [NumClasses]int64
	Spend    Spend
	// Votes count the current epoch.
	Votes Votes
	Judge Assessment

	nextStart float64 // no start before, in ms: mechanics of the pace
	pressed   bool    // an acquire had to wait for the pace since its window began
	recent    []chargedPair

	born     int64 // the newest lease when the record was made: older ones are another's
	n        uint32
	pairs    map[uint32]uint32 // proxy number -> place in slab
	slab     []Pair
	free     []uint32       // free places in slab
	due      agenda[uint32] // ends of rests of pairs, by place
	fading   agenda[uint32] // looks at pairs that rest no more, by place
	blocked  [][2]int       // by selector class: pairs that rest for reuse, and for a fault
	openings []*opening
	skipped  []int // by selector class: resting pairs that picks walked over
	dirty    dirty
}

// Votes are what the voters of one epoch saw: a static proxy votes once, by the
// first attributable outcome of its pair; leases of other exits vote each, 50
// at the most (docs/architecture.md).
type Votes struct {
	Epoch      uint32
	OK, Failed int32
	ByLease    int32
}

// Pair is one proxy on one target: where bans and reuse intervals live. It is
// made when something is worth remembering and dropped when nothing is.
type Pair struct {
	Proxy  uint32
	NextOK Time // mechanics: no start before this
	// Charge is what the judge holds against the pair; nil when nothing.
	Charge *Charge
	// Epoch is the last epoch in which the pair voted on the target, and
	// Failed how; kept so that a pair votes once, and a note can turn the vote.
	Epoch  uint32
	Failed bool

	target uint32
	next   pairRef // the same proxy's next pair
	rests  rest    // how it is counted in Target.blocked
	// lookAgain is when a pair that rests no more is looked at for its age.
	lookAgain Time
	dirty     dirty
	used      bool
}

// Charge is the judge's record of a pair.
type Charge struct {
	Version   int64
	Slots     Slots
	Streak    uint8
	Level     uint8
	LevelAt   Time
	RateSteps uint8
	FailFence int64 // see Judgement.FailFence
	RateFence int64 // likewise for rate limits
	Touched   Time
	// Provisional counts ambiguous failures charged here and not yet promoted.
	Provisional uint16
}

// pairRef points at a pair: target number and place in its slab, both plus one.
type pairRef struct{ target, place uint32 }

// rest is why a pair is blocked.
type rest uint8

const (
	restNone rest = iota
	restReuse
	restFault
)

// chargedPair is a pair whose rest may be void if its target turns out to be out.
type chargedPair struct {
	proxy uint32
	at    Time
}

// Pressed says whether an acquire had to wait for the pace since its window began.
func (t *Target) Pressed() bool { return t.pressed }

// blockedUntil is when the pair may start again.
func (p *Pair) blockedUntil() Time {
	end := p.NextOK
	if p.Charge != nil {
		if slot, _ := p.Charge.Slots.Until(); slot > end {
			end = slot
		}
	}
	return end
}

// restAt is why the pair is blocked now.
func (p *Pair) restAt(now Time) rest {
	if p.Charge != nil {
		if slot, _ := p.Charge.Slots.Until(); slot > now {
			return restFault
		}
	}
	if p.NextOK > now {
		return restReuse
	}
	return restNone
}

// Group is the record of proxies that share an account.
type Group struct {
	Name string
	// HoldUntil keeps the whole group back, after its account ran out of quota.
	HoldUntil Time
	HoldSteps uint8
	// BudgetUntil keeps it back after its budget is spent. It follows from Spend and the policy.
	BudgetUntil Time
	Windows     Windows
	Classes     [NumClasses]int64
	Spend       Spend

	// Circuit is open while a guard holds the group.
	Circuit Circuit

	key      uint32
	recentOK rate
	policy   *GroupPolicy // nil = none
	promoted tally
	dirty    dirty
}

// Worker is the record of a process that leases.
type Worker struct {
	Name, Tenant string
	Concurrency  int
	Leases       int
	LastSeen     Time
	LastOK       Time // newest success, since the daemon's start
	// Quarantined is since when its reports say nothing of proxies; 0 = they do.
	Quarantined Time
	// NoteSeq is the number of the last batch of notes that was taken.
	NoteSeq int64
	// LastLease is the number of the newest lease in Granted: a grant alone does
	// not write the worker's record, its lease is counted again after a restart.
	LastLease                                       int64
	Granted, Reported, Released, Expired, Recovered int64
	Windows                                         Windows

	n     uint32
	dirty dirty
}

// count counts a lease, once.
func (w *Worker) count(l *Lease) {
	if l.N > w.LastLease {
		w.Granted++
		w.LastLease = l.N
	}
}

// Session binds a caller's key to one proxy, or to one child of a template.
type Session struct {
	Key      string
	Proxy    uint32
	ProxyID  proxy.ID
	Child    string // the session id put into a template
	LastUsed Time
	Leases   int
	// Sent says that an operator sent it on: its next lease gets another proxy.
	Sent bool

	gone  bool // the proxy or child is not to be used again
	line  *list.List
	place *list.Element
	dirty dirty
}
