package pool

import (
	"container/list"
	"time"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// State is the whole of one pool. It is not safe for concurrent use: a store
// calls it under its lock. Every operation takes the time, which never runs
// backwards inside: an older now counts as the newest that was seen.
type State struct {
	Name   string
	policy Policy
	judge  Judge
	reuse  []time.Duration // by target number; -1 = not looked up yet
	zone   *time.Location

	now       Time
	calendar  Calendar
	dayEnds   Time // the calendar holds until this
	monthEnds Time

	proxies     []*Proxy // by number; nil = free number
	hot         []hot    // by number: what picks read
	numbers     []uint32 // free numbers
	quarantined []quarantine
	byID        map[proxy.ID]uint32
	labels      map[Labels]Labels // interned

	classes  []*selClass
	classOf  map[classKey]uint16
	matching map[classKey][]uint16 // cache of Selector -> classes
	all      []uint16              // cache for the selector that takes any

	targets  []*Target
	byTarget map[string]uint32
	groups   map[string]*Group
	workers  []*Worker
	byWorker map[workerKey]uint32
	sessions map[string]*Session

	sessionsOf map[uint32]*list.List // by proxy: its sessions, least recently used first

	lastLease int64 // number of the newest lease
	leases    table
	calls     map[callKey]*call
	expiring  agenda[int64] // deadlines of leases, by number
	tombs     line[tomb]    // those that ended, oldest first

	credit                     float64  // of probation: see pick.go
	graceUntil                 Time     // nothing is reclaimed before
	sweepAt                    int      // the next proxy that a sweep looks at
	evictAt                    int      // the next record that an eviction looks at
	spareTargets, spareWorkers []uint32 // free numbers
	totals                     Totals
	activity                   activity
	opinions                   *Opinions // on pages that a weak rule found; not durable: what is forgotten stays provisional
	offline                    Circuit   // open while nobody reaches anything
	lastOK                     lastOK
	troubles                   []Trouble // newest last
	promoted                   tally     // of proxies without a group

	query   query // reused, like the three below
	caze    Case
	ruling  Ruling
	cand    []candidate
	changed *Changes // nil = nobody asked
}

// Totals count since the pool was made.
type Totals struct {
	Granted, Reported, Released, Revoked, Expired, Used, Refused, Stale, Duplicate, Repaired int64
	Classes                                                                                  [NumClasses]int64
	Bands                                                                                    [NumBands]struct{ Valid, Invalid int64 }
}

type workerKey struct{ tenant, name string }

type callKey struct{ tenant, id string }

// call is one idempotent acquire: its live leases, and how many ended.
type call struct {
	digest uint64
	live   []*Lease
	ended  int
}

// New makes an empty pool with a policy that was validated.
func New(name string, policy Policy, judge Judge) *State {
	s := &State{
		Name:     name,
		judge:    judge,
		byID:     map[proxy.ID]uint32{},
		labels:   map[Labels]Labels{},
		classOf:  map[classKey]uint16{},
		matching: map[classKey][]uint16{},
		byTarget: map[string]uint32{},
		groups:   map[string]*Group{},
		byWorker: map[workerKey]uint32{},
		sessions: map[string]*Session{},

		sessionsOf: map[uint32]*list.List{},
		leases:     table{pages: map[int64]*page{}},
		calls:      map[callKey]*call{},
		opinions:   NewOpinions(MaxOpinions),
	}
	s.SetPolicy(0, policy)
	return s
}

// Policy is the policy in force.
func (s *State) Policy() Policy { return s.policy }

// Totals are the pool's counters.
func (s *State) Totals() Totals { return s.totals }

// Live is the number of live leases.
func (s *State) Live() int { return s.leases.live }

// SetPolicy puts a validated policy in force. Rests that run keep their ends;
// caps and tiers follow at once.
func (s *State) SetPolicy(now Time, policy Policy) {
	s.policy = policy
	s.zone = time.UTC
	if zone, err := time.LoadLocation(policy.Zone); err == nil {
		s.zone = zone
	}
	s.dayEnds = 0
	s.tick(now)
	for i := range s.reuse {
		s.reuse[i] = -1
	}
	for n, p := range s.proxies {
		if p != nil {
			s.place(uint32(n))
		}
	}
}

// tick takes the time of an operation, and wakes whatever fell due.
func (s *State) tick(now Time) {
	s.now = max(s.now, now)
	if s.now >= s.dayEnds {
		s.startDay()
	}
	for _, c := range s.classes {
		s.wake(c)
	}
}

// startDay finds the local day of now, and when the next begins.
func (s *State) startDay() {
	local := s.now.Std().In(s.zone)
	year, month, day := local.Date()
	s.calendar = Calendar{
		Day:   int32(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / 86400),
		Month: int32(year*12 + int(month) - 1),
	}
	s.dayEnds = At(time.Date(year, month, day+1, 0, 0, 0, 0, s.zone))
	s.monthEnds = At(time.Date(year, month+1, 1, 0, 0, 0, 0, s.zone))
	if s.dayEnds <= s.now { // a zone without a midnight on that day
		s.dayEnds = s.now.Add(time.Hour)
	}
	s.monthEnds = max(s.monthEnds, s.dayEnds)
	s.priceGroups()
}

// Now is the newest time that the state has seen.
func (s *State) Now() Time { return s.now }

// Calendar is a local day and month: days since 1970, and months since the year 0.
type Calendar struct{ Day, Month int32 }

// Calendar is the local day and month in force.
func (s *State) Calendar() Calendar { return s.calendar }

// Day is the local day number in force.
func (s *State) Day() int32 { return s.calendar.Day }

func (s *State) reuseOf(target uint32) time.Duration {
	for int(target) >= len(s.reuse) {
		s.reuse = append(s.reuse, -1)
	}
	if s.reuse[target] < 0 {
		t := s.targets[target]
		s.reuse[target] = s.policy.Reuse(t.Name) << t.Judge.ReuseSteps
	}
	return s.reuse[target]
}

// target gives the record of a target, made on first use.
func (s *State) target(name string) *Target {
	if n, ok := s.byTarget[name]; ok {
		return s.targets[n]
	}
	if len(s.byTarget) >= maxTargets {
		s.evictTarget()
	}
	t := &Target{Name: name, born: s.lastLease, n: uint32(len(s.targets)), pairs: map[uint32]uint32{}}
	if k := len(s.spareTargets); k > 0 {
		t.n, s.spareTargets = s.spareTargets[k-1], s.spareTargets[:k-1]
		s.targets[t.n] = t
	} else {
		s.targets = append(s.targets, t)
	}
	if int(t.n) < len(s.reuse) {
		s.reuse[t.n] = -1
	}
	s.byTarget[name] = t.n
	s.changed.target(t)
	return t
}

// worker gives the record of a worker, made on first use.
func (s *State) worker(tenant, name string) *Worker {
	key := workerKey{tenant, name}
	if n, ok := s.byWorker[key]; ok {
		return s.workers[n]
	}
	if len(s.byWorker) >= maxWorkers {
		s.evictWorker()
	}
	w := &Worker{Name: name, Tenant: tenant, n: uint32(len(s.workers))}
	if k := len(s.spareWorkers); k > 0 {
		w.n, s.spareWorkers = s.spareWorkers[k-1], s.spareWorkers[:k-1]
		s.workers[w.n] = w
	} else {
		s.workers = append(s.workers, w)
	}
	s.byWorker[key] = w.n
	s.changed.worker(w)
	return w
}

// group gives the record of a group, made on first use; nil for no group.
func (s *State) group(name string) *Group {
	if name == "" {
		return nil
	}
	g, ok := s.groups[name]
	if !ok {
		g = &Group{Name: name}
		s.price(g)
		s.groups[name] = g
	}
	return g
}
