package pool

import (
	"math/rand/v2"
	"slices"

	"github.com/tidwall/btree"
)

// query is one search for a proxy.
type query struct {
	target   *Target
	classes  []uint16
	sel      *Selector
	oneByOne bool
	k        int
	looks    int             // looks left for labels and exclusions
	cut      bool            // looks ran out
	seen     [NumReasons]int // those that were looked at one by one and did not fit
	seenIn   map[uint16]int  // of these: free ones, by class
	relax    bool            // least_bad: failure slots of pairs do not count
	closed   bool            // something else than the want of proxies ended the query
	why      Reason          // what that was
	again    Time            // when it lets the next one start; 0 = when a lease ends
	own      *hot            // the session's own proxy, when only that one is in question
}

// candidate is a free proxy that the query may have.
type candidate struct {
	key   uint64
	score float32
}

// lookLimit bounds how many proxies a query looks at one by one for labels and
// exclusions. Up to it the answer is exact.
const lookLimit = 512

// pick chooses a proxy: among the K longest rested that are eligible the best
// score, ties at random (docs/policy.md, selection). Being longest rested comes
// first because sites punish an address by its rate: best-score-first burns
// exactly the best proxies.
func (s *State) pick(q *query, rng *rand.Rand) (n uint32, ok bool) {
	ready := [numTiers]int{}
	for _, class := range q.classes {
		for t := range ready {
			ready[t] += s.classes[class].free[t].Len()
		}
	}
	q.k = min(max((ready[tierNormal]+ready[tierGated])/16, 1), 8)
	for _, t := range s.order(ready, rng) {
		if n, ok = s.pickTier(q, t, rng); ok {
			s.spendCredit(t)
			return n, true
		}
	}
	return 0, false
}

// order says which tier is asked first. Probation goes first when its share of
// grants allows, the gated when there are more of them than the gate may skip.
func (s *State) order(ready [numTiers]int, rng *rand.Rand) [numTiers]tier {
	first := [numTiers]tier{tierNormal, tierProbation, tierGated}
	if ready[tierProbation] > 0 && s.credit >= 1 {
		return [numTiers]tier{tierProbation, tierNormal, tierGated}
	}
	normal, gated := ready[tierNormal], ready[tierGated]
	skip := int(s.policy.Gate.MaxShare * float64(normal+gated))
	if excess := gated - skip; excess > 0 && normal > 0 && rng.IntN(normal+excess) < excess {
		return [numTiers]tier{tierGated, tierNormal, tierProbation}
	}
	if ready[tierNormal] == 0 && gated > skip && gated > 0 && ready[tierProbation] > 0 {
		return [numTiers]tier{tierGated, tierProbation, tierNormal}
	}
	return first
}

// spendCredit keeps probation to its share: every grant earns a share of one,
// at most one is kept, and a trial costs one. A share counted by clock windows
// would starve trials in a pool that grants less than ten in a window.
func (s *State) spendCredit(t tier) {
	s.credit = min(1, s.credit+s.policy.Cooldown.ProbationShare)
	if t == tierProbation {
		s.credit = max(0, s.credit-1)
	}
}

// pickTier gathers up to K eligible proxies of one tier over all classes and takes the best.
func (s *State) pickTier(q *query, t tier, rng *rand.Rand) (uint32, bool) {
	s.cand = s.cand[:0]
	for _, class := range q.classes {
		c := s.classes[class]
		if c.group.heldUntil(s.now) > s.now {
			continue
		}
		s.gather(q, class, t)
	}
	if len(s.cand) == 0 {
		return 0, false
	}
	best, ties := s.cand[0], 1
	for _, c := range s.cand[1:] {
		switch {
		case c.score > best.score:
			best, ties = c, 1
		case c.score == best.score:
			if ties++; rng.IntN(ties) == 0 {
				best = c
			}
		}
	}
	return numberOf(best.key), true
}

