package pool

import (
	"slices"
	"strings"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// A proxy's Spec.Source names those who vouch for it, in the order in which they
// came, with commas between. The first one speaks for the proxy: its region,
// labels and so on. Each refresh of a source takes only its own name off; the
// proxy goes with the last name. "" is ByHand alone.

// ByHand is the name of the operator among the sources of a proxy.
const ByHand = "hand"

// maxSources bounds the names that one proxy keeps; a further one does not
// vouch, and brings the proxy in again if all others leave it.
const maxSources = 16

func sourceNames(text string) []string {
	if text == "" {
		return []string{ByHand}
	}
	return strings.Split(text, ",")
}

func sourceText(names []string) string {
	if len(names) == 1 && names[0] == ByHand {
		return ""
	}
	return strings.Join(names, ",")
}

// HasSource says whether one of the names is that of a source; "" is the operator.
func (s *Spec) HasSource(name string) bool {
	if s.Source == name {
		return true
	}
	if name == "" {
		name = ByHand
	}
	return slices.Contains(sourceNames(s.Source), name)
}

// addSource adds a name behind those that vouch already; "" is the operator.
func addSource(text, name string) string {
	if text == name { // by far the most common
		return text
	}
	if name == "" {
		name = ByHand
	}
	names := sourceNames(text)
	if slices.Contains(names, name) || len(names) >= maxSources {
		return text
	}
	return sourceText(append(names, name))
}

// dropSource takes a name off; none is left when ok is false.
func dropSource(text, name string) (rest string, ok bool) {
	names := slices.DeleteFunc(sourceNames(text), func(n string) bool { return n == name })
	return sourceText(names), len(names) > 0
}

// Listed is a proxy that a source vouches for.
type Listed struct {
	ID   proxy.ID
	Spec *Spec // not to be changed
}

// OfSource lists the proxies that a source vouches for, without those that are
// on their way out.
func (s *State) OfSource(name string) []Listed {
	var list []Listed
	for _, p := range s.proxies {
		if p != nil && !p.Admin.Remove && p.Spec.HasSource(name) {
			list = append(list, Listed{p.ID, p.Spec})
		}
	}
	return list
}

// Leave takes a source's name off proxies. One that nobody else vouches for
// drains, and is gone when its last lease ends. It tells how many leave the pool
// and how many stay for others; with dry it only counts.
func (s *State) Leave(now Time, source string, ids []proxy.ID, dry bool) (gone, kept int) {
	s.tick(now)
	for _, id := range ids {
		p := s.ProxyByID(id)
		if p == nil || p.Admin.Remove || !p.Spec.HasSource(source) {
			continue
		}
		rest, ok := dropSource(p.Spec.Source, source)
		if !ok {
			gone++
		} else {
			kept++
		}
		switch {
		case dry:
		case ok:
			spec := *p.Spec
			spec.Source = rest
			s.respec(p, spec)
		default:
			s.discard(p, "no longer listed by "+source)
		}
	}
	return gone, kept
}

// discard takes a proxy out of the pool, at once or with its last lease.
func (s *State) discard(p *Proxy, reason string) {
	if p.Mech.InUse == 0 {
		s.remove(p)
		return
	}
	p.Admin = Admin{State: StatusDraining, Remove: true, Reason: reason}
	s.place(p.n)
	s.changed.proxy(p, dirtySpec)
}

// predecessor finds the record that an item takes over: that of the same source
// alone, which differs in nothing but the password.
func (s *State) predecessor(item *Import) *Proxy {
	if item.Succeeds.IsZero() {
		return nil
	}
	p := s.ProxyByID(item.Succeeds)
	if p == nil || p.Admin.Remove || p.Spec.Source != item.Spec.Source {
		return nil
	}
	was, is := p.Spec.Proxy, item.Spec.Proxy
	was.Password, is.Password = "", ""
	if was != is {
		return nil
	}
	return p
}

// renew gives a record another identity: its number, and so its leases, rests
// and counts, stay. Ids of old leases still find it while their tombs stand.
func (s *State) renew(p *Proxy, item *Import) {
	delete(s.byID, p.ID)
	p.ID = item.ID
	s.byID[p.ID] = p.n
	if line := s.sessionsOf[p.n]; line != nil {
		for e := line.Front(); e != nil; e = e.Next() {
			sess := e.Value.(*Session)
			sess.ProxyID = p.ID
			s.changed.session(sess)
		}
	}
	spec := item.over(*p.Spec)
	spec.Password = item.Spec.Password
	s.respec(p, spec)
}
