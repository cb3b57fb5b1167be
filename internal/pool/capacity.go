package pool

import "time"

// NumExits is how many kinds of exits there are.
const NumExits = int(ExitTemplate) + 1

// SupplyView is what a pool has for one target now. Making it costs as much as
// there are selector classes, not proxies.
type SupplyView struct {
	Proxies int // in the pool
	// Usable counts proxies that are new, active or in probation, and whose group
	// is not held: those that serve, now or after the lease that they are in.
	Usable int
	// Faulty counts pairs that rest for a fault on the target; they may be of
	// proxies that are not usable.
	Faulty int
	Live   int // leases
	Reuse  time.Duration
	// Limit is the most requests at once on the target, and Step the least time
	// between two starts; 0 = no bound.
	Limit int
	Step  time.Duration
	// Free says that a proxy can be granted for the target now, as far as counts can tell;
	// NextDue is when the next rest ends that may free one; 0 = none is known.
	Free    bool
	NextDue Time
}

// Supply tells what the pool has for a target.
func (s *State) Supply(now Time, target string) SupplyView {
	s.tick(now)
	v := SupplyView{Proxies: len(s.byID), Live: s.leases.live, Reuse: s.policy.Reuse(target)}
	v.Limit, v.Step = s.bearing(target)
	free, resting := 0, 0
	for _, c := range s.classes {
		if at, ok := s.nextWake(c); ok {
			v.soonest(at)
		}
		if g := c.group; g != nil && max(g.HoldUntil, g.BudgetUntil) > s.now {
			v.soonest(max(g.HoldUntil, g.BudgetUntil))
			continue
		}
		v.Usable += c.count[StatusNew] + c.count[StatusActive] + c.count[StatusProbation]
		for t := range c.free {
			free += c.free[t].Len()
		}
	}
	if n, ok := s.byTarget[target]; ok {
		t := s.targets[n]
		s.wakePairs(t)
		for _, b := range t.blocked {
			v.Faulty += b[restFault-1]
			resting += b[restFault-1] + b[restReuse-1]
		}
		resting = min(resting, s.restingAmong(t, free, resting))
		if at, ok := t.nextDue(); ok && free > 0 {
			v.soonest(at)
		}
	}
	v.Free = free > resting
	return v
}

// bearing is how much the target bears, as far as that is known: its pace, within
// what an operator set. Capacity, advice and estimates of waits all go by it.
func (s *State) bearing(target string) (limit int, step time.Duration) {
	n, ok := s.byTarget[target]
	if !ok {
		if own := s.policy.Targets[target].MaxConcurrency; own != nil {
			limit = *own
		}
		return limit, 0
	}
	t := s.targets[n]
	return s.limitOf(t), time.Duration(s.stepOf(t) * float64(time.Millisecond))
}

// restingAmong says how many of the free proxies rest for a target: exactly when
// they are few, else as many as pairs rest, which may be of proxies that are leased.
func (s *State) restingAmong(t *Target, free, most int) int {
	if free > explainLimit {
		return most
	}
	n := 0
	for _, c := range s.classes {
		for tier := range c.free {
			c.free[tier].Scan(func(key uint64) bool {
				if s.rests(t, numberOf(key)) {
					n++
				}
				return true
			})
		}
	}
	return n
}

func (v *SupplyView) soonest(at Time) {
	if at > 0 && (v.NextDue == 0 || at < v.NextDue) {
		v.NextDue = at
	}
}

// ExitCount counts usable proxies of one kind of exit, and their caps in force.
type ExitCount struct{ Proxies, Slots int }

// CountExits counts a part of the proxies: limit numbers from a number on. It
// tells where to go on; 0 = that was all.
func (s *State) CountExits(now Time, from uint32, limit int) (counts [NumExits]ExitCount, next uint32) {
	s.tick(now)
	end := min(int(from)+limit, len(s.proxies))
	for n := int(from); n < end; n++ {
		p := s.proxies[n]
		if p == nil || s.hot[n].status > StatusActive {
			continue
		}
		c := &counts[p.Spec.Exit]
		c.Proxies++
		c.Slots += p.capIn(s.hot[n].status, &s.policy)
	}
	if end < len(s.proxies) {
		next = uint32(end)
	}
	return counts, next
}
