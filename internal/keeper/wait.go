package keeper

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// room is where the acquires of one pool wait. Waiters of one class (target and
// selector) form a line: first come, first served, and a newcomer of the class
// stands behind them. Lines are served in the order of their heads' arrival, so
// that whoever could have used what is free has been asked before.
type room struct {
	k    *Keeper
	pool string

	mu    sync.Mutex
	lines map[string]*list.List
	seq   int64
	size  int
	hint  chan struct{} // something came back, or somebody came

	hinted, offered int64         // hints given, and those that a pass has answered
	passed          chan struct{} // closed at the end of the next pass
}

// waiter is one acquire in a line.
type waiter struct {
	params   store.AcquireParams
	class    string
	seq      int64
	place    *list.Element
	trying   bool
	answer   chan answer // one answer, buffered
	deadline time.Time
	since    time.Time
	refusal  *pool.Refusal // the last one
	notUntil pool.Time     // nothing falls due for it before this
}

type answer struct {
	res pool.AcquireResult
	err error
}

// maxWaiters bounds the waiters of a pool.
const maxWaiters = 10_000

func (k *Keeper) room(name string) *room {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.rooms[name]
	if r == nil {
		r = &room{k: k, pool: name, lines: map[string]*list.List{}, hint: make(chan struct{}, 1), passed: make(chan struct{})}
		k.rooms[name] = r
		k.wg.Go(r.serve)
	}
	return r
}

// wake tells the waiters of a pool that something may be free.
func (k *Keeper) wake(name string) {
	k.mu.Lock()
	r := k.rooms[name]
	k.mu.Unlock()
	if r != nil {
		r.wake()
	}
}

func (r *room) wake() {
	r.mu.Lock()
	r.hinted++
	r.mu.Unlock()
	select {
	case r.hint <- struct{}{}:
	default: // one is pending already
	}
}

// giveWay lets those that wait have what just came back, before a newcomer of
// another line takes it.
func (r *room) giveWay(ctx context.Context) {
	r.mu.Lock()
	mine := r.hinted
	for r.size > 0 && r.offered < mine {
		passed := r.passed
		r.mu.Unlock()
		select {
		case <-passed:
		case <-ctx.Done():
		case <-r.k.base.Done():
		}
		if ctx.Err() != nil || r.k.base.Err() != nil {
			return
		}
		r.mu.Lock()
	}
	r.mu.Unlock()
}

// ahead counts the waiters that a newcomer of a class stands behind, and gives
// the last refusal of their head.
func (r *room) ahead(class string) (int, *pool.Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := r.lines[class]
	if line == nil {
		return 0, nil
	}
	return line.Len(), line.Front().Value.(*waiter).refusal
}

// enter puts an acquire at the end of its line; false when the room is full.
func (r *room) enter(w *waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size >= maxWaiters {
		return false
	}
	line := r.lines[w.class]
	if line == nil {
		line = list.New()
		r.lines[w.class] = line
	}
	r.seq++
	w.seq = r.seq
	w.place = line.PushBack(w)
	r.size++
	return true
}

// leave takes a waiter out of its line; false when its answer is on the way.
func (r *room) leave(w *waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.place == nil || w.trying {
		return false
	}
	r.remove(w)
	return true
}

func (r *room) remove(w *waiter) {
	line := r.lines[w.class]
	line.Remove(w.place)
	w.place = nil
	r.size--
	if line.Len() == 0 {
		delete(r.lines, w.class)
	}
}

// wait stands in line until a lease, the deadline, or the caller goes away. A
// lease that comes when the caller is gone is given back unused.
func (r *room) wait(ctx context.Context, w *waiter) (pool.AcquireResult, error) {
	if !r.enter(w) {
		return r.overloaded(w), nil
	}
	r.wake()
	timer := time.NewTimer(time.Until(w.deadline)) //nolint:forbidigo // a deadline of the caller's own clock
	defer timer.Stop()
	select {
	case a := <-w.answer:
		return r.deliver(ctx, w, a)
	case <-timer.C:
	case <-ctx.Done():
	case <-r.k.base.Done():
	}
	if r.leave(w) {
		return r.missed(ctx, w)
	}
	return r.deliver(ctx, w, <-w.answer)
}

