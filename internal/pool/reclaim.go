package pool

import (
	"math/rand/v2"
	"time"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// Grace keeps every lease until a time: after a start, an outage or a change of
// the primary nobody could send heartbeats.
func (s *State) Grace(until Time) { s.graceUntil = max(s.graceUntil, until) }

// Reclaimed is a lease that nobody ended, with the names it speaks of.
type Reclaimed struct {
	Lease   Lease
	Worker  string
	ProxyID proxy.ID
	Target  string
}

// Reclaim ends at most limit leases whose deadline and grace are over, earliest
// first, and tells which. It finds and takes in one step.
func (s *State) Reclaim(now Time, limit int, rng *rand.Rand) []Reclaimed {
	s.tick(now)
	return s.reclaim(limit, rng)
}

func (s *State) reclaim(limit int, rng *rand.Rand) []Reclaimed {
	if s.now < s.graceUntil {
		return nil
	}
	var ended []Reclaimed
	for len(ended) < limit {
		e, ok := s.expiring.take(s.now.Add(-s.policy.Grace))
		if !ok {
			break
		}
		if !s.leases.isLive(e.what) {
			continue
		}
		lease := s.leases.number(e.what)
		switch {
		case lease.Deadline > e.at: // extended meanwhile
			s.expiring.later(lease.Deadline, lease.N)
		default:
			ended = append(ended, Reclaimed{
				*lease, s.workers[lease.Worker].Name, s.proxies[lease.Proxy].ID, s.targets[lease.Target].Name,
			})
			s.end(lease, EndExpire, &Outcome{Class: ClassLeaseExpired, Elapsed: s.now.Sub(lease.Granted)}, rng)
		}
	}
	return ended
}

// NextExpiry is when the next lease may fall to reclaim; 0 = none is out.
func (s *State) NextExpiry() Time {
	at, ok := s.expiring.min()
	if !ok {
		return 0
	}
	return max(at.Add(s.policy.Grace), s.graceUntil)
}

// Idle records go after these times (docs/architecture.md, bounds).
const (
	targetAge  = 7 * 24 * time.Hour
	workerAge  = 24 * time.Hour
	maxTargets = 10_000
	maxWorkers = 10_000
)

// evictLooks is how many records an eviction compares: near enough to the least
// recently used, at a fixed cost.
const evictLooks = 64

// evictTarget makes room for a target: callers name them, and must not fill the
// memory. One that is in use never goes.
func (s *State) evictTarget() {
	var oldest *Target
	for range evictLooks {
		s.evictAt = (s.evictAt + 1) % len(s.targets)
		if t := s.targets[s.evictAt]; t != nil && t.InFlight == 0 && (oldest == nil || t.LastUsed < oldest.LastUsed) {
			oldest = t
		}
	}
	if oldest != nil {
		s.dropTarget(oldest)
	}
}

// evictWorker makes room for a worker, likewise.
func (s *State) evictWorker() {
	var oldest *Worker
	for range evictLooks {
		s.evictAt = (s.evictAt + 1) % len(s.workers)
		if w := s.workers[s.evictAt]; w != nil && w.Leases == 0 && (oldest == nil || w.LastSeen < oldest.LastSeen) {
			oldest = w
		}
	}
	if oldest != nil {
		s.dropWorker(oldest)
	}
}

// dropWorker forgets a worker that no live lease speaks of. Ended leases that
// name it lose their request ids with it.
func (s *State) dropWorker(w *Worker) {
	delete(s.byWorker, workerKey{w.Tenant, w.Name})
	s.workers[w.n] = nil
	s.spareWorkers = append(s.spareWorkers, w.n)
	s.changed.droppedWorker(w)
}

// Sweep looks at up to limit proxies, and at what is idle, and mends what does
// not fit together: in-use counts that no lease explains, rests without a
// wake-up. It tells how much it mended; anything but 0 is a fault of ours.
func (s *State) Sweep(now Time, limit int) (mended int) {
	s.tick(now)
	held := map[uint32]int{}
	s.leases.eachLive(func(lease *Lease) { held[lease.Proxy]++ })
	for range min(limit, len(s.proxies)) {
		if s.sweepAt >= len(s.proxies) {
			s.sweepAt = 0
		}
		if p := s.proxies[s.sweepAt]; p != nil {
			mended += s.mend(p, held[p.n])
		}
		s.sweepAt++
	}
	if s.expiring.len() < s.leases.live {
		mended += s.rebuildExpiring()
	}
	s.sweepIdle()
	s.totals.Repaired += int64(mended)
	return mended
}

func (s *State) mend(p *Proxy, held int) (mended int) {
	if p.Mech.InUse != held {
		p.Mech.InUse = held
		s.changed.proxy(p, dirtyMech)
		mended++
	}
	h := s.hot[p.n]
	wake := p.wakeAt(s.now)
	if wake != 0 && h.wake != wake {
		mended++
	}
	s.place(p.n)
	if p.Admin.Remove && p.Mech.InUse == 0 {
		s.remove(p)
	}
	return mended
}

func (s *State) rebuildExpiring() int {
	s.expiring = agenda[int64]{}
	s.leases.eachLive(func(lease *Lease) { s.expiring.later(lease.Deadline, lease.N) })
	return 1
}

// sweepIdle drops what nobody used for long.
func (s *State) sweepIdle() {
	for s.tombs.len() > 0 && s.tombs.peek().ended.Add(tombAge) <= s.now {
		s.unbury()
	}
	s.sweepSessions()
	s.freeNumbers()
	for _, t := range s.targets {
		if t == nil {
			continue
		}
		s.wakePairs(t)
		if t.InFlight == 0 && t.LastUsed.Add(targetAge) <= s.now {
			s.dropTarget(t)
		}
	}
	for _, w := range s.workers {
		if w != nil && w.Leases == 0 && w.LastSeen.Add(workerAge) <= s.now {
			s.dropWorker(w)
		}
	}
}

func (s *State) dropTarget(t *Target) {
	for class, o := range t.openings {
		if o != nil {
			s.dropOpening(t, uint16(class))
		}
	}
	for n := range t.pairs {
		s.dropPair(t, n)
	}
	delete(s.byTarget, t.Name)
	s.targets[t.n] = nil
	s.spareTargets = append(s.spareTargets, t.n)
	s.changed.droppedTarget(t)
}
