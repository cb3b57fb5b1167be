package pool

import "time"

// pair gives the record of a proxy on this target, or nil.
func (t *Target) pair(n uint32) *Pair {
	if place, ok := t.pairs[n]; ok {
		return &t.slab[place]
	}
	return nil
}

// newPair gives the place of a pair's record, made if there is none.
func (s *State) newPair(t *Target, n uint32) uint32 {
	if place, ok := t.pairs[n]; ok {
		return place
	}
	var place uint32
	if k := len(t.free); k > 0 {
		place = t.free[k-1]
		t.free = t.free[:k-1]
	} else {
		place = uint32(len(t.slab))
		t.slab = append(t.slab, Pair{})
	}
	p := s.proxies[n]
	t.slab[place] = Pair{Proxy: n, target: t.n, used: true, next: p.pairs, dirty: t.slab[place].dirty}
	p.pairs = pairRef{t.n + 1, place + 1}
	t.pairs[n] = place
	return place
}

// dropPair forgets a pair; one that still rests is counted out first.
func (s *State) dropPair(t *Target, n uint32) {
	place, ok := t.pairs[n]
	if !ok {
		return
	}
	if pair := &t.slab[place]; pair.rests != restNone {
		pair.NextOK, pair.Charge = 0, nil
		s.recountPair(t, place)
	}
	s.unlinkPair(n, pairRef{t.n + 1, place + 1})
	delete(t.pairs, n)
	s.changed.droppedPair(t, n)
	t.slab[place] = Pair{dirty: t.slab[place].dirty}
	t.free = append(t.free, place)
}

func (s *State) unlinkPair(n uint32, gone pairRef) {
	ref := &s.proxies[n].pairs
	for *ref != (pairRef{}) {
		pair := &s.targets[ref.target-1].slab[ref.place-1]
		if *ref == gone {
			*ref = pair.next
			return
		}
		ref = &pair.next
	}
}

// recountPair brings the counts and openings in line with how the pair rests
// now, and schedules the next look at it.
func (s *State) recountPair(t *Target, place uint32) {
	pair := &t.slab[place]
	n, before, after := pair.Proxy, pair.rests, pair.restAt(s.now)
	class := s.hot[n].class
	for int(class) >= len(t.blocked) {
		t.blocked = append(t.blocked, [2]int{})
		t.openings = append(t.openings, nil)
		t.skipped = append(t.skipped, 0)
	}
	if before != restNone {
		t.blocked[class][before-1]--
	}
	if after != restNone {
		t.blocked[class][after-1]++
		s.lookAt(t, pair, place)
	}
	pair.rests = after
	if (before == restNone) == (after == restNone) {
		return
	}
	o, h := t.openingOf(class), &s.hot[n]
	if after == restNone {
		h.blocked--
	} else {
		h.blocked++
	}
	if o == nil || n >= o.cursor || !h.free {
		return
	}
	if after == restNone {
		o.free[h.tier].Insert(h.key)
	} else {
		o.free[h.tier].Delete(h.key)
	}
}

// lookAt schedules the end of the pair's rest.
func (s *State) lookAt(t *Target, pair *Pair, place uint32) {
	if pair.Charge == nil {
		t.due.soon(pair.NextOK, place)
	} else {
		t.due.later(pair.blockedUntil(), place)
	}
}

// wakePairs handles the pairs of a target that fell due.
func (s *State) wakePairs(t *Target) {
	for {
		e, ok := t.due.take(s.now)
		if !ok {
			break
		}
		pair := &t.slab[e.what]
		if !pair.used || pair.rests == restNone || pair.blockedUntil() > s.now {
			continue // gone, or extended: then a later entry stands
		}
		s.recountPair(t, e.what)
		s.retire(t, pair, e.what)
	}
	for {
		e, ok := t.fading.take(s.now)
		if !ok {
			return
		}
		if pair := &t.slab[e.what]; pair.used && pair.rests == restNone && pair.lookAgain == e.at {
			s.retire(t, pair, e.what)
		}
	}
}

// nextDue is when the next rest on the target ends; ok is false when nothing rests.
func (t *Target) nextDue() (Time, bool) {
	for {
		e, ok := t.due.peek()
		if !ok {
			return 0, false
		}
		if pair := &t.slab[e.what]; pair.used && pair.rests != restNone && pair.blockedUntil() == e.at {
			return e.at, true
		}
		t.due.take(e.at) // it does not hold any more
	}
}

// chargeAge is how long an idle pair is remembered for what is held against it
// (docs/architecture.md, bounds).
const chargeAge = 24 * time.Hour

// keepUntil is how long a pair that rests no more is remembered: for its charge,
// or for its vote.
func (p *Pair) keepUntil() Time {
	if p.Charge != nil {
		return p.Charge.Touched.Add(chargeAge)
	}
	return epochEnd(p.Epoch)
}

// retire drops a pair that has nothing left to say, or looks again later.
func (s *State) retire(t *Target, pair *Pair, place uint32) {
	switch keep := pair.keepUntil(); {
	case keep <= s.now:
		s.dropPair(t, pair.Proxy)
	case pair.lookAgain <= s.now || keep < pair.lookAgain:
		pair.lookAgain = keep
		t.fading.soon(keep, place)
	}
}
