package pool

import (
	"fmt"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// Import is one proxy of a list.
type Import struct {
	ID   proxy.ID
	Spec Spec
	// Listed says that Spec is all that its source says of the proxy: what it
	// leaves out is emptied. It counts if the source speaks for the proxy; a
	// further source only vouches for it.
	Listed bool
	// Succeeds is the proxy whose record this one takes over because only the
	// password changed; zero = none. See [State.predecessor].
	Succeeds proxy.ID
}

// Imported says what an import did with one proxy.
type Imported uint8

// The results of an import.
const (
	ImportedNew       Imported = iota
	ImportedUpdated            // known, and something that the list says of it changed
	ImportedDuplicate          // known, nothing changed
	ImportedFull               // the pool cannot hold more
	ImportedRenewed            // known under another password: the record goes on
)

// Import adds proxies, or updates what the list says of known ones. State,
// leases and rests of known proxies stay as they are.
func (s *State) Import(now Time, list []Import) []Imported { return s.imports(now, list, false) }

// TryImport tells what Import would do, each proxy by itself.
func (s *State) TryImport(now Time, list []Import) []Imported { return s.imports(now, list, true) }

func (s *State) imports(now Time, list []Import, dry bool) []Imported {
	s.tick(now)
	out := make([]Imported, len(list))
	for i := range list {
		item := list[i]
		item.Spec.Labels = s.intern(item.Spec.Labels)
		if n, ok := s.byID[item.ID]; ok {
			out[i] = s.update(s.proxies[n], &item, dry)
		} else if p := s.predecessor(&item); p != nil {
			out[i] = ImportedRenewed
			if !dry {
				s.renew(p, &item)
			}
		} else if !dry {
			out[i] = s.add(item.ID, item.Spec)
		}
	}
	return out
}

func (s *State) add(id proxy.ID, spec Spec) Imported {
	n, ok := s.newNumber()
	if !ok {
		return ImportedFull
	}
	if spec.AddedAt == 0 {
		spec.AddedAt = s.now
	}
	p := &Proxy{ID: id, Spec: &spec, n: n, Judge: Judgement{Earned: 1}, Quality: Quality{Score: priorScore}}
	s.attach(p)
	s.changed.proxy(p, dirtyAll)
	return ImportedNew
}

// priorScore is the score of a proxy of which nothing is known: the Wilson-low
// (z = 1) of an even chance at the shrinkage weight of 8 (docs/policy.md).
const priorScore = 0.3333

func (s *State) intern(l Labels) Labels {
	if known, ok := s.labels[l]; ok {
		return known
	}
	s.labels[l] = l
	return l
}

func (s *State) newNumber() (uint32, bool) {
	if k := len(s.numbers); k > 0 {
		n := s.numbers[k-1]
		s.numbers = s.numbers[:k-1]
		return n, true
	}
	if len(s.proxies) == maxProxies-1 {
		return 0, false
	}
	s.proxies = append(s.proxies, nil)
	s.hot = append(s.hot, hot{})
	return uint32(len(s.proxies) - 1), true
}

// update takes what a list says of a known proxy. One that was on its way out
// comes back as its list has it now.
func (s *State) update(p *Proxy, item *Import, dry bool) Imported {
	known := *p.Spec
	if p.Admin.Remove {
		known.Source = item.Spec.Source
	}
	spec := item.over(known)
	if spec == *p.Spec && !p.Admin.Remove {
		return ImportedDuplicate
	}
	if dry {
		return ImportedUpdated
	}
	if p.Admin.Remove {
		p.Admin = Admin{}
	}
	s.respec(p, spec)
	return ImportedUpdated
}

// over is what is said of a known proxy from now on: what a list does not say
// stays, unless its source speaks for the proxy.
func (i *Import) over(spec Spec) Spec {
	say := &i.Spec
	spec.Source = addSource(spec.Source, say.Source)
	if i.Listed {
		if sourceNames(spec.Source)[0] != say.Source {
			return spec
		}
		spec.Region, spec.Group, spec.Labels, spec.Exit, spec.Cap, spec.ExpiresAt = say.Region, say.Group, say.Labels, say.Exit, say.Cap, say.ExpiresAt
		return spec
	}
	setIf(&spec.Region, say.Region)
	setIf(&spec.Group, say.Group)
	setIf(&spec.Labels, say.Labels)
	setIf(&spec.Exit, say.Exit)
	setIf(&spec.Cap, say.Cap)
	setIf(&spec.ExpiresAt, say.ExpiresAt)
	return spec
}

func setIf[T comparable](to *T, v T) {
	var zero T
	if v != zero {
		*to = v
	}
}

// respec puts a changed spec in force.
func (s *State) respec(p *Proxy, spec Spec) {
	if keyOf(&spec) != keyOf(p.Spec) {
		s.detach(p)
		p.Spec = &spec
		s.attach(p)
	} else {
		p.Spec = &spec
		s.place(p.n)
	}
	s.changed.proxy(p, dirtySpec)
}

// attach enters a proxy, with the pairs it has, under its number.
func (s *State) attach(p *Proxy) {
	class := s.classFor(p.Spec)
	p.group = s.group(p.Spec.Group)
	s.proxies[p.n] = p
	s.byID[p.ID] = p.n
	s.hot[p.n] = hot{class: class, status: p.StatusAt(s.now)}
	s.classes[class].count[s.hot[p.n].status]++
	for ref := p.pairs; ref != (pairRef{}); {
		t, place := s.targets[ref.target-1], ref.place-1
		ref = t.slab[place].next
		s.recountPair(t, place)
		if pair := &t.slab[place]; pair.rests == restNone {
			s.retire(t, pair, place) // its rest ended unseen
		}
	}
	s.place(p.n)
}

// detach takes a proxy out of its class; its number stays its own.
func (s *State) detach(p *Proxy) {
	h := &s.hot[p.n]
	c := s.classes[h.class]
	s.setFree(c, p.n, false, h.tier, h.key)
	s.recount(c, h, h.status, false, false)
	c.count[h.status]--
	for ref := p.pairs; ref != (pairRef{}); {
		t := s.targets[ref.target-1]
		pair := &t.slab[ref.place-1]
		if pair.rests != restNone {
			t.blocked[h.class][pair.rests-1]--
			pair.rests = restNone
		}
		ref = pair.next
	}
	delete(s.byID, p.ID)
}

// remove takes a proxy that holds no lease out of the pool.
func (s *State) remove(p *Proxy) {
	s.loseSessions(p.n)
	for p.pairs != (pairRef{}) {
		t := s.targets[p.pairs.target-1]
		s.dropPair(t, p.n)
	}
	s.detach(p)
	s.proxies[p.n] = nil
	s.hot[p.n] = hot{}
	s.quarantined = append(s.quarantined, quarantine{p.n, s.now})
	s.changed.removedProxy(p)
}

// quarantine keeps the number of a removed proxy until no tomb speaks of it.
type quarantine struct {
	n  uint32
	at Time
}

// freeNumbers gives numbers back that no tomb speaks of any more.
func (s *State) freeNumbers() {
	for len(s.quarantined) > 0 && s.quarantined[0].at.Add(tombAge) < s.now {
		s.numbers = append(s.numbers, s.quarantined[0].n)
		s.quarantined = s.quarantined[1:]
	}
}

// Patch is an operator's change; nil fields leave things as they are.
type Patch struct {
	// State is StatusActive (resume), StatusDraining or StatusDisabled.
	State     *Status
	Reason    string
	Until     Time
	Cap       *int
	Labels    *Labels
	Region    *string
	ExpiresAt *Time
}

// Filter selects proxies; empty fields take all.
type Filter struct {
	ID     *proxy.ID
	Status *Status
	View   string // "", ready, leased, full
	Region string
	Group  string
	Source string
	Label  [2]string // key, value
}

// Patch applies an operator's change to all proxies that the filter takes, and
// tells how many; with dry it only counts.
func (s *State) Patch(now Time, f Filter, change Patch, dry bool) (int, error) {
	s.tick(now)
	if change.State != nil {
		switch *change.State {
		case StatusActive, StatusDraining, StatusDisabled:
		default:
			return 0, fmt.Errorf("state %q cannot be ordered: use active, draining or disabled", *change.State)
		}
	}
	count := 0
	s.eachMatch(&f, func(p *Proxy) {
		count++
		if !dry {
			s.patch(p, &change)
		}
	})
	return count, nil
}

func (s *State) patch(p *Proxy, c *Patch) {
	if c.State != nil {
		s.orderState(p, *c.State, c)
	}
	spec := *p.Spec
	if c.Cap != nil {
		spec.Cap = *c.Cap
	}
	if c.Labels != nil {
		spec.Labels = s.intern(*c.Labels)
	}
	if c.Region != nil {
		spec.Region = *c.Region
	}
	if c.ExpiresAt != nil {
		spec.ExpiresAt = *c.ExpiresAt
	}
	s.respec(p, spec)
}

// orderState puts an operator's state in force. Whoever was out for any reason
// comes back through probation.
func (s *State) orderState(p *Proxy, state Status, c *Patch) {
	j := &p.Judge
	j.Version++
	if state == StatusActive {
		p.Admin = Admin{}
		j.State, j.Trials, j.Slots = StatusProbation, 0, Slots{}
	} else {
		p.Admin = Admin{State: state, Until: c.Until, Reason: c.Reason}
		if j.State == StatusActive {
			j.State, j.Trials = StatusProbation, 0
		}
	}
	s.changed.proxy(p, dirtySpec|dirtyJudge)
}

// Remove drains all proxies that the filter takes; each is gone when its last
// lease ends. It tells how many.
func (s *State) Remove(now Time, f Filter) int {
	s.tick(now)
	var list []*Proxy
	s.eachMatch(&f, func(p *Proxy) { list = append(list, p) })
	for _, p := range list {
		s.discard(p, "removed")
	}
	return len(list)
}

// eachMatch calls do for every proxy that the filter takes, by number.
func (s *State) eachMatch(f *Filter, do func(*Proxy)) {
	if f.ID != nil {
		if p := s.ProxyByID(*f.ID); p != nil && s.matches(f, p) {
			do(p)
		}
		return
	}
	for _, p := range s.proxies {
		if p != nil && s.matches(f, p) {
			do(p)
		}
	}
}

func (s *State) matches(f *Filter, p *Proxy) bool {
	h := &s.hot[p.n]
	switch f.View {
	case "ready":
		if !h.free {
			return false
		}
	case "leased":
		if !h.used {
			return false
		}
	case "full":
		if !h.full {
			return false
		}
	}
	return (f.Status == nil || *f.Status == h.status) &&
		(f.Region == "" || f.Region == p.Spec.Region) &&
		(f.Group == "" || f.Group == p.Spec.Group) &&
		(f.Source == "" || p.Spec.HasSource(f.Source)) &&
		(f.Label[0] == "" || p.Spec.Labels.Has(f.Label[0], f.Label[1]))
}
