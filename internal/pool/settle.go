package pool

import (
	"math/rand/v2"
	"slices"
)

// Ending is one lease to end, and how.
type Ending struct {
	Key   Key
	Kind  EndKind
	Fence int64 // 0 = not checked
	// Outcome is what the worker saw; EndReport only.
	Outcome Outcome
}

// Result says what became of a report.
type Result uint8

// The results.
const (
	ResultApplied   Result = iota // the first word on a live lease
	ResultDuplicate               // said before: the first answer stands
	ResultStale                   // too late, or with a fence that is not the lease's
)

var resultNames = [...]string{"applied", "duplicate", "stale"}

// String gives the wire name.
func (r Result) String() string { return resultNames[r] }

// Settled is the answer to one ending.
type Settled struct {
	Result Result
	Class  Class
}

// Settle ends leases. Each counts once, however often it is sent; a late report
// never touches what belongs to another lease.
func (s *State) Settle(now Time, endings []Ending, rng *rand.Rand) []Settled {
	s.tick(now)
	out := make([]Settled, len(endings))
	for i := range endings {
		out[i] = s.settle(&endings[i], rng)
	}
	return out
}

func (s *State) settle(e *Ending, rng *rand.Rand) Settled {
	lease := s.leases.get(e.Key)
	if lease == nil || !lease.Live() {
		return s.late(e, lease)
	}
	if e.Fence != 0 && e.Fence != lease.Fence {
		s.totals.Stale++
		return Settled{Result: ResultStale}
	}
	if e.Kind == EndReport && s.workers[lease.Worker].Quarantined != 0 && quarantines(e.Outcome.Class) {
		e.Outcome.Class = ClassWorkerFault
	}
	if e.Kind == EndReport {
		s.hearOpinion(lease, &e.Outcome, rng)
	}
	s.end(lease, e.Kind, &e.Outcome, rng)
	return Settled{ResultApplied, e.Outcome.Class}
}

// late answers for a lease that has ended. A report after expiry adds to the
// statistics once: evidence and ownership are separate.
func (s *State) late(e *Ending, tomb *Lease) Settled {
	switch {
	case tomb == nil:
		s.totals.Stale++
		return Settled{Result: ResultStale}
	case tomb.Kind == e.Kind:
		s.totals.Duplicate++
		return Settled{ResultDuplicate, tomb.Class}
	}
	s.totals.Stale++
	if e.Kind == EndReport && tomb.Kind == EndExpire && !tomb.Late && s.stillNamed(tomb) {
		tomb.Late = true
		s.changed.lease(tomb)
		s.addLate(tomb, &e.Outcome)
	}
	return Settled{ResultStale, e.Outcome.Class}
}

// stillNamed says whether the records that an ended lease names are still those
// it was granted on: numbers of what is gone are given out again.
func (s *State) stillNamed(tomb *Lease) bool {
	if !s.has(tomb.Proxy) || int(tomb.Target) >= len(s.targets) {
		return false
	}
	t := s.targets[tomb.Target]
	return t != nil && tomb.N > t.born
}

func (s *State) addLate(tomb *Lease, o *Outcome) {
	p, t := s.proxies[tomb.Proxy], s.targets[tomb.Target]
	s.caze = Case{
		Now: s.now, Day: s.calendar.Day, Policy: &s.policy, Lease: tomb, Kind: EndReport, Outcome: o,
		Proxy: p, Group: p.group, Target: t, LastLease: s.lastLease, Held: true,
	}
	s.ruling.reset()
	s.judge(&s.caze, &s.ruling)
	s.addCounts(p, t, nil, o, s.ruling.Counts)
	s.spend(p, t, Usage{Bytes: o.Bytes}) // the request was counted when the lease expired
}

