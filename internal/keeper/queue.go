package keeper

import (
	"container/list"
	"math"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// queue is the order in which the acquires of one pool wait. It is pure: it does
// no I/O and takes the time.
//
// Waiters of one tenant that ask for the same (target, selector, session and so
// on) form a line: first come, first served. Between tenants it is deficit round
// robin of weight 1: who has had fewest leases is asked first. Within a tenant the
// line whose head has waited longest is asked first.
//
// A try costs a call of the store, so a line is tried only when that can help:
// when it is new, when a rest ends that it waits for, or when something came back
// that has not been granted yet. A refusal that says that nothing at all is free
// in a selector answers for all lines of the selector.
type queue struct {
	lines   map[lineKey]*line
	rows    []*row
	tenants map[string]*tenant
	markets map[string]*market
	behind  map[string]int // waiters by class, over all tenants
	active  map[string]int // markets in which somebody waits, by selector
	due     lineHeap       // lines that wait for the end of a rest

	seq    int64 // of the last waiter
	size   int
	served int64 // what the tenant served last had had: the round's time
	open   bool  // something came back: lines that were refused before it may be tried
	credit int   // how much of it is not granted yet
	came   int64 // how often something came back,
	asked  int64 // and how often when the try under way began
}

type lineKey struct{ tenant, class string }

// line holds the waiters of one tenant and class.
type line struct {
	key     lineKey
	row     *row
	market  *market
	waiters list.List
	refusal *pool.Refusal // the last one
	due     pool.Time     // when a rest ends that the line waits for; 0 = none is known
	in      *lineHeap     // the part of its row that it stands in
	place   int
	dueAt   int // its place among those due; -1 = none
}

// row holds the lines of one tenant and selector.
type row struct {
	tenant   *tenant
	selector string
	must     lineHeap  // to be tried: new, or due
	may      lineHeap  // to be tried if something came back
	tried    lineHeap  // refused since something came back
	dry      bool      // nothing is free in the selector until something comes back
	wakeAt   pool.Time // or a rest ends; 0 = none is known
	size     int       // waiters
}

// tenant is what round robin knows of a tenant.
type tenant struct {
	name    string
	had     int64 // leases, on the round's time
	waiting int
}

func newQueue() *queue {
	q := &queue{
		lines: map[lineKey]*line{}, tenants: map[string]*tenant{}, markets: map[string]*market{}, behind: map[string]int{}, active: map[string]int{},
	}
	q.due = lineHeap{by: func(l *line) int64 { return int64(l.due) }, at: func(l *line) *int { return &l.dueAt }}
	return q
}

func (l *line) head() *waiter { return l.waiters.Front().Value.(*waiter) }

// enter puts a waiter at the end of its line.
func (q *queue) enter(w *waiter, now pool.Time) {
	l := q.line(w)
	q.seq++
	w.seq, w.line, w.since = q.seq, l, now
	w.place = l.waiters.PushBack(w)
	if l.market.enter(w.tenant(), now); l.market.size == 1 {
		count(q.active, w.selector, 1)
	}
	l.row.tenant.waiting++
	l.row.size++
	q.size++
	count(q.behind, w.class, 1)
	if l.waiters.Len() > 1 {
		return
	}
	l.refusal = w.refusal
	if w.refusal != nil {
		q.setDue(l, w.refusal.NextDue)
	}
	l.row.must.push(l)
	l.in = &l.row.must
}

// line gives a waiter's line, made when there is none.
func (q *queue) line(w *waiter) *line {
	key := lineKey{w.tenant(), w.class}
	if l := q.lines[key]; l != nil {
		return l
	}
	l := &line{key: key, row: q.row(key.tenant, w.selector), market: q.market(w), dueAt: -1}
	q.lines[key] = l
	return l
}

func (q *queue) row(name, selector string) *row {
	dry, until := false, pool.Time(0)
	for _, r := range q.rows {
		if r.selector != selector {
			continue
		}
		if r.tenant.name == name {
			return r
		}
		dry, until = r.dry, r.wakeAt
	}
	t := q.tenants[name]
	if t == nil {
		t = &tenant{name: name}
		q.tenants[name] = t
	}
	r := &row{tenant: t, selector: selector, dry: dry, wakeAt: until}
	for _, h := range []*lineHeap{&r.must, &r.may, &r.tried} {
		*h = lineHeap{by: func(l *line) int64 { return l.head().seq }, at: func(l *line) *int { return &l.place }}
	}
	q.rows = append(q.rows, r)
	return r
}

// leave takes a waiter out of its line, wherever it stands.
func (q *queue) leave(w *waiter, now pool.Time) {
	l := w.line
	head := l.head() == w
	if head {
		l.in.remove(l) // its key is the head's
	}
	l.waiters.Remove(w.place)
	w.place = nil
	if l.market.leave(w.tenant(), now); l.market.size == 0 {
		count(q.active, w.selector, -1)
	}
	l.row.tenant.waiting--
	l.row.size--
	q.size--
	count(q.behind, w.class, -1)
	switch {
	case l.waiters.Len() == 0:
		q.drop(l)
	case head:
		l.in.push(l)
	}
}

// count keeps counts in a map that holds none that are 0.
func count(m map[string]int, key string, by int) {
	if m[key] += by; m[key] == 0 {
		delete(m, key)
	}
}

func (q *queue) drop(l *line) {
	q.setDue(l, 0)
	delete(q.lines, l.key)
	if l.row.size > 0 {
		return
	}
	for i, r := range q.rows {
		if r == l.row {
			q.rows[i] = q.rows[len(q.rows)-1]
			q.rows[len(q.rows)-1] = nil
			q.rows = q.rows[:len(q.rows)-1]
			break
		}
	}
	if t := l.row.tenant; t.waiting == 0 && t.had <= q.served {
		delete(q.tenants, t.name) // it owes nothing
	}
}

func (q *queue) setDue(l *line, at pool.Time) {
	if l.dueAt >= 0 {
		q.due.remove(l)
	}
	if l.due = at; at > 0 {
		q.due.push(l)
	}
}

// anything is the credit of a change of which nobody knows how much it frees.
const anything = math.MaxInt32

// cameBack says that n leases ended, or that anything may be free now.
func (q *queue) cameBack(n int) {
	q.open = true
	q.came++
	q.credit = min(q.credit+n, anything)
	for _, r := range q.rows {
		r.dry = false
		r.again()
	}
}

// look lets some lines be tried although nothing came back: those that have not
// been tried for longest.
func (q *queue) look() {
	if q.open {
		return
	}
	q.open = true
	for _, r := range q.rows {
		r.dry = false
		if r.may.Len() == 0 {
			r.again()
		}
	}
}

// stop ends the tries of lines that only what came back could help.
func (q *queue) stop() { q.open, q.credit = false, 0 }

// again lets the lines that were refused be tried.
func (r *row) again() {
	for r.tried.Len() > 0 {
		l := r.tried.lines[0]
		r.tried.remove(l)
		r.may.push(l)
		l.in = &r.may
	}
}

// next is the waiter to try now; nil when nobody can be helped.
func (q *queue) next(now pool.Time) *waiter {
	q.fallDue(now)
	var best *line
	for _, r := range q.rows {
		if l := r.first(q.open); l != nil && (best == nil || q.before(l, best)) {
			best = l
		}
	}
	if best == nil {
		q.stop()
		return nil
	}
	q.asked = q.came
	return best.head()
}

// fallDue notes which rests have ended.
func (q *queue) fallDue(now pool.Time) {
	for q.due.Len() > 0 && q.due.lines[0].due <= now {
		l := q.due.lines[0]
		q.setDue(l, 0)
		l.in.remove(l)
		l.row.must.push(l)
		l.in = &l.row.must
	}
	for _, r := range q.rows {
		if r.wakeAt > 0 && r.wakeAt <= now {
			r.dry, r.wakeAt = false, 0
			r.again()
			for r.may.Len() > 0 { // what came free is for any of them
				l := r.may.lines[0]
				r.may.remove(l)
				r.must.push(l)
				l.in = &r.must
			}
		}
	}
}

// first is the line of the row whose head waits longest among those to try.
func (r *row) first(open bool) *line {
	if r.dry {
		return nil
	}
	var l *line
	if r.must.Len() > 0 {
		l = r.must.lines[0]
	}
	if open && r.may.Len() > 0 && (l == nil || r.may.lines[0].head().seq < l.head().seq) {
		l = r.may.lines[0]
	}
	return l
}

// before says which of two lines is asked first.
func (q *queue) before(a, b *line) bool {
	if x, y := q.account(a.row.tenant), q.account(b.row.tenant); x != y {
		return x < y
	}
	return a.head().seq < b.head().seq
}

// account is what a tenant has had. Who was away, or waited for what others could
// not use, has saved nothing up: it is at most one lease behind the round.
func (q *queue) account(t *tenant) int64 { return max(t.had, q.served-1) }

// granted ends the wait of a waiter that got n leases.
func (q *queue) granted(w *waiter, n int, now pool.Time) {
	t := w.line.row.tenant
	start := q.account(t)
	q.served = max(q.served, start)
	t.had = start + int64(n)
	if q.credit != anything && w.line.in == &w.line.row.may { // else it may have got what fell due
		q.credit = max(0, q.credit-n)
	}
	w.line.market.grant(n, now)
	q.leave(w, now)
}

// refused puts a line aside until something falls due for it or comes back.
func (q *queue) refused(w *waiter, r *pool.Refusal) {
	l := w.line
	l.refusal = r
	q.setDue(l, r.NextDue)
	l.in.remove(l)
	if q.came != q.asked { // what came back meanwhile may be for this line
		l.row.may.push(l)
		l.in = &l.row.may
		return
	}
	l.row.tried.push(l)
	l.in = &l.row.tried
	if q.credit == 0 {
		q.open = false // all that came back is granted
	}
	if w.dries(r) {
		for _, row := range q.rows {
			if row.selector == l.row.selector {
				row.dry, row.wakeAt = true, r.NextDue
			}
		}
	}
}

// dueAt is when the next rest ends that somebody waits for; 0 = none is known.
func (q *queue) dueAt() pool.Time {
	next := pool.Time(0)
	if q.due.Len() > 0 {
		next = q.due.lines[0].due
	}
	for _, r := range q.rows {
		if r.wakeAt > 0 && (next == 0 || r.wakeAt < next) {
			next = r.wakeAt
		}
	}
	return next
}

// newest is the last of the tenant that waits with most; nil when nobody waits.
func (q *queue) newest() *waiter {
	var longest *tenant
	for _, t := range q.tenants {
		if longest == nil || t.waiting > longest.waiting || t.waiting == longest.waiting && t.name < longest.name {
			longest = t
		}
	}
	if longest == nil || longest.waiting == 0 {
		return nil
	}
	var last *waiter
	for _, l := range q.lines {
		if w := l.waiters.Back().Value.(*waiter); l.row.tenant == longest && !w.trying && (last == nil || w.seq > last.seq) {
			last = w
		}
	}
	return last
}
