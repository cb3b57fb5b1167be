package pool

import "github.com/tidwall/btree"

// hot is what picks read of a proxy, kept apart from the record so that a walk
// touches one cache line a candidate.
type hot struct {
	key     uint64 // its place in the sets, if free
	wake    Time   // the entry in its class's wakes that counts
	score   float32
	blocked uint32 // pairs that may rest: 0 saves the look at the pair
	class   uint16
	free    bool
	tier    tier
	status  Status
	full    bool
	used    bool // has live leases
}

// tier is the order in which the free are offered.
type tier uint8

const (
	tierNormal    tier = iota // new and active
	tierGated                 // failing now: see Gate
	tierProbation             // one trial after a rest
	numTiers
)

// selClass is a selector class: all proxies of one region, scheme and group.
type selClass struct {
	key      classKey
	folded   bool
	group    *Group
	free     [numTiers]btree.Set[uint64]
	count    [NumStatuses]int
	full     int // grantable by status, but in use up to the cap
	trials   int // of these: in probation
	used     int
	wakes    heap[uint32]
	openings []*opening
}

// opening lists the free proxies of one class that do not rest for one target.
// It is made when walking over those that rest has cost as much as making it,
// in chunks, kept by the same operations as the class's own sets, and dropped
// when less than a quarter rests.
type opening struct {
	target *Target
	cursor uint32 // proxies with a smaller number are in it
	free   [numTiers]btree.Set[uint64]
}

// numberBits of a set's key hold the proxy's number, the rest the time of its
// last start: longest rested first.
const (
	numberBits = 22
	maxProxies = 1 << numberBits
)

func restKey(lastStart Time, n uint32) uint64 {
	return uint64(max(lastStart, 0))<<numberBits | uint64(n)
}

func numberOf(key uint64) uint32 { return uint32(key & (maxProxies - 1)) }

// place puts a proxy where it belongs after any change: status, tier, sets,
// counts and next wake-up follow from its record, the policy and now.
func (s *State) place(n uint32) {
	p, h := s.proxies[n], &s.hot[n]
	class := s.classes[h.class]
	status := p.StatusAt(s.now)
	grantable := status <= StatusActive
	full := grantable && p.Mech.InUse >= p.capIn(status, &s.policy)

	s.recount(class, h, status, full, p.Mech.InUse > 0)
	tier := tierNormal
	switch {
	case status == StatusProbation:
		tier = tierProbation
	case p.Quality.GatedUntil > s.now:
		tier = tierGated
	}
	s.setFree(class, n, grantable && !full, tier, restKey(p.Mech.LastStart, n))
	h.score = p.Quality.scoreAt(s.now)
	if wake := p.wakeAt(s.now); wake != h.wake {
		h.wake = wake
		if wake != 0 {
			class.wakes.push(wake, n)
		}
	}
}

// recount keeps the counts of a class.
func (s *State) recount(c *selClass, h *hot, status Status, full, used bool) {
	if h.status != status {
		c.count[h.status]--
		c.count[status]++
	}
	c.full += delta(h.full, full)
	c.trials += delta(h.full && h.status == StatusProbation, full && status == StatusProbation)
	c.used += delta(h.used, used)
	h.status, h.full, h.used = status, full, used
}

func delta(before, after bool) int {
	switch {
	case before == after:
		return 0
	case after:
		return 1
	default:
		return -1
	}
}

// setFree moves a proxy in or out of the sets of its class and of the openings.
func (s *State) setFree(c *selClass, n uint32, free bool, tier tier, key uint64) {
	h := &s.hot[n]
	if h.free == free && (!free || h.tier == tier && h.key == key) {
		return
	}
	for _, o := range c.openings {
		if n >= o.cursor || s.rests(o.target, n) {
			continue
		}
		if h.free {
			o.free[h.tier].Delete(h.key)
		}
		if free {
			o.free[tier].Insert(key)
		}
	}
	if h.free {
		c.free[h.tier].Delete(h.key)
	}
	if free {
		c.free[tier].Insert(key)
	}
	h.free, h.tier, h.key = free, tier, key
}

