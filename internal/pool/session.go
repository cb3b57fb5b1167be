package pool

import (
	"container/list"
	"math/rand/v2"
)

// sessionProxy says whether the session keeps its proxy (stay), and whether the
// proxy can be had now. A proxy that is merely busy is waited for; one that
// rests, left, or does not fit is left.
func (s *State) sessionProxy(q *query, sess *Session) (n uint32, ok, stay bool) {
	if sess.gone {
		return 0, false, false
	}
	if sess.Child != "" && sess.Leases >= s.policy.Caps.Child {
		s.explainSession(q, ReasonLeased, sess.Proxy)
		return 0, false, true
	}
	reason, ok := s.eligible(q, sess.Proxy)
	switch {
	case ok:
		return sess.Proxy, true, true
	case reason == ReasonLeased || reason == ReasonReuseInterval || reason == ReasonProbation:
		s.explainSession(q, reason, sess.Proxy)
		return 0, false, true
	default:
		return 0, false, false
	}
}

// explainSession narrows a refusal to the session's own proxy: all others are
// beside the question.
func (s *State) explainSession(q *query, reason Reason, n uint32) {
	q.classes = nil
	q.seen = [NumReasons]int{}
	q.seen[reason] = 1
	q.own = &s.hot[n]
}

// bindSession ties the lease to its session, or mints a child for it.
func (s *State) bindSession(lease *More, sess *Session, p *Proxy, rng *rand.Rand) {
	if lease.Session == "" {
		lease.Child = childID(p.ID.String(), rng.Uint64()) // an unstored child
		return
	}
	if sess != nil && (sess.Proxy != p.n || sess.gone) {
		lease.Moved, lease.Previous = true, sess.ProxyID
		s.dropSession(sess)
		sess = nil
	}
	if sess == nil {
		sess = &Session{Key: lease.Session, Proxy: p.n, ProxyID: p.ID}
		if p.Spec.Exit == ExitTemplate {
			sess.Child = childID(lease.Session, rng.Uint64())
			s.makeRoom(p.n)
		}
		s.addSession(sess)
	}
	sess.LastUsed = s.now
	sess.Leases++
	lease.Child = sess.Child
	sess.line.MoveToBack(sess.place)
	s.changed.session(sess)
}

// addSession enters a session; each proxy keeps its sessions by last use.
func (s *State) addSession(sess *Session) {
	line := s.sessionsOf[sess.Proxy]
	if line == nil {
		line = list.New()
		s.sessionsOf[sess.Proxy] = line
	}
	sess.line, sess.place = line, line.PushBack(sess)
	s.sessions[sess.Key] = sess
}

// endSession takes one lease off its session.
func (s *State) endSession(lease *Lease, drop bool) {
	if lease.More.Session == "" {
		return
	}
	sess := s.sessions[lease.More.Session]
	if sess == nil || sess.Proxy != lease.Proxy || sess.Child != lease.More.Child {
		return
	}
	sess.Leases = max(0, sess.Leases-1)
	sess.LastUsed = s.now
	sess.gone = sess.gone || drop // kept, so that the next lease says that it moved
	sess.line.MoveToBack(sess.place)
	s.changed.session(sess)
}

func (s *State) dropSession(sess *Session) {
	sess.line.Remove(sess.place)
	if sess.line.Len() == 0 {
		delete(s.sessionsOf, sess.Proxy)
	}
	delete(s.sessions, sess.Key)
	s.changed.droppedSession(sess)
}

// makeRoom drops the least recently used child of a template that has too many.
func (s *State) makeRoom(n uint32) {
	line := s.sessionsOf[n]
	if line == nil || line.Len() < s.policy.Sessions.MaxChildren {
		return
	}
	for e := line.Front(); e != nil; e = e.Next() {
		if sess := e.Value.(*Session); sess.Leases == 0 {
			s.dropSession(sess)
			return
		}
	}
}

// sweepSessions forgets sessions that nobody used for long.
func (s *State) sweepSessions() {
	for _, line := range s.sessionsOf {
		for e := line.Front(); e != nil; {
			sess := e.Value.(*Session)
			e = e.Next()
			if sess.LastUsed.Add(s.policy.Sessions.Idle) > s.now {
				break
			}
			if sess.Leases == 0 {
				s.dropSession(sess)
			}
		}
	}
}

// loseSessions ends the sessions of a proxy that leaves the pool; they stay
// until their next lease, which says that it moved.
func (s *State) loseSessions(n uint32) {
	line := s.sessionsOf[n]
	if line == nil {
		return
	}
	for e := line.Front(); e != nil; {
		sess := e.Value.(*Session)
		e = e.Next()
		s.dropSession(sess)
	}
}
