package pool

import "github.com/hostler-proxy/hostler/internal/proxy"

// dirty marks what of a record is not yet taken by the store.
type dirty uint8

const (
	dirtySpec dirty = 1 << iota // spec and admin orders
	dirtyMech
	dirtyJudge
	dirtyWindows // windows, latency, quality, bytes
	dirtyAll     = dirtySpec | dirtyMech | dirtyJudge | dirtyWindows
)

// Changes collects what changed since the store last took it, each record once.
// A nil *Changes collects nothing. All methods are called by the state.
type Changes struct {
	proxies      []*Proxy
	pairs        []pairRef
	droppedPairs []PairName
	leases       []*Lease
	forgotten    []int64
	targets      []*Target
	groups       []*Group
	workers      []*Worker
	sessions     []*Session
	failures     []Failure
	findings     []Finding

	removed         []uint32
	droppedTargets  []uint32
	droppedWorkers  []uint32
	droppedSessions []string
}

// PairName names a pair by the numbers of its proxy and target.
type PairName struct{ Proxy, Target uint32 }

// Collect makes the state collect its changes for [State.Take].
func (s *State) Collect() { s.changed = &Changes{} }

func (c *Changes) proxy(p *Proxy, what dirty) {
	if c == nil {
		return
	}
	if p.dirty == 0 {
		c.proxies = append(c.proxies, p)
	}
	p.dirty |= what
}

func (c *Changes) removedProxy(p *Proxy) {
	if c != nil {
		c.removed = append(c.removed, p.n)
	}
}

func (c *Changes) pair(t *Target, place uint32) {
	if c == nil || t.slab[place].dirty != 0 {
		return
	}
	t.slab[place].dirty = dirtyAll
	c.pairs = append(c.pairs, pairRef{t.n + 1, place + 1})
}

func (c *Changes) droppedPair(t *Target, n uint32) {
	if c != nil {
		c.droppedPairs = append(c.droppedPairs, PairName{n, t.n})
	}
}

func (c *Changes) lease(l *Lease) {
	if c == nil || l.dirty != 0 {
		return
	}
	l.dirty = dirtyAll
	c.leases = append(c.leases, l)
}

func (c *Changes) forgot(n int64) {
	if c != nil {
		c.forgotten = append(c.forgotten, n)
	}
}

func (c *Changes) target(t *Target) {
	if c == nil || t.dirty != 0 {
		return
	}
	t.dirty = dirtyAll
	c.targets = append(c.targets, t)
}

func (c *Changes) droppedTarget(t *Target) {
	if c != nil {
		c.droppedTargets = append(c.droppedTargets, t.n)
	}
}

func (c *Changes) group(g *Group) {
	if c == nil || g.dirty != 0 {
		return
	}
	g.dirty = dirtyAll
	c.groups = append(c.groups, g)
}

func (c *Changes) worker(w *Worker) {
	if c == nil || w.dirty != 0 {
		return
	}
	w.dirty = dirtyAll
	c.workers = append(c.workers, w)
}

func (c *Changes) droppedWorker(w *Worker) {
	if c != nil {
		c.droppedWorkers = append(c.droppedWorkers, w.n)
	}
}

func (c *Changes) session(x *Session) {
	if c == nil || x.dirty != 0 {
		return
	}
	x.dirty = dirtyAll
	c.sessions = append(c.sessions, x)
}

func (c *Changes) droppedSession(x *Session) {
	if c != nil {
		c.droppedSessions = append(c.droppedSessions, x.Key)
	}
}

// Finding rewrites whose fault earlier failures were, once it is known: those of
// a proxy, or on a target, since a time, that were doubtful.
type Finding struct {
	Proxy, Target string // one of them is set
	Since         Time
	Fault         Fault
}

// Rewrites says whether a finding speaks of a failure.
func (f *Finding) Rewrites(x *Failure) bool {
	if x.At < f.Since || f.Proxy != "" && x.Proxy != f.Proxy || f.Target != "" && x.Target != f.Target {
		return false
	}
	return x.Class.Doubtful() && !x.Final
}

// Doubtful says whether a class leaves open whose fault it is: the proxy's or the target's.
func (c Class) Doubtful() bool {
	return c.Effect().Fault == FaultUnsure && c != ClassSuspectSoft || c == ClassPlainDenied
}

func (c *Changes) finding(f Finding) {
	if c != nil {
		c.findings = append(c.findings, f)
	}
}

func (c *Changes) failure(f Failure) {
	if c != nil {
		c.failures = append(c.failures, f)
	}
}

// Sink takes the changes of a state, each record once, removals first. The
// records belong to the state: a sink reads them before it returns.
type Sink interface {
	RemoveProxy(n uint32) error
	RemovePair(name PairName) error
	RemoveTarget(n uint32) error
	RemoveWorker(n uint32) error
	RemoveSession(key string) error
	Forget(lease int64) error // the number of an ended lease

	PutProxy(p *Proxy, parts Parts) error
	PutPair(name PairName, p *Pair) error
	PutTarget(t *Target) error
	PutGroup(g *Group) error
	PutWorker(w *Worker) error
	PutSession(x *Session) error
	PutLease(l *Lease) error // live, or ended
	PutFailure(f *Failure) error
	PutFinding(f *Finding) error // after the failures of the same batch
}

// Parts says which parts of a proxy's record changed.
type Parts struct{ Spec, Mech, Judge, Windows bool }

