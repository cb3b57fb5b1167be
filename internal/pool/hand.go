package pool

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// The methods of this file are an operator's hand on what runs: leases are taken
// back, sessions sent on, holds of groups released.

// LeaseFilter selects live leases; empty fields take all.
type LeaseFilter struct {
	Short   string // the first eight characters of the id, as views show them
	Worker  string
	Target  string
	Session string
	Proxy   *proxy.ID
}

// shown is how many of the things that an operator's act takes are shown.
const shown = 20

// Revoke ends all live leases that the filter takes, as EndRevoke says; with dry
// it only tells. It gives how many they are, and the first 20, oldest first.
func (s *State) Revoke(now Time, f LeaseFilter, dry bool, rng *rand.Rand) (count int, first []LeaseView) {
	s.tick(now)
	var list []*Lease
	s.leases.eachLive(func(l *Lease) {
		if s.takes(&f, l) {
			list = append(list, l)
		}
	})
	slices.SortFunc(list, func(a, b *Lease) int { return cmp.Compare(a.N, b.N) })
	for _, l := range list[:min(shown, len(list))] {
		first = append(first, s.leaseView(l))
	}
	if dry {
		return len(list), first
	}
	for _, l := range list {
		s.end(l, EndRevoke, &Outcome{}, rng)
	}
	return len(list), first
}

func (s *State) takes(f *LeaseFilter, l *Lease) bool {
	return (f.Short == "" || f.Short == l.Key.Short()) &&
		(f.Worker == "" || f.Worker == s.workers[l.Worker].Name) &&
		(f.Target == "" || f.Target == s.targets[l.Target].Name) &&
		(f.Session == "" || f.Session == l.More.Session) &&
		(f.Proxy == nil || *f.Proxy == s.proxies[l.Proxy].ID)
}

func (s *State) leaseView(l *Lease) LeaseView {
	return LeaseView{*l, s.proxies[l.Proxy].ID.String(), s.targets[l.Target].Name, s.workers[l.Worker].Name}
}

// SessionFilter selects a page of sessions.
type SessionFilter struct {
	Proxy *proxy.ID
	After string // only keys behind this one
	Limit int
}

// Sessions copies sessions in the order of their keys, and tells whether there
// are more.
func (s *State) Sessions(now Time, f SessionFilter) (list []Session, more bool) {
	s.tick(now)
	keys := s.firstKeys(&f)
	for _, key := range keys[:min(f.Limit, len(keys))] {
		list = append(list, *s.sessions[key])
	}
	return list, len(keys) > f.Limit
}

// firstKeys gives the first keys of a page in order, and one more if there is.
// It never sorts more than a few pages at once: there may be very many sessions.
func (s *State) firstKeys(f *SessionFilter) []string {
	var keys []string
	most := f.Limit + 1
	cut := func() {
		slices.Sort(keys)
		keys = keys[:min(most, len(keys))]
	}
	last := "" // no key behind it is wanted any more; "" = not known yet
	for key, sess := range s.sessions {
		if key <= f.After || last != "" && key > last || f.Proxy != nil && *f.Proxy != sess.ProxyID {
			continue
		}
		if keys = append(keys, key); len(keys) >= 4*most {
			cut()
			last = keys[len(keys)-1]
		}
	}
	cut()
	return keys
}

// MoveSession sends a session to another proxy: its next lease gets one, and
// says that it moved. Live leases go on. It tells whether there was a session.
func (s *State) MoveSession(now Time, key string) (Session, bool) {
	s.tick(now)
	sess := s.sessions[key]
	if sess == nil {
		return Session{}, false
	}
	sess.gone, sess.Sent = true, true
	s.changed.session(sess)
	return *sess, true
}

// avoidSent keeps a session that was sent on from the proxy that it had; a
// template gives it another child instead.
func (s *State) avoidSent(a *AcquireParams) {
	sess := s.sessions[a.Session]
	if sess == nil || !sess.Sent || !s.has(sess.Proxy) || s.proxies[sess.Proxy].Spec.Exit == ExitTemplate {
		return
	}
	a.Select.Exclude = append(slices.Clip(a.Select.Exclude), sess.ProxyID)
}

// ReleaseGroup ends the hold of a group and forgets how often it was held. It
// tells until when it was held, 0 = not at all, and whether there is such a group.
func (s *State) ReleaseGroup(now Time, name string) (held Time, ok bool) {
	s.tick(now)
	g := s.groups[name]
	if g == nil {
		return 0, false
	}
	if g.HoldUntil > s.now {
		held = g.HoldUntil
	}
	g.HoldUntil, g.HoldSteps = 0, 0
	s.changed.group(g)
	return held, true
}
