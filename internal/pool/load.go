package pool

import (
	"fmt"
	"slices"
)

// The methods of this file put records back that a store kept, after Collect and
// before anything else is called. Numbers are the store's; each must be given
// once. A pair that has nothing to say any more is dropped at once, which the
// store learns with the first Take.

// LoadProxy puts a proxy's record back.
func (s *State) LoadProxy(n uint32, p Proxy) error {
	if n >= maxProxies-1 {
		return fmt.Errorf("proxy number %d is out of range", n)
	}
	for int(n) >= len(s.proxies) {
		s.proxies = append(s.proxies, nil)
		s.hot = append(s.hot, hot{})
	}
	if s.proxies[n] != nil {
		return fmt.Errorf("proxy number %d stands twice", n)
	}
	if _, ok := s.byID[p.ID]; ok {
		return fmt.Errorf("proxy %s stands twice", p.ID)
	}
	p.n, p.pairs, p.dirty = n, pairRef{}, 0
	p.Mech.InUse = 0 // counted from the leases
	spec := *p.Spec
	spec.Labels = s.intern(spec.Labels)
	p.Spec = &spec
	s.attach(&p)
	return nil
}

// LoadTarget puts a target's record back, without its pairs.
func (s *State) LoadTarget(n uint32, t Target) error {
	for int(n) >= len(s.targets) {
		s.targets = append(s.targets, nil)
	}
	if _, ok := s.byTarget[t.Name]; ok || s.targets[n] != nil {
		return fmt.Errorf("target %q (number %d) stands twice", t.Name, n)
	}
	s.targets[n] = &Target{
		Name: t.Name, LastUsed: t.LastUsed, Windows: t.Windows, Classes: t.Classes, Spend: t.Spend, Votes: t.Votes,
		n: n, pairs: map[uint32]uint32{},
	}
	s.byTarget[t.Name] = n
	return nil
}

// LoadWorker puts a worker's record back.
func (s *State) LoadWorker(n uint32, w Worker) error {
	for int(n) >= len(s.workers) {
		s.workers = append(s.workers, nil)
	}
	key := workerKey{w.Tenant, w.Name}
	if _, ok := s.byWorker[key]; ok || s.workers[n] != nil {
		return fmt.Errorf("worker %q (number %d) stands twice", w.Name, n)
	}
	w.n, w.Leases, w.dirty = n, 0, 0
	s.workers[n] = &w
	s.byWorker[key] = n
	return nil
}

// LoadGroup puts a group's record back.
func (s *State) LoadGroup(g Group) {
	known := s.group(g.Name)
	*known = g
	known.dirty = 0
	s.price(known)
}

// LoadPair puts a pair's record back, after its proxy and target.
func (s *State) LoadPair(name PairName, p Pair) error {
	if !s.has(name.Proxy) || int(name.Target) >= len(s.targets) || s.targets[name.Target] == nil {
		return fmt.Errorf("a pair names proxy %d and target %d, which do not both exist", name.Proxy, name.Target)
	}
	t := s.targets[name.Target]
	place := s.newPair(t, name.Proxy)
	pair := &t.slab[place]
	pair.NextOK, pair.Charge, pair.Epoch, pair.Failed = p.NextOK, p.Charge, p.Epoch, p.Failed
	s.recountPair(t, place)
	if pair.rests == restNone {
		s.retire(t, pair, place)
	}
	return nil
}

// LoadSession puts a session's record back, after its proxy.
func (s *State) LoadSession(x Session, gone bool) error {
	if !s.has(x.Proxy) {
		return fmt.Errorf("session %q names proxy %d, which does not exist", x.Key, x.Proxy)
	}
	x.gone, x.Leases, x.dirty = gone, 0, 0
	s.addSession(&x)
	return nil
}

// Gone says that the session's proxy or child is not to be used again.
func (x *Session) Gone() bool { return x.gone }

// LoadLease puts a live lease back, after its proxy, target, worker and session.
func (s *State) LoadLease(l Lease) error {
	if !s.has(l.Proxy) || int(l.Target) >= len(s.targets) || s.targets[l.Target] == nil ||
		int(l.Worker) >= len(s.workers) || s.workers[l.Worker] == nil {
		return fmt.Errorf("lease %s names a proxy, target or worker that does not exist", l.Key.Short())
	}
	lease := &l
	lease.dirty, lease.stored = 0, true
	s.lastLease = max(s.lastLease, l.N)
	s.register(lease)
	p := s.proxies[l.Proxy]
	p.Mech.InUse++
	t, w := s.targets[l.Target], s.workers[l.Worker]
	t.InFlight++
	t.LastUsed = max(t.LastUsed, l.Granted)
	w.Leases++
	w.LastSeen = max(w.LastSeen, l.Granted)
	w.count(lease)
	if sess := s.sessions[l.More.Session]; sess != nil && sess.Proxy == l.Proxy && sess.Child == l.More.Child {
		sess.Leases++
	}
	s.place(l.Proxy)
	return nil
}

// LoadEnded puts an ended lease back; they come oldest first.
func (s *State) LoadEnded(l Lease) {
	lease := &l
	lease.dirty, lease.stored = 0, true
	s.lastLease = max(s.lastLease, l.N)
	s.leases.put(lease)
	s.tombs.push(tomb{l.N, l.Ended, l.More.CallID != ""})
	if l.More.CallID == "" {
		return
	}
	key := s.callOf(lease)
	if s.calls[key] == nil {
		s.calls[key] = &call{digest: l.More.Digest}
	}
	s.calls[key].ended++
}

// LoadTotals puts the counters back, and the newest time that was seen.
func (s *State) LoadTotals(now Time, t Totals, credit float64) {
	s.totals, s.credit = t, credit
	s.now = max(s.now, now)
}

// Credit is the kept share of a trial: see [State.LoadTotals].
func (s *State) Credit() float64 { return s.credit }

// Loaded ends the loading: numbers that nothing uses are free again.
func (s *State) Loaded(now Time) {
	s.dayEnds = 0 // budgets were read without knowing the day
	s.tick(now)
	spoken := map[uint32]bool{}
	s.leases.eachEnded(func(l *Lease) {
		spoken[l.Proxy] = true
		for int(l.Proxy) >= len(s.proxies) { // of a proxy that is gone: its number is not free yet
			s.proxies = append(s.proxies, nil)
			s.hot = append(s.hot, hot{})
		}
	})
	for n, t := range slices.Backward(s.targets) {
		if t == nil {
			s.spareTargets = append(s.spareTargets, uint32(n))
		}
	}
	for n, w := range slices.Backward(s.workers) {
		if w == nil {
			s.spareWorkers = append(s.spareWorkers, uint32(n))
		}
	}
	for n, p := range slices.Backward(s.proxies) {
		switch {
		case p != nil:
		case spoken[uint32(n)]:
			s.quarantined = append(s.quarantined, quarantine{uint32(n), s.now})
		default:
			s.numbers = append(s.numbers, uint32(n))
		}
	}
}

func (s *State) has(n uint32) bool { return int(n) < len(s.proxies) && s.proxies[n] != nil }