// end ends a live lease and applies the judge's ruling.
func (s *State) end(lease *Lease, kind EndKind, o *Outcome, rng *rand.Rand) {
	p, t, w := s.proxies[lease.Proxy], s.targets[lease.Target], s.workers[lease.Worker]
	s.countEnd(lease, o, p, t, w)
	drop := false
	switch kind {
	case EndReport:
		w.Reported++
		s.totals.Reported++
		if reached(o.Class) {
			s.spend(p, t, Usage{Requests: 1, Bytes: o.Bytes})
		}
		drop = s.rule(lease, kind, o, p, t, w, rng)
	case EndExpire:
		w.Expired++
		s.totals.Expired++
		s.spend(p, t, Usage{Requests: 1})
		s.delayPair(lease, p, t)
		drop = s.rule(lease, kind, o, p, t, w, rng)
	case EndRelease:
		w.Released++
		s.totals.Released++
		p.Mech.Uses--
		s.unrestPair(lease, t)
	case EndUse:
		s.totals.Used++
		s.spend(p, t, Usage{Requests: 1})
	case EndRevoke:
		s.totals.Revoked++
		s.delayPair(lease, p, t)
	}
	s.probing(&s.offline, lease)
	if p.group != nil {
		s.probing(&p.group.Circuit, lease)
	}
	s.endSession(lease, drop)
	s.bury(lease, kind, o.Class)
	s.place(p.n)
	s.changed.proxy(p, dirtyMech)
	s.changed.target(t)
	s.changed.worker(w)
	if p.Admin.Remove && p.Mech.InUse == 0 {
		s.remove(p)
	}
}

// bury ends the lease's record, and lets go of those that ended too long ago or
// are too many.
func (s *State) bury(lease *Lease, kind EndKind, class Class) {
	lease.Ended, lease.Kind, lease.Class = s.now, kind, class
	s.endCall(lease)
	s.changed.lease(lease)
	s.leases.end(lease.N)
	s.tombs.push(tomb{lease.N, s.now, lease.More.CallID != ""})
	for s.tombs.len() > tombMax || s.tombs.peek().ended.Add(tombAge) <= s.now {
		s.unbury()
	}
}

// unbury lets go of the oldest ended lease.
func (s *State) unbury() {
	oldest := s.tombs.pop()
	s.changed.forgot(oldest.n)
	lease := s.leases.drop(oldest.n)
	if !oldest.call {
		return
	}
	key := s.callOf(lease)
	if c := s.calls[key]; c != nil {
		if c.ended--; c.ended <= 0 && len(c.live) == 0 {
			delete(s.calls, key)
		}
	}
}

// endCall counts the end of a lease on the acquire that made it, and lets go of
// what only a live lease needs.
func (s *State) endCall(lease *Lease) {
	more := lease.More
	lease.More = noMore
	if more.CallID == "" {
		return
	}
	lease.More = &More{CallID: more.CallID, Tenant: more.Tenant, Digest: more.Digest}
	c := s.calls[s.callOf(lease)]
	c.live = slices.DeleteFunc(c.live, func(l *Lease) bool { return l == lease })
	c.ended++
}

func (s *State) countEnd(lease *Lease, o *Outcome, p *Proxy, t *Target, w *Worker) {
	p.Mech.InUse--
	p.Mech.LastEnd = s.now
	use := Use{Interval: lease.Gap, Hold: s.now.Sub(lease.Granted), Latency: -1}
	if o.Elapsed > 0 && o.Class.Effect().Success {
		use[Latency] = o.Elapsed
	}
	p.Recent.Add(s.now, use)
	s.endOn(t, lease)
	w.Leases--
	w.LastSeen = max(w.LastSeen, s.now)
}

// delayPair rests a pair whose holder went away without a word: its request may
// still be under way.
func (s *State) delayPair(lease *Lease, p *Proxy, t *Target) {
	if p.Spec.Exit == ExitStatic {
		s.restPair(t, lease.Proxy, s.now.Add(max(s.reuseOf(t.n), s.policy.LockDelay)))
	}
}

// unrestPair takes back the rest that an unused lease had started.
func (s *State) unrestPair(lease *Lease, t *Target) {
	place, ok := t.pairs[lease.Proxy]
	if !ok || lease.RestEnd == 0 || t.slab[place].NextOK != lease.RestEnd {
		return
	}
	pair := &t.slab[place]
	pair.NextOK = 0
	s.recountPair(t, place)
	s.changed.pair(t, place)
	if pair.rests == restNone {
		s.retire(t, pair, place)
	}
}

