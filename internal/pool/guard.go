package pool

import (
	"hash/fnv"
	"time"
)

// Guard is whose fault a burst of failures was, if not the proxies' own.
type Guard uint8

// The guards.
const (
	GuardNone        Guard = iota
	GuardWorker            // one worker's machine or network
	GuardGroup             // a provider's network
	GuardCredentials       // a provider's account
	GuardOffline           // our own network: nobody reaches anything
)

// Trouble is a counted failure of a proxy that worked before, kept for a minute
// so that it can be taken back when it was not the proxy's fault.
type Trouble struct {
	At     Time
	Proxy  uint32
	Group  uint32 // a key of its name; 0 = none
	Worker uint32
	Class  Class
	before Judgement
	fence  int64
}

// Burst is what the guards look at when a proxy that worked before has failed.
type Burst struct {
	Troubles []Trouble // of the last minute, the newest last
	LastOK   Time      // newest success of anybody
	WorkerOK Time      // of the worker of the newest failure
	OthersOK Time      // of any other worker
	GroupOK  int       // successes of its group in the last minute, about
}

const (
	troubleAge = time.Minute
	troubleMax = 256
)

// Probes of what a guard holds.
const (
	probeGroup       = 10 * time.Second
	probeCredentials = 30 * time.Second
	probeOffline     = 2 * time.Second
)

// quarantines says whether a failure of a class, told by a worker whose network
// is at fault, says nothing of the proxy or the target.
func quarantines(c Class) bool {
	f := c.Effect().Fault
	return f == FaultProxy && c != ClassTamper || f == FaultUnsure
}

// lastOK is when two different workers last saw something work.
type lastOK struct {
	at     Time
	worker uint32
	before Time // of another worker
}

func (l *lastOK) see(now Time, worker uint32) {
	if l.worker != worker {
		l.before, l.worker = l.at, worker
	}
	l.at = now
}

// of gives the newest success of a worker and of all others, as far as known.
func (l *lastOK) of(worker uint32) (own, others Time) {
	if l.worker == worker {
		return l.at, l.before
	}
	return 0, l.at
}

// works takes a sign that a path through a proxy works: what was held because
// nothing worked is over.
func (s *State) works(lease *Lease, g *Group, w *Worker) {
	s.lastOK.see(s.now, lease.Worker)
	w.LastOK = s.now
	w.Quarantined = 0
	if s.offline.Open() && lease.Granted >= s.offline.Since {
		s.offline = Circuit{}
	}
	if g == nil {
		return
	}
	g.recentOK.add(s.now)
	if g.Circuit.Open() && lease.Granted >= g.Circuit.Since {
		g.Circuit = Circuit{}
		s.changed.group(g)
	}
}

// rate counts successes in two half minutes.
type rate struct {
	epoch  uint32
	n, old int
}

func (r *rate) add(now Time) { r.roll(now); r.n++ }

func (r *rate) roll(now Time) {
	switch epoch := epochOf(now); epoch {
	case r.epoch:
	case r.epoch + 1:
		r.epoch, r.old, r.n = epoch, r.n, 0
	default:
		r.epoch, r.old, r.n = epoch, 0, 0
	}
}

func (r *rate) lately(now Time) int { r.roll(now); return r.n + r.old }

// held says whether failures like this are not counted now, because a guard
// holds the worker, the group or everything.
func (s *State) held(g *Group) bool { return s.offline.Open() || g != nil && g.Circuit.Open() }

// burst gathers what the guards look at, for a failure that may be counted.
func (s *State) burst(lease *Lease, g *Group, w *Worker) Burst {
	for len(s.troubles) > 0 && (s.now.Sub(s.troubles[0].At) > troubleAge || len(s.troubles) >= troubleMax) {
		s.troubles = s.troubles[1:]
	}
	_, others := s.lastOK.of(lease.Worker)
	b := Burst{Troubles: s.troubles, LastOK: s.lastOK.at, WorkerOK: w.LastOK, OthersOK: others}
	if g != nil {
		b.GroupOK = g.recentOK.lately(s.now)
	}
	return b
}

