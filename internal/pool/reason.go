package pool

// Reason is why a proxy was not granted.
type Reason uint8

// The reasons, in the order of the API.
const (
	ReasonLeased Reason = iota
	ReasonCooling
	ReasonPairCooling
	ReasonReuseInterval
	ReasonProbation
	ReasonGated
	ReasonFiltered
	ReasonExcluded
	ReasonTargetPaced
	ReasonGroupHold
	ReasonSuspended
	ReasonDraining
	ReasonDisabled
	ReasonExpired
	ReasonOffline
	ReasonOverloaded
	NumReasons
)

var reasonNames = [...]string{
	"leased", "cooling", "pair_cooling", "reuse_interval", "probation", "gated", "filtered", "excluded",
	"target_paced", "group_hold", "suspended", "draining", "disabled", "expired", "offline", "overloaded",
}

// String gives the wire name.
func (r Reason) String() string { return reasonNames[r] }

// Refusal says why nothing was granted and when that may change.
type Refusal struct {
	// Reasons counts the pool's proxies, each under one reason.
	Reasons [NumReasons]int
	// Exact is false when the look ended before every proxy was seen: then there
	// may be one after all, and it is worth to ask again soon.
	Exact bool
	// NextDue is the next time at which a rest ends that may free a proxy for
	// this caller; 0 = none is known.
	NextDue Time
	// Held says that leases are out whose return would help.
	Held bool
}

// refuse explains why a query found nothing. Its cost does not depend on the pool's size.
func (s *State) refuse(q *query) *Refusal {
	r := &Refusal{Exact: !q.cut, Reasons: q.seen}
	s.totals.Refused++
	inside, free := 0, 0
	for _, n := range q.classes {
		c := s.classes[n]
		inside += c.size()
		free += s.explainClass(q, n, r)
		if c.full > 0 {
			r.Held = true
		}
		if at, ok := s.nextWake(c); ok {
			r.soonest(at)
		}
		if c.group != nil {
			r.soonest(c.group.HoldUntil)
		}
	}
	if q.own != nil {
		r.Held = q.own.used
		r.soonest(q.own.wake)
		inside++
	}
	r.Reasons[ReasonFiltered] += len(s.byID) - inside
	if at, ok := q.target.nextDue(); ok && free > 0 { // the end of a pair's rest frees nothing that is not free itself
		r.soonest(at)
	}
	return r
}

func (r *Refusal) soonest(at Time) {
	if at > 0 && (r.NextDue == 0 || at < r.NextDue) {
		r.NextDue = at
	}
}

// explainClass adds the counts of one class: by state first, then, for those
// that are free, by how their pairs rest. It tells how many are free.
func (s *State) explainClass(q *query, n uint16, r *Refusal) int {
	c := s.classes[n]
	free := 0
	for t := range c.free {
		free += c.free[t].Len()
	}
	r.Reasons[ReasonLeased] += c.full - c.trials
	r.Reasons[ReasonProbation] += c.trials
	r.Reasons[ReasonCooling] += c.count[StatusCooling]
	r.Reasons[ReasonSuspended] += c.count[StatusSuspended]
	r.Reasons[ReasonDraining] += c.count[StatusDraining]
	r.Reasons[ReasonDisabled] += c.count[StatusDisabled]
	r.Reasons[ReasonExpired] += c.count[StatusExpired]
	if c.group != nil && c.group.HoldUntil > s.now {
		r.Reasons[ReasonGroupHold] += free
		return 0
	}
	resting := free - q.seenIn[n]
	reuse := 0
	if int(n) < len(q.target.blocked) {
		reuse = min(resting, q.target.blocked[n][restReuse-1])
	}
	r.Reasons[ReasonReuseInterval] += reuse
	r.Reasons[ReasonPairCooling] += max(0, resting-reuse)
	return free
}
