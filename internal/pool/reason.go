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
	// Stopped says that a group's budget is spent and the operator wants a refusal,
	// not a fallback pool.
	Stopped bool
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
		r.soonest(c.group.heldUntil())
		r.Stopped = r.Stopped || c.group.stops(s.now)
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
	if c.group.heldUntil() > s.now {
		r.Reasons[ReasonGroupHold] += free
		return 0
	}
	resting := free - q.seenIn[n]
	reuse := s.reuseAmong(q.target, n, resting)
	r.Reasons[ReasonReuseInterval] += reuse
	r.Reasons[ReasonPairCooling] += max(0, resting-reuse)
	return free
}

// explainLimit is how many free proxies a refusal looks at one by one to tell
// why their pairs rest; with more of them the target's counts are the answer,
// which may count a proxy that is leased.
const explainLimit = 64

// reuseAmong says how many of the free proxies of a class rest for their reuse interval.
func (s *State) reuseAmong(t *Target, n uint16, resting int) int {
	if int(n) >= len(t.blocked) {
		return 0
	}
	if resting > explainLimit {
		return min(resting, t.blocked[n][restReuse-1])
	}
	reuse := 0
	for tier := range numTiers {
		s.classes[n].free[tier].Scan(func(key uint64) bool {
			if pair := t.pair(numberOf(key)); pair != nil && pair.restAt(s.now) == restReuse {
				reuse++
			}
			return true
		})
	}
	return min(reuse, resting)
}
