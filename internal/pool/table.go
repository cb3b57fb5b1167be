package pool

// pageSize is the number of leases in a page of the table.
const pageSize = 256

// table finds leases by number. Numbers grow, so that leases that live at the
// same time stand close together: a look-up costs no hash of a random key, and
// one long tunnel pins a page of pointers, not its neighbours' records.
type table struct {
	pages map[int64]*page
	live  int
}

type page struct {
	slots [pageSize]*Lease
	alive [pageSize]bool // apart from the records: most looks need no more
	used  int
}

// tomb is an ended lease in the line of those that go.
type tomb struct {
	n     int64
	ended Time
	call  bool // it belongs to an idempotent acquire
}

// number finds a lease by its number alone.
func (t *table) number(n int64) *Lease {
	if p := t.pages[n/pageSize]; p != nil {
		return p.slots[n%pageSize]
	}
	return nil
}

// isLive says whether a lease has not ended.
func (t *table) isLive(n int64) bool {
	p := t.pages[n/pageSize]
	return p != nil && p.alive[n%pageSize]
}

// get finds a lease, live or ended; nil if there is none, or the key is another's.
func (t *table) get(key Key) *Lease {
	l := t.number(int64(key[0] &^ (1 << 63)))
	if l == nil || l.Key != key {
		return nil
	}
	return l
}

// alive finds a live lease.
func (t *table) alive(key Key) *Lease {
	if l := t.get(key); l != nil && l.Live() {
		return l
	}
	return nil
}

func (t *table) put(l *Lease) {
	p := t.pages[l.N/pageSize]
	if p == nil {
		p = &page{}
		t.pages[l.N/pageSize] = p
	}
	p.slots[l.N%pageSize] = l
	p.used++
	if l.Live() {
		p.alive[l.N%pageSize] = true
		t.live++
	}
}

// end counts the end of a live lease; its record stays.
func (t *table) end(n int64) {
	t.pages[n/pageSize].alive[n%pageSize] = false
	t.live--
}

// drop forgets an ended lease.
func (t *table) drop(n int64) *Lease {
	p := t.pages[n/pageSize]
	l := p.slots[n%pageSize]
	p.slots[n%pageSize] = nil
	if p.used--; p.used == 0 {
		delete(t.pages, n/pageSize)
	}
	return l
}

// each calls do for every lease that is live or not, in no order.
func (t *table) each(live bool, do func(*Lease)) {
	for _, p := range t.pages {
		for i, l := range p.slots {
			if l != nil && p.alive[i] == live {
				do(l)
			}
		}
	}
}

func (t *table) eachLive(do func(*Lease)) { t.each(true, do) }

func (t *table) eachEnded(do func(*Lease)) { t.each(false, do) }