// gather merges the K longest rested eligible proxies of one class into s.cand,
// which stays sorted by rest.
func (s *State) gather(q *query, class uint16, t tier) {
	var sets *[numTiers]btree.Set[uint64]
	open := false
	if q.relax {
		sets = &s.classes[class].free
	} else {
		sets, open = s.walkable(q.target, class)
	}
	folded := s.classes[class].folded
	sets[t].Scan(func(key uint64) bool {
		full := len(s.cand) >= q.k
		if full && key > s.cand[len(s.cand)-1].key {
			return false
		}
		n := numberOf(key)
		if !open && s.resting(q, class, n) {
			return true
		}
		if (q.oneByOne || folded) && !s.look(q, class, n, folded) {
			return !q.cut
		}
		if full {
			s.cand = s.cand[:len(s.cand)-1]
		}
		s.insertCandidate(candidate{key, s.hot[n].score})
		return len(s.cand) < q.k || len(q.classes) > 1
	})
}

func (s *State) insertCandidate(c candidate) {
	i := len(s.cand)
	for i > 0 && s.cand[i-1].key > c.key {
		i--
	}
	s.cand = slices.Insert(s.cand, i, c)
}

// resting says whether the pair may not start now, and counts the walk over it.
func (s *State) resting(q *query, class uint16, n uint32) bool {
	if s.hot[n].blocked == 0 {
		return false
	}
	pair := q.target.pair(n)
	if pair == nil || pair.rests == restNone { // exact: what fell due was woken before the pick
		return false
	}
	if q.relax && pair.onlyFailure(s.now) {
		return false
	}
	if int(class) < len(q.target.skipped) {
		q.target.skipped[class]++
	}
	return true
}

// onlyFailure says whether nothing but a failure slot holds the pair back.
func (p *Pair) onlyFailure(now Time) bool {
	if p.NextOK > now {
		return false
	}
	for c, end := range p.Charge.Slots {
		if Cause(c) != CauseFailure && end > now {
			return false
		}
	}
	return true
}

// looksAgain forgets what the looks of the pick before had counted.
func (q *query) looksAgain() {
	q.seen, q.seenIn, q.looks, q.cut = [NumReasons]int{}, nil, lookLimit, false
}

// look checks labels and exclusions, within the limit.
func (s *State) look(q *query, class uint16, n uint32, folded bool) bool {
	if q.looks == 0 {
		q.cut = true
		return false
	}
	q.looks--
	reason, ok := q.fits(s.proxies[n], folded)
	if ok {
		return true
	}
	q.seen[reason]++
	if q.seenIn == nil {
		q.seenIn = map[uint16]int{}
	}
	q.seenIn[class]++
	return false
}

// eligible says whether one given proxy may be granted, and if not, why. Sessions ask it.
func (s *State) eligible(q *query, n uint32) (Reason, bool) {
	p, h := s.proxies[n], &s.hot[n]
	if reason, ok := q.fits(p, true); !ok {
		return reason, false
	}
	if !h.free {
		return statusReason(h), false
	}
	if s.classes[h.class].group.heldUntil(s.now) > s.now {
		return ReasonGroupHold, false
	}
	pair := q.target.pair(n)
	if pair == nil {
		return 0, true
	}
	switch pair.restAt(s.now) {
	case restReuse:
		return ReasonReuseInterval, false
	case restFault:
		return ReasonPairCooling, q.relax && pair.onlyFailure(s.now)
	default:
		return 0, true
	}
}

func statusReason(h *hot) Reason {
	switch h.status {
	case StatusProbation:
		return ReasonProbation
	case StatusCooling:
		return ReasonCooling
	case StatusSuspended:
		return ReasonSuspended
	case StatusDraining:
		return ReasonDraining
	case StatusDisabled:
		return ReasonDisabled
	case StatusExpired:
		return ReasonExpired
	default:
		return ReasonLeased
	}
}