// Take hands all changes to a sink and forgets them. After an error the state
// and the store differ: throw the state away.
func (s *State) Take(sink Sink) error {
	c := s.changed
	if c == nil {
		return nil
	}
	err := s.takeRemovals(c, sink)
	if err == nil {
		err = s.takeRecords(c, sink)
	}
	c.reset()
	return err
}

func (s *State) takeRemovals(c *Changes, sink Sink) error {
	return firstError(
		func() error { return each(c.removed, sink.RemoveProxy) },
		func() error { return each(c.droppedPairs, sink.RemovePair) },
		func() error { return each(c.droppedTargets, sink.RemoveTarget) },
		func() error { return each(c.droppedWorkers, sink.RemoveWorker) },
		func() error { return each(c.droppedSessions, sink.RemoveSession) },
	)
}

func (s *State) takeRecords(c *Changes, sink Sink) error {
	return firstError(
		func() error { return each(c.proxies, func(p *Proxy) error { return s.takeProxy(p, sink) }) },
		func() error { return each(c.targets, func(t *Target) error { return s.takeTarget(t, sink) }) },
		func() error { return each(c.workers, func(w *Worker) error { return s.takeWorker(w, sink) }) },
		func() error { return each(c.pairs, func(ref pairRef) error { return s.takePair(ref, sink) }) },
		func() error { return each(c.groups, func(g *Group) error { g.dirty = 0; return sink.PutGroup(g) }) },
		func() error { return each(c.sessions, func(x *Session) error { return s.takeSession(x, sink) }) },
		func() error { return each(c.leases, func(l *Lease) error { return s.takeLease(l, sink) }) },
		func() error { return each(c.forgotten, sink.Forget) },
		func() error {
			return each(c.failures, func(f Failure) error { return sink.PutFailure(&f) })
		},
		func() error {
			return each(c.findings, func(f Finding) error { return sink.PutFinding(&f) })
		},
	)
}

func each[T any](list []T, do func(T) error) error {
	for _, v := range list {
		if err := do(v); err != nil {
			return err
		}
	}
	return nil
}

func firstError(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) takeProxy(p *Proxy, sink Sink) error {
	d := p.dirty
	p.dirty = 0
	if s.proxies[p.n] != p {
		return nil // removed since
	}
	return sink.PutProxy(p, Parts{
		Spec: d&dirtySpec != 0, Mech: d&dirtyMech != 0, Judge: d&dirtyJudge != 0, Windows: d&dirtyWindows != 0,
	})
}

func (s *State) takeTarget(t *Target, sink Sink) error {
	t.dirty = 0
	if s.targets[t.n] != t {
		return nil // dropped since
	}
	return sink.PutTarget(t)
}

func (s *State) takeWorker(w *Worker, sink Sink) error {
	w.dirty = 0
	if s.workers[w.n] != w {
		return nil // dropped since
	}
	return sink.PutWorker(w)
}

func (s *State) takePair(ref pairRef, sink Sink) error {
	t := s.targets[ref.target-1]
	if t == nil || int(ref.place) > len(t.slab) {
		return nil
	}
	pair := &t.slab[ref.place-1]
	pair.dirty = 0
	if !pair.used {
		return nil
	}
	return sink.PutPair(PairName{pair.Proxy, t.n}, pair)
}

func (s *State) takeSession(x *Session, sink Sink) error {
	x.dirty = 0
	if s.sessions[x.Key] != x {
		return nil
	}
	return sink.PutSession(x)
}

func (s *State) takeLease(l *Lease, sink Sink) error {
	l.dirty = 0
	if s.leases.get(l.Key) != l {
		return nil // forgotten in the same batch
	}
	err := sink.PutLease(l)
	l.stored = err == nil
	return err
}

func (c *Changes) reset() {
	clear(c.proxies)
	clear(c.leases)
	clear(c.failures)
	*c = Changes{
		proxies: c.proxies[:0], pairs: c.pairs[:0], droppedPairs: c.droppedPairs[:0], leases: c.leases[:0],
		forgotten: c.forgotten[:0], targets: c.targets[:0], groups: c.groups[:0],
		workers: c.workers[:0], sessions: c.sessions[:0], failures: c.failures[:0], findings: c.findings[:0], removed: c.removed[:0],
		droppedTargets: c.droppedTargets[:0], droppedWorkers: c.droppedWorkers[:0], droppedSessions: c.droppedSessions[:0],
	}
}

// Changed says whether there is anything for [State.Take].
func (s *State) Changed() bool {
	c := s.changed
	return c != nil && (len(c.proxies) > 0 || len(c.pairs) > 0 || len(c.droppedPairs) > 0 || len(c.leases) > 0 ||
		len(c.forgotten) > 0 || len(c.targets) > 0 || len(c.groups) > 0 || len(c.workers) > 0 ||
		len(c.sessions) > 0 || len(c.failures) > 0 || len(c.findings) > 0 || len(c.removed) > 0 || len(c.droppedTargets) > 0 ||
		len(c.droppedWorkers) > 0 || len(c.droppedSessions) > 0)
}

// ProxyByID finds a proxy's record, or nil.
func (s *State) ProxyByID(id proxy.ID) *Proxy {
	if n, ok := s.byID[id]; ok {
		return s.proxies[n]
	}
	return nil
}

// Stored says whether the store has the lease's record, as it was granted at least.
func (l *Lease) Stored() bool { return l.stored }

// Number is the proxy's number in the state; stores keep records by it.
func (p *Proxy) Number() uint32 { return p.n }

// Number is the target's number in the state.
func (t *Target) Number() uint32 { return t.n }

// Number is the worker's number in the state.
func (w *Worker) Number() uint32 { return w.n }
