package pool

// heap is a four-ary min-heap of things that fall due. Entries are not removed
// when their reason goes: whoever takes one looks whether it still holds.
type heap[T any] []due[T]

type due[T any] struct {
	at   Time
	what T
}

func (h *heap[T]) push(at Time, what T) {
	*h = append(*h, due[T]{})
	a := *h
	i := len(a) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if a[parent].at <= at {
			break
		}
		a[i] = a[parent]
		i = parent
	}
	a[i] = due[T]{at, what}
}

// min is the time of the earliest entry; ok is false when there is none.
func (h heap[T]) min() (at Time, ok bool) {
	if len(h) == 0 {
		return 0, false
	}
	return h[0].at, true
}

// take removes the earliest entry if it is due at now.
func (h *heap[T]) take(now Time) (e due[T], ok bool) {
	a := *h
	if len(a) == 0 || a[0].at > now {
		return e, false
	}
	top, last := a[0], a[len(a)-1]
	a = a[:len(a)-1]
	*h = a
	if len(a) > 0 {
		a.sink(last)
	}
	return top, true
}

// sink puts e in at the root, which is free.
func (h heap[T]) sink(e due[T]) {
	i := 0
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		best := child
		for c := child + 1; c < min(child+4, len(h)); c++ {
			if h[c].at < h[best].at {
				best = c
			}
		}
		if h[best].at >= e.at {
			break
		}
		h[i] = h[best]
		i = best
	}
	h[i] = e
}

// line is a first-in first-out queue that lets go of what it gave away.
type line[T any] struct {
	items []T
	head  int
}

func (q *line[T]) push(v T) { q.items = append(q.items, v) }

func (q *line[T]) len() int { return len(q.items) - q.head }

func (q *line[T]) peek() T { return q.items[q.head] }

func (q *line[T]) pop() T {
	var zero T
	v := q.items[q.head]
	q.items[q.head] = zero
	q.head++
	if q.head > 1024 && q.head*2 > len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return v
}

// agenda is what falls due, earliest first. Most things are put off by the same
// time, so they come in order: those stand in a line, which costs nothing to
// keep sorted; the others stand in a heap.
type agenda[T any] struct {
	line line[due[T]]
	heap heap[T]
	last Time // the newest of the line
}

// soon enters something of the usual delay.
func (a *agenda[T]) soon(at Time, what T) {
	if at < a.last {
		a.heap.push(at, what)
		return
	}
	a.last = at
	a.line.push(due[T]{at, what})
}

// later enters something of any delay.
func (a *agenda[T]) later(at Time, what T) { a.heap.push(at, what) }

func (a *agenda[T]) len() int { return a.line.len() + len(a.heap) }

// peek gives the earliest entry.
func (a *agenda[T]) peek() (e due[T], ok bool) {
	if len(a.heap) > 0 {
		e, ok = a.heap[0], true
	}
	if a.line.len() > 0 {
		if first := a.line.peek(); !ok || first.at <= e.at {
			return first, true
		}
	}
	return e, ok
}

// min is the time of the earliest entry.
func (a *agenda[T]) min() (Time, bool) {
	e, ok := a.peek()
	return e.at, ok
}

// take removes the earliest entry if it is due at now.
func (a *agenda[T]) take(now Time) (e due[T], ok bool) {
	if a.line.len() > 0 {
		first := a.line.peek()
		if at, some := a.heap.min(); first.at <= now && (!some || first.at <= at) {
			a.line.pop()
			return first, true
		}
	}
	return a.heap.take(now)
}
