package pool

import (
	"math/rand/v2"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// Note is what a caller learnt of a lease's data afterwards.
type Note struct {
	Key Key
	// Proxy, Target, Granted and Fence come from the lease's token: a note may
	// come long after the lease and its tomb are gone.
	Proxy   proxy.ID
	Target  string
	Granted Time
	Fence   int64
	Valid   Verity
	Items   int64
	Ban     bool
}

// noteAge is how long after the grant notes are taken: 15 minutes after the
// longest lifetime.
const noteAge = 15 * 60 * 1000

// Note takes a batch of notes of a worker. A batch whose number was seen is not
// taken twice; number 0 is always taken. Business facts never change a proxy, a
// pair or a target; only an explicit ban does.
func (s *State) Note(now Time, tenant, worker string, seq int64, notes []Note, rng *rand.Rand) (taken int, duplicate bool) {
	s.tick(now)
	w := s.worker(tenant, worker)
	s.seen(w, 0)
	if seq != 0 && seq <= w.NoteSeq {
		return 0, true
	}
	w.NoteSeq = max(w.NoteSeq, seq)
	s.changed.worker(w)
	for i := range notes {
		if s.note(&notes[i], w, rng) {
			taken++
		}
	}
	return taken, false
}

func (s *State) note(n *Note, w *Worker, rng *rand.Rand) bool {
	p := s.ProxyByID(n.Proxy)
	tomb := s.leases.get(n.Key)
	if p == nil && tomb != nil {
		p = s.proxies[tomb.Proxy] // its password changed, and its id with it
	}
	number, known := s.byTarget[n.Target]
	if p == nil || !known || s.now > n.Granted.Add(s.policy.MaxLifetime)+noteAge {
		return false
	}
	t := s.targets[number]
	band := BandProbation
	at := n.Granted // the report's bucket, as near as it is still known
	if tomb != nil && !tomb.Live() {
		at, band = tomb.Ended, tomb.Band
	}
	add, sub := n.counts()
	s.amend(p, t, w, at, add, sub)
	s.countBand(band, n.Valid)
	if n.Ban {
		s.ban(n, p, t, w, rng)
	}
	return true
}

// counts is what the note adds to and takes from the bucket of the report.
func (n *Note) counts() (add, sub Counts) {
	switch n.Valid {
	case Valid:
		add.Valid = 1
	case Invalid:
		add.Invalid = 1
	case Unknown:
	}
	if n.Ban {
		sub.OK = 1
	}
	return add, sub
}

func (s *State) amend(p *Proxy, t *Target, w *Worker, at Time, add, sub Counts) {
	p.Windows.Amend(at, s.calendar.Day, s.now, add, sub)
	t.Windows.Amend(at, s.calendar.Day, s.now, add, sub)
	w.Windows.Amend(at, s.calendar.Day, s.now, add, sub)
	s.changed.proxy(p, dirtyWindows)
	s.changed.target(t)
	s.changed.worker(w)
	if g := p.group; g != nil {
		g.Windows.Amend(at, s.calendar.Day, s.now, add, sub)
		s.changed.group(g)
	}
}

// ban charges the pair now, as a soft block, and turns its vote. It restores
// nothing and touches no streak or cap of the proxy.
func (s *State) ban(n *Note, p *Proxy, t *Target, w *Worker, rng *rand.Rand) {
	outcome := Outcome{Class: ClassBlockedSoft}
	lease := Lease{Key: n.Key, More: noMore, Proxy: p.n, Target: t.n, Granted: n.Granted, Fence: n.Fence}
	s.caze = Case{
		Now: s.now, Day: s.calendar.Day, Policy: &s.policy, Lease: &lease, Kind: EndReport, Outcome: &outcome,
		Proxy: p, Group: p.group, Target: t, Jitter: rng.Float64(),
	}
	pair := t.pair(p.n)
	if pair != nil {
		s.caze.Charge = pair.Charge
	}
	s.testify(&s.caze, pair, w)
	s.ruling.reset()
	s.judge(&s.caze, &s.ruling)
	if s.ruling.ChangePair {
		s.charge(t, p.n, &s.ruling.Charge)
	}
	if s.ruling.DropSession {
		s.dropChild(n.Key, p)
	}
	if pair := t.pair(p.n); pair != nil {
		s.turnVote(t, pair)
	}
	t.Classes[ClassBlockedSoft]++
	s.totals.Classes[ClassBlockedSoft]++
}

// dropChild ends the session of a live lease of a template that a note calls banned.
func (s *State) dropChild(key Key, p *Proxy) {
	if lease := s.leases.alive(key); lease != nil && lease.Proxy == p.n {
		if sess := s.sessions[lease.More.Session]; sess != nil && sess.Child == lease.More.Child {
			sess.gone = true
			s.changed.session(sess)
		}
	}
}

// AddFailure keeps a failure that no lease carried.
func (s *State) AddFailure(f Failure) {
	f.Fault = f.Class.Effect().Fault
	s.changed.failure(f)
}
