package pool

import (
	"cmp"
	"slices"
	"time"
)

// ProxyView is a copy of a proxy's record with what follows from it now.
type ProxyView struct {
	Proxy
	Status           Status
	Cause            Cause
	Until            Time // end of the rest, order or life that Status speaks of; 0 = none
	Cap              int  // the proxy's own
	CapNow           int  // in force
	Ten, Hour, Today Counts
	Pairs            int
}

// View copies the record of one proxy.
func (s *State) View(now Time, p *Proxy) ProxyView {
	s.tick(now)
	v := ProxyView{Proxy: *p, Status: p.StatusAt(s.now), Cap: p.OwnCap(&s.policy)}
	v.CapNow = p.capIn(v.Status, &s.policy)
	switch v.Status {
	case StatusCooling, StatusSuspended:
		v.Until, v.Cause = p.Judge.Slots.Until()
	case StatusDraining, StatusDisabled:
		v.Until = p.Admin.Until
	case StatusExpired:
		v.Until = p.Spec.ExpiresAt
	case StatusNew, StatusProbation, StatusActive, NumStatuses:
	}
	v.Ten = p.Windows.TenMinutes(s.now)
	v.Hour = p.Windows.Hour(s.now)
	v.Today = p.Windows.Day(s.now, s.calendar.Day)
	return v
}

// Sorts are the orders in which proxies can be listed.
var sorts = map[string]func(a, b *Proxy) int{
	"added":     func(a, b *Proxy) int { return cmp.Compare(a.n, b.n) },
	"score":     func(a, b *Proxy) int { return cmp.Compare(b.Quality.Score, a.Quality.Score) },
	"last_used": func(a, b *Proxy) int { return cmp.Compare(b.Mech.LastStart, a.Mech.LastStart) },
	"in_use":    func(a, b *Proxy) int { return cmp.Compare(b.Mech.InUse, a.Mech.InUse) },
	"streak":    func(a, b *Proxy) int { return cmp.Compare(b.Judge.Streak, a.Judge.Streak) },
	"uses":      func(a, b *Proxy) int { return cmp.Compare(b.Mech.Uses, a.Mech.Uses) },
}

// KnownSort says whether proxies can be listed in an order.
func KnownSort(name string) bool { return name == "" || sorts[name] != nil }

// List copies the records that the filter takes: limit of them from the offset
// on, and whether there are more.
func (s *State) List(now Time, f Filter, sort string, offset, limit int) (views []ProxyView, more bool) {
	s.tick(now)
	var list []*Proxy
	s.eachMatch(&f, func(p *Proxy) { list = append(list, p) })
	if by := sorts[sort]; by != nil {
		slices.SortStableFunc(list, by)
	}
	list = list[min(offset, len(list)):]
	more = len(list) > limit
	for _, p := range list[:min(limit, len(list))] {
		views = append(views, s.View(now, p))
	}
	return views, more
}

// Numbers are the pool's counts: the statuses add up to Proxies; ready, leased
// and full are views that overlap.
type Numbers struct {
	Proxies, Ready, Leased, Full int
	Status                       [NumStatuses]int
	Live                         int  // leases
	Offline                      bool // nobody reaches anything
}

// Counts tells the pool's numbers.
func (s *State) Counts(now Time) Numbers {
	s.tick(now)
	c := Numbers{Proxies: len(s.byID), Live: s.leases.live, Offline: s.offline.Open()}
	for _, class := range s.classes {
		for st, k := range class.count {
			c.Status[st] += k
		}
		c.Leased += class.used
		c.Full += class.full
		if class.group.heldUntil(s.now) > s.now {
			continue
		}
		for t := range class.free {
			c.Ready += class.free[t].Len()
		}
	}
	return c
}

// LeaseView is a live lease with the names it speaks of.
type LeaseView struct {
	Lease  Lease
	Proxy  string
	Target string
	Worker string
}