// trouble keeps a counted failure, and acts on the guard that the judge called.
func (s *State) trouble(lease *Lease, p *Proxy, before *Judgement, class Class, guard Guard) {
	s.troubles = append(s.troubles, Trouble{
		At: s.now, Proxy: p.n, Group: groupKey(p.group), Worker: lease.Worker, Class: class, before: *before, fence: p.Judge.FailFence,
	})
	s.act(guard, s.workers[lease.Worker], p.group, class)
}

// act puts a guard in force and takes back what was charged to proxies.
func (s *State) act(guard Guard, w *Worker, g *Group, class Class) {
	open := func(every time.Duration) Circuit {
		return Circuit{Since: s.now, At: s.now.Add(every), Step: every, Cause: class}
	}
	switch guard {
	case GuardNone:
	case GuardWorker:
		w.Quarantined = s.now
		s.changed.worker(w)
		s.takeBack(func(t *Trouble) bool { return t.Worker == w.n })
	case GuardGroup:
		g.Circuit = open(probeGroup)
		s.changed.group(g)
		s.takeBack(func(t *Trouble) bool { return t.Group == groupKey(g) })
	case GuardCredentials:
		g.Circuit = open(probeCredentials)
		s.changed.group(g)
		s.takeBack(func(t *Trouble) bool { return t.Group == groupKey(g) && t.Class == ClassProxyAuth })
	case GuardOffline:
		s.offline = open(probeOffline)
		s.takeBack(func(*Trouble) bool { return true })
	}
}

// takeBack restores proxies whose last counted failure was not theirs.
func (s *State) takeBack(which func(*Trouble) bool) {
	kept := s.troubles[:0]
	for i := len(s.troubles) - 1; i >= 0; i-- { // newest first: each step is undone in turn
		t := &s.troubles[i]
		if !which(t) {
			continue
		}
		if p := s.proxies[t.Proxy]; p != nil && p.Judge.FailFence == t.fence {
			version := p.Judge.Version
			p.Judge = t.before
			p.Judge.Version = version + 1
			s.place(p.n)
			s.changed.proxy(p, dirtyJudge)
		}
	}
	for _, t := range s.troubles {
		if !which(&t) {
			kept = append(kept, t)
		}
	}
	s.troubles = kept
}

// groupKey tells groups apart in records that outlive pointers; 0 = no group.
func groupKey(g *Group) uint32 {
	if g == nil {
		return 0
	}
	if g.key == 0 {
		h := fnv.New32a()
		_, _ = h.Write([]byte(g.Name))
		g.key = max(1, h.Sum32())
	}
	return g.key
}

// tally counts promotions of a group's proxies in ten minutes.
type tally struct {
	since Time
	n     int
}

const (
	tallyAge     = 10 * time.Minute
	promoteShare = .3 // of a group, in ten minutes (docs/policy.md, ejection)
)

// mayPromote says whether one more proxy of a group of a size may be stepped by
// statistics alone: at least one may.
func (t *tally) mayPromote(now Time, size int) bool {
	if now.Sub(t.since) > tallyAge {
		*t = tally{since: now}
	}
	return t.n < max(1, int(promoteShare*float64(size)))
}

func (s *State) tallyOf(g *Group) *tally {
	if g == nil {
		return &s.promoted
	}
	return &g.promoted
}

// groupSize counts the proxies of a group.
func (s *State) groupSize(g *Group) int {
	n := 0
	for _, c := range s.classes {
		if c.group == g {
			n += c.size()
		}
	}
	return n
}

// probing advances a held circuit after a probe that did not go well.
func (s *State) probing(c *Circuit, lease *Lease) {
	if c.end(lease) && c.Open() {
		c.At = s.now.Add(c.Step)
	}
}