// deliver hands an answer over, unless nobody is there to take it.
func (r *room) deliver(ctx context.Context, w *waiter, a answer) (pool.AcquireResult, error) {
	if a.err == nil && ctx.Err() != nil {
		r.k.giveBack(r.pool, a.res.Grants)
		return pool.AcquireResult{}, ctx.Err()
	}
	if a.err == nil && a.res.Refusal == nil && len(a.res.Grants) == 0 {
		return r.missed(ctx, w)
	}
	return a.res, a.err
}

// missed is the answer of a waiter whose time is up.
func (r *room) missed(ctx context.Context, w *waiter) (pool.AcquireResult, error) {
	if err := ctx.Err(); err != nil {
		return pool.AcquireResult{}, err
	}
	if r.k.base.Err() != nil {
		return pool.AcquireResult{}, ErrStopping
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.refusal != nil {
		return pool.AcquireResult{Refusal: w.refusal}, nil
	}
	return pool.AcquireResult{Refusal: &pool.Refusal{Held: true}}, nil
}

func (r *room) overloaded(w *waiter) pool.AcquireResult {
	refusal := pool.Refusal{Held: true}
	if w.refusal != nil {
		refusal = *w.refusal
	}
	refusal.Reasons[pool.ReasonOverloaded] = maxWaiters
	return pool.AcquireResult{Refusal: &refusal}
}

// ErrStopping says that the daemon is shutting down; ask another, or later.
var ErrStopping = errors.New("the daemon is shutting down")

// serve tries the heads of the lines whenever something may be free.
func (r *room) serve() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-r.k.base.Done():
			return
		case <-r.hint:
		case <-timer.C:
		}
		timer.Reset(r.pass())
	}
}

// pollAtMost is how long a pass may be off at the most while somebody waits: a
// safety net, should a hint have been missed.
const pollAtMost = time.Second

// pass serves every line that can be served, oldest head first, and tells when
// the next rest ends that somebody waits for.
func (r *room) pass() time.Duration {
	r.mu.Lock()
	answers := r.hinted
	r.mu.Unlock()
	defer r.endPass(answers)
	done := map[string]bool{}
	for {
		w := r.oldest(done)
		if w == nil {
			return r.nextDue()
		}
		res, err := r.k.store.Acquire(r.k.base, w.params)
		served := err != nil || res.Refusal == nil
		r.settle(w, res, err, served)
		if !served {
			done[w.class] = true
		}
	}
}

func (r *room) endPass(answers int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offered = answers
	close(r.passed)
	r.passed = make(chan struct{})
}

// oldest takes the head that has waited longest among the lines not yet refused
// in this pass.
func (r *room) oldest(done map[string]bool) *waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first *waiter
	for class, line := range r.lines {
		if done[class] {
			continue
		}
		if w := line.Front().Value.(*waiter); first == nil || w.seq < first.seq {
			first = w
		}
	}
	if first != nil {
		first.trying = true
	}
	return first
}

// settle ends a try: with an answer, or back to waiting.
func (r *room) settle(w *waiter, res pool.AcquireResult, err error, served bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.trying = false
	if !served {
		w.refusal = res.Refusal
		w.notUntil = res.Refusal.NextDue
		if time.Now().After(w.deadline) { //nolint:forbidigo // see wait
			w.answer <- answer{} // it may have given up meanwhile and wait for this
			r.remove(w)
		}
		return
	}
	r.remove(w)
	w.answer <- answer{res, err}
}

// nextDue is how long until something falls due for one of the heads.
func (r *room) nextDue() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size == 0 {
		return time.Hour
	}
	wait := pollAtMost
	now := r.k.store.Now()
	for _, line := range r.lines {
		if at := line.Front().Value.(*waiter).notUntil; at > 0 {
			wait = min(wait, at.Sub(now))
		}
	}
	return max(wait, time.Millisecond)
}

// Waiting is how many acquires of a pool wait.
func (k *Keeper) Waiting(poolName string) int {
	k.mu.Lock()
	r := k.rooms[poolName]
	k.mu.Unlock()
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size
}