// rests says whether the pair is counted as resting on the target.
func (s *State) rests(t *Target, n uint32) bool {
	if s.hot[n].blocked == 0 {
		return false
	}
	pair := t.pair(n)
	return pair != nil && pair.rests != restNone
}

// wake handles what fell due in a class.
func (s *State) wake(c *selClass) {
	for {
		e, ok := c.wakes.take(s.now)
		if !ok {
			return
		}
		if s.holdsWake(c, e.what, e.at) {
			s.place(e.what)
		}
	}
}

// nextWake is when the next proxy of the class changes by itself.
func (s *State) nextWake(c *selClass) (Time, bool) {
	for {
		at, ok := c.wakes.min()
		if !ok {
			return 0, false
		}
		if n := c.wakes[0].what; s.holdsWake(c, n, at) {
			return at, true
		}
		c.wakes.take(at) // it does not hold any more
	}
}

// holdsWake says whether an entry of the class's wakes is still the proxy's.
func (s *State) holdsWake(c *selClass, n uint32, at Time) bool {
	return int(n) < len(s.proxies) && s.proxies[n] != nil && s.hot[n].wake == at && s.classes[s.hot[n].class] == c
}

// openingOf gives the finished opening of a class for a target, if there is one.
func (t *Target) openingOf(class uint16) *opening {
	if int(class) < len(t.openings) {
		return t.openings[class]
	}
	return nil
}

// chunk is how many proxies one pick adds to an opening that is being made.
const chunk = 256

// keepOpening makes, continues or drops the opening of a class for a target.
func (s *State) keepOpening(t *Target, class uint16) {
	c := s.classes[class]
	for int(class) >= len(t.openings) {
		t.openings = append(t.openings, nil)
		t.skipped = append(t.skipped, 0)
		t.blocked = append(t.blocked, [2]int{})
	}
	o := t.openings[class]
	resting := t.blocked[class][0] + t.blocked[class][1]
	switch {
	case o == nil && t.skipped[class] > max(2*chunk, c.size()) && len(c.openings) < maxOpenings:
		o = &opening{target: t}
		t.openings[class] = o
		c.openings = append(c.openings, o)
		s.extendOpening(o, class)
	case o == nil:
		t.skipped[class] -= t.skipped[class] >> 10 // old walks count less and less
	case resting < c.size()/4:
		s.dropOpening(t, class)
	case int(o.cursor) < len(s.proxies):
		s.extendOpening(o, class)
	}
}

// maxOpenings bounds the openings of a class: each costs a little at every change.
const maxOpenings = 16

func (c *selClass) size() int {
	n := 0
	for _, k := range c.count {
		n += k
	}
	return n
}

func (s *State) extendOpening(o *opening, class uint16) {
	end := min(int(o.cursor)+chunk, len(s.proxies))
	for n := o.cursor; n < uint32(end); n++ {
		h := &s.hot[n]
		if s.proxies[n] != nil && h.class == class && h.free && !s.rests(o.target, n) {
			o.free[h.tier].Insert(h.key)
		}
	}
	o.cursor = uint32(end)
	if end == len(s.proxies) {
		o.cursor = maxProxies // later proxies are added as they come
	}
}

func (s *State) dropOpening(t *Target, class uint16) {
	c, o := s.classes[class], t.openings[class]
	for i := range c.openings {
		if c.openings[i] == o {
			c.openings = append(c.openings[:i], c.openings[i+1:]...)
			break
		}
	}
	t.openings[class] = nil
	t.skipped[class] = 0
}

// walkable gives the sets that a pick for the target walks in a class.
func (s *State) walkable(t *Target, class uint16) (sets *[numTiers]btree.Set[uint64], open bool) {
	if o := t.openingOf(class); o != nil && o.cursor == maxProxies {
		return &o.free, true
	}
	return &s.classes[class].free, false
}
