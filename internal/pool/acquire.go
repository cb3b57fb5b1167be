package pool

import (
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// Errors of Acquire.
var (
	// ErrCallEnded: the leases of this request_id have ended; a new attempt needs a new id.
	ErrCallEnded = errors.New("the lease of this request_id has ended")
	// ErrCallConflict: the same request_id came with another body.
	ErrCallConflict = errors.New("this request_id was used with another body")
)

// AcquireParams is one acquire. Its fields are validated by the caller.
type AcquireParams struct {
	CallID      string // the caller's request_id; "" = not idempotent
	Digest      uint64 // of the caller's body
	Repeat      bool   // answer only what was granted for CallID before: neither grants nor a refusal if nothing was
	Target      string
	Tenant      string
	Worker      string
	Concurrency int // the worker's, if it said
	Count       int // 1..100
	TTL         time.Duration
	Session     string
	Select      Selector
	LeastBad    bool
	Request     Request
}

// Grant is a lease with what its holder must know.
type Grant struct {
	Lease  Lease
	ID     proxy.ID
	Spec   *Spec // placeholders not filled: see Proxy
	Target string
	Worker string
}

// Proxy is how to reach the proxy, with the placeholders of a template filled.
func (g *Grant) Proxy() proxy.Proxy {
	if g.Spec.Exit == ExitTemplate {
		return g.Spec.Fill(g.Lease.More.Child, g.Spec.Region)
	}
	return g.Spec.Proxy
}

// AcquireResult is either grants or a refusal.
type AcquireResult struct {
	Grants  []Grant
	Refusal *Refusal
}

// Acquire filters, picks, marks and counts in one step. It grants between one
// and Count leases, or refuses with reasons.
func (s *State) Acquire(now Time, a AcquireParams, rng *rand.Rand) (AcquireResult, error) {
	s.tick(now)
	s.reclaim(8, rng)
	key := callKey{a.Tenant, a.CallID}
	if a.CallID != "" {
		if c, ok := s.calls[key]; ok {
			return s.again(c, &a)
		}
	}
	if a.Repeat {
		return AcquireResult{}, nil
	}
	s.avoidSent(&a)
	t := s.target(a.Target)
	t.LastUsed = s.now
	s.wakePairs(t)
	w := s.worker(a.Tenant, a.Worker)
	s.seen(w, a.Concurrency)
	q := &s.query
	q.reset(t, s.matchingClasses(&a.Select), &a.Select)
	for _, class := range q.classes {
		s.keepOpening(t, class)
	}
	var res AcquireResult
	for range max(1, a.Count) {
		if again := s.offline.until(s.now); again > s.now {
			q.close(ReasonOffline, again)
			break
		}
		if ok, again := s.paced(t); !ok {
			q.close(ReasonTargetPaced, again)
			t.pressed = true
			break
		}
		n, relaxed, sess, ok := s.choose(q, &a, rng)
		if !ok {
			break
		}
		lease := s.mark(n, t, w, sess, relaxed, &a, rng)
		res.Grants = append(res.Grants, s.grant(lease))
	}
	if len(res.Grants) == 0 {
		res.Refusal = s.refuse(q)
	}
	return res, nil
}

// again answers a repeated request_id.
func (s *State) again(c *call, a *AcquireParams) (AcquireResult, error) {
	if c.digest != a.Digest {
		return AcquireResult{}, ErrCallConflict
	}
	if len(c.live) == 0 {
		return AcquireResult{}, ErrCallEnded
	}
	var res AcquireResult
	for _, lease := range c.live {
		res.Grants = append(res.Grants, s.grant(lease))
	}
	return res, nil
}

// close says that something else than the want of proxies ended the query.
func (q *query) close(why Reason, again Time) { q.closed, q.why, q.again = true, why, again }

func (q *query) reset(t *Target, classes []uint16, sel *Selector) {
	*q = query{target: t, classes: classes, sel: sel, oneByOne: sel.oneByOne(), looks: lookLimit}
}

// seen notes a sign of life of a worker. That alone is not worth a write: after
// a restart its leases tell when it was seen.
func (s *State) seen(w *Worker, concurrency int) {
	w.LastSeen = s.now
	if concurrency > 0 && concurrency != w.Concurrency {
		w.Concurrency = concurrency
		s.changed.worker(w)
	}
}

// choose picks a proxy for one lease: the session's own if it has one, else by the rule.
func (s *State) choose(q *query, a *AcquireParams, rng *rand.Rand) (n uint32, relaxed bool, sess *Session, ok bool) {
	if a.Session != "" {
		sess = s.sessions[a.Session]
		if sess != nil {
			n, ok, stay := s.sessionProxy(q, sess)
			if stay {
				return n, false, sess, ok
			}
		}
	}
	if n, ok = s.pick(q, rng); ok {
		return n, false, sess, true
	}
	if a.LeastBad {
		q.relax = true
		q.looksAgain() // the same proxies are looked at a second time, and count once
		n, ok = s.pick(q, rng)
		q.relax = false
	}
	return n, ok, sess, ok
}

// mark makes the lease and counts it everywhere. Use is counted here, not at
// the end: what is counted late is granted twice.
func (s *State) mark(n uint32, t *Target, w *Worker, sess *Session, relaxed bool, a *AcquireParams, rng *rand.Rand) *Lease {
	p := s.proxies[n]
	s.lastLease++
	lease := &Lease{
		N: s.lastLease, Key: Key{uint64(s.lastLease), rng.Uint64()}, Proxy: n, Target: t.n, Worker: w.n,
		Granted: s.now, TTL: a.TTL, Band: s.band(p), More: noMore,
	}
	if lease.TTL <= 0 {
		lease.TTL = s.policy.TTL
	}
	lease.Hard = s.now.Add(s.policy.MaxLifetime)
	lease.Deadline = min(s.now.Add(lease.TTL), lease.Hard)
	if lease.Gap = -1; p.Mech.LastStart != 0 {
		lease.Gap = s.now.Sub(p.Mech.LastStart)
	}
	lease.Fresh = t.pair(n) == nil
	lease.RestEnd = s.countStart(p, t)
	s.startOn(t, lease)
	s.offline.start(lease)
	if p.group != nil {
		p.group.Circuit.start(lease)
	}
	lease.Fence = p.Mech.Fence
	if more := s.more(a, relaxed, sess, p, rng); more != (More{}) {
		lease.More = &more
	}
	s.register(lease)
	w.Leases++
	w.count(lease)
	s.totals.Granted++
	s.changed.lease(lease)
	return lease
}

// register puts a lease into the tables that find it.
func (s *State) register(lease *Lease) {
	s.leases.put(lease)
	s.expiring.soon(lease.Deadline, lease.N)
	if lease.More.CallID == "" {
		return
	}
	key := s.callOf(lease)
	c := s.calls[key]
	if c == nil {
		c = &call{digest: lease.More.Digest}
		s.calls[key] = c
	}
	c.live = append(c.live, lease)
}

// noMore is the More of leases that have nothing of it.
var noMore = &More{}

// more gathers what only some leases have.
func (s *State) more(a *AcquireParams, relaxed bool, sess *Session, p *Proxy, rng *rand.Rand) More {
	m := More{CallID: a.CallID, Digest: a.Digest, Session: a.Session, Request: a.Request, Relaxed: relaxed}
	if m.CallID == "" {
		m.Digest = 0
	} else {
		m.Tenant = a.Tenant
	}
	if p.Spec.Exit == ExitTemplate || a.Session != "" {
		s.bindSession(&m, sess, p, rng)
	}
	return m
}

// callOf names the acquire that made the lease.
func (s *State) callOf(lease *Lease) callKey {
	return callKey{lease.More.Tenant, lease.More.CallID}
}

// countStart counts a use of the proxy and starts the pair's rest, whose end it tells.
func (s *State) countStart(p *Proxy, t *Target) (restEnd Time) {
	m := &p.Mech
	m.Uses++
	m.Fence = max(m.Fence+1, int64(s.now)*1024)
	m.LastStart = s.now
	m.InUse++
	if reuse := s.reuseOf(t.n); p.Spec.Exit == ExitStatic && reuse > 0 {
		restEnd = s.now.Add(reuse)
		s.restPair(t, p.n, restEnd)
	}
	s.place(p.n)
	s.changed.proxy(p, dirtyMech)
	return restEnd
}

// restPair keeps a pair from starting before a time.
func (s *State) restPair(t *Target, n uint32, until Time) {
	if until <= s.now {
		return
	}
	place := s.newPair(t, n)
	if pair := &t.slab[place]; until > pair.NextOK {
		pair.NextOK = until
		s.recountPair(t, place)
		s.changed.pair(t, place)
	}
}

// band is the proxy's standing at the lease.
func (s *State) band(p *Proxy) Band {
	switch status := s.hot[p.n].status; {
	case status == StatusProbation && p.Judge.Level > 0:
		return BandAfterCooldown
	case status != StatusActive:
		return BandProbation
	case p.Quality.Score >= 0.9:
		return BandHigh
	case p.Quality.Score >= 0.7:
		return BandMid
	default:
		return BandLow
	}
}

// grant is what the holder gets to know of a live lease.
func (s *State) grant(lease *Lease) Grant {
	p := s.proxies[lease.Proxy]
	return Grant{
		Lease: *lease, ID: p.ID, Spec: p.Spec, Target: s.targets[lease.Target].Name, Worker: s.workers[lease.Worker].Name,
	}
}

// childID makes the session id that goes into a template: vendors allow only
// letters and digits, and few of them.
func childID(key string, salt uint64) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	_, _ = h.Write(strconv.AppendUint(nil, salt, 16))
	return strconv.FormatUint(h.Sum64(), 36)
}