// rule asks the judge and does what it says; it tells whether the session is to go.
func (s *State) rule(lease *Lease, kind EndKind, o *Outcome, p *Proxy, t *Target, w *Worker, rng *rand.Rand) bool {
	s.caze = Case{
		Now: s.now, Day: s.calendar.Day, Policy: &s.policy, Lease: lease, Kind: kind, Outcome: o,
		Proxy: p, Group: p.group, Target: t, Jitter: rng.Float64(),
	}
	pair := t.pair(lease.Proxy)
	if pair != nil {
		s.caze.Charge = pair.Charge
	}
	s.testify(&s.caze, pair, w)
	before := p.Judge
	r := &s.ruling
	r.reset()
	s.judge(&s.caze, r)

	s.assess(t, r)
	s.addCounts(p, t, w, o, r.Counts)
	s.totals.Classes[o.Class]++
	s.countBand(lease.Band, o.Valid)
	p.Quality = r.Quality
	if r.ChangeProxy {
		p.Judge = r.Proxy
		p.Judge.Version++
		s.changed.proxy(p, dirtyJudge)
	}
	switch {
	case r.ClearPair:
		s.clear(t, pair)
	case r.ChangePair:
		s.charge(t, p.n, &r.Charge)
	}
	if r.ChangeGroup {
		s.caze.Group.HoldUntil, s.caze.Group.HoldSteps = r.HoldUntil, r.HoldSteps
	}
	if r.Vote != 0 {
		s.vote(t, p, r.Vote < 0)
	}
	s.blame(lease, p, w, o, &before, r)
	s.recordFailure(lease, o, p, t, w, r.Fault)
	return r.DropSession
}

// charge replaces what is held against a pair.
func (s *State) charge(t *Target, n uint32, c *Charge) {
	place := s.newPair(t, n)
	pair := &t.slab[place]
	if pair.Charge == nil {
		pair.Charge = new(Charge)
	}
	if c.Slots[CauseFailure] > max(s.now, pair.Charge.Slots[CauseFailure]) {
		t.remember(n, s.now)
	}
	*pair.Charge = *c
	pair.Charge.Version++
	pair.Charge.Touched = s.now
	s.recountPair(t, place)
	if pair.rests == restNone {
		s.retire(t, pair, place)
	}
	s.changed.pair(t, place)
}

// clear forgets what was held against a pair.
func (s *State) clear(t *Target, pair *Pair) {
	place := t.pairs[pair.Proxy]
	pair.Charge = nil
	s.recountPair(t, place)
	if pair.rests == restNone {
		s.retire(t, pair, place)
	}
	s.changed.pair(t, place)
}

// addCounts adds an outcome to the windows of all that took part.
func (s *State) addCounts(p *Proxy, t *Target, w *Worker, o *Outcome, d Counts) {
	p.Windows.Add(s.now, s.calendar.Day, d)
	s.changed.proxy(p, dirtyWindows)
	t.Windows.Add(s.now, s.calendar.Day, d)
	t.Classes[o.Class]++
	s.changed.target(t)
	if g := s.caze.Group; g != nil {
		g.Windows.Add(s.now, s.calendar.Day, d)
		g.Classes[o.Class]++
		s.changed.group(g)
	}
	if w != nil {
		w.Windows.Add(s.now, s.calendar.Day, d)
		s.changed.worker(w)
	}
}

func (s *State) countBand(b Band, v Verity) {
	switch v {
	case Valid:
		s.totals.Bands[b].Valid++
	case Invalid:
		s.totals.Bands[b].Invalid++
	case Unknown:
	}
}

// recordFailure keeps the trace of a failed attempt.
func (s *State) recordFailure(lease *Lease, o *Outcome, p *Proxy, t *Target, w *Worker, fault Fault) {
	switch o.Class {
	case ClassNone, ClassOK, ClassTargetAnswer, ClassTunnelDone:
		if !o.Final {
			return
		}
	}
	s.changed.failure(Failure{
		At: s.now, Worker: w.Name, Target: t.Name, Proxy: p.ID.String(), Lease: lease.Key.Short(), Class: o.Class, Fault: fault,
		Phase: o.Phase, Error: o.Error, Status: o.Status, Elapsed: o.Elapsed,
		Request: lease.More.Request.or(o.Request), Final: o.Final,
	})
}