// Leases copies the live leases, newest first, limit at the most.
func (s *State) Leases(now Time, limit int) []LeaseView {
	s.tick(now)
	views := make([]LeaseView, 0, s.leases.live)
	s.leases.eachLive(func(l *Lease) {
		views = append(views, s.leaseView(l))
	})
	slices.SortFunc(views, func(a, b LeaseView) int {
		return cmp.Or(cmp.Compare(b.Lease.Granted, a.Lease.Granted), cmp.Compare(a.Lease.Fence, b.Lease.Fence))
	})
	return views[:min(limit, len(views))]
}

// Lease copies a live lease.
func (s *State) Lease(key Key) (Lease, bool) {
	if l := s.leases.alive(key); l != nil {
		return *l, true
	}
	return Lease{}, false
}

// Workers copies the workers' records, last seen first.
func (s *State) Workers() []Worker {
	var list []Worker
	for _, w := range s.workers {
		if w != nil {
			list = append(list, *w)
		}
	}
	slices.SortFunc(list, func(a, b Worker) int { return cmp.Or(cmp.Compare(b.LastSeen, a.LastSeen), cmp.Compare(a.Name, b.Name)) })
	return list
}

// TargetView is a copy of a target's record.
type TargetView struct {
	Target
	Reuse   time.Duration
	Resting [2]int
	// Limit is the most requests at once, Step the least time between two starts,
	// and NextStart when the next may come, as the pace has it now.
	Limit     int
	Step      time.Duration
	NextStart Time
}

// Targets copies the targets' records, last used first.
func (s *State) Targets(now Time) []TargetView {
	s.tick(now)
	var list []TargetView
	for _, t := range s.targets {
		if t == nil {
			continue
		}
		s.wakePairs(t)
		v := TargetView{
			Target: *t, Reuse: s.reuseOf(t.n), Limit: s.limitOf(t), Step: time.Duration(s.stepOf(t) * float64(time.Millisecond)),
			NextStart: Time(t.nextStart),
		}
		if v.Votes.Epoch != epochOf(s.now) {
			v.Votes = Votes{}
		}
		for _, b := range t.blocked {
			v.Resting[0] += b[0]
			v.Resting[1] += b[1]
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b TargetView) int {
		return cmp.Or(cmp.Compare(b.LastUsed, a.LastUsed), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// Groups copies the groups' records by name, with the number of their proxies.
func (s *State) Groups() []GroupView {
	size := map[string]int{}
	for _, p := range s.proxies {
		if p != nil {
			size[p.Spec.Group]++
		}
	}
	var list []GroupView
	for _, g := range s.groups {
		view := GroupView{Group: *g, Proxies: size[g.Name]}
		if g.policy != nil {
			view.Policy = *g.policy
		}
		list = append(list, view)
	}
	slices.SortFunc(list, func(a, b GroupView) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// GroupView is a copy of a group's record.
type GroupView struct {
	Group
	Policy  GroupPolicy
	Proxies int
}

// Session copies a session's record, with the id of its proxy.
func (s *State) Session(key string) (Session, bool) {
	if sess := s.sessions[key]; sess != nil {
		return *sess, true
	}
	return Session{}, false
}

// EndSession forgets a session; its live leases go on. It tells whether there was one.
func (s *State) EndSession(now Time, key string) bool {
	s.tick(now)
	sess := s.sessions[key]
	if sess == nil {
		return false
	}
	s.dropSession(sess)
	return true
}

// PairView is what is known of a proxy on one target.
type PairView struct {
	Target string
	NextOK Time
	Charge *Charge
}

// Pairs copies what is known of a proxy on each target.
func (s *State) Pairs(now Time, p *Proxy) []PairView {
	s.tick(now)
	var list []PairView
	for ref := p.pairs; ref != (pairRef{}); {
		t := s.targets[ref.target-1]
		pair := &t.slab[ref.place-1]
		v := PairView{Target: t.Name, NextOK: pair.NextOK}
		if pair.Charge != nil {
			c := *pair.Charge
			v.Charge = &c
		}
		list = append(list, v)
		ref = pair.next
	}
	slices.SortFunc(list, func(a, b PairView) int { return cmp.Compare(a.Target, b.Target) })
	return list
}
