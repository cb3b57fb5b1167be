package keeper

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// room is where the acquires of one pool wait: a queue with a loop that tries its
// heads whenever something may be free for them.
type room struct {
	k    *Keeper
	pool string

	mu   sync.Mutex
	q    *queue
	age  ageControl
	hint chan struct{} // something came back, or somebody came

	hinted, offered int64         // hints given, and those that a pass has answered
	busy            bool          // a pass is under way
	passed          chan struct{} // closed when it, or the next one, ends
}

const (
	// maxWaiters bounds the waiters of a pool.
	maxWaiters = 10_000
	// triesPerPass bounds the refused tries of one pass, so that many lines that
	// nothing helps cost a bounded part of the store's time; restOfPass is the rest after it.
	triesPerPass = 64
	restOfPass   = 10 * time.Millisecond
	// pollAtMost is how long a pass may be off at the most while somebody waits: a
	// safety net, should a hint have been missed.
	pollAtMost = time.Second
)

func (k *Keeper) room(name string) *room {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.rooms[name]
	if r == nil {
		r = &room{k: k, pool: name, q: newQueue(), hint: make(chan struct{}, 1), passed: make(chan struct{})}
		k.rooms[name] = r
		k.wg.Go(r.serve)
	}
	return r
}

// cameBack tells the waiters of a pool that n leases ended.
func (k *Keeper) cameBack(name string, n int) {
	k.mu.Lock()
	r := k.rooms[name]
	k.mu.Unlock()
	if r != nil && n > 0 {
		r.cameBack(n)
	}
}

// wake tells the waiters of a pool that anything may be free.
func (k *Keeper) wake(name string) { k.cameBack(name, anything) }

func (r *room) cameBack(n int) {
	r.mu.Lock()
	r.hinted++
	if r.q.size > 0 {
		r.q.cameBack(n)
	}
	r.mu.Unlock()
	r.nudge()
}

func (r *room) nudge() {
	select {
	case r.hint <- struct{}{}:
	default: // one is pending already
	}
}

// giveWay lets those that wait have what just came back or fell due, before a
// newcomer of another line takes it.
func (r *room) giveWay(ctx context.Context) {
	r.mu.Lock()
	if due := r.q.dueAt(); due > 0 && due <= r.k.store.Now() {
		r.hinted++
		r.nudge()
	}
	mine, under := r.hinted, r.busy
	for r.q.size > 0 && (under || r.offered < mine) {
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
		under = false
	}
	r.mu.Unlock()
}

// standing is what a newcomer finds in front of it.
type standing struct {
	ahead    int           // waiters of its class
	refusal  *pool.Refusal // the last one of the class
	estimate time.Duration // of its wait; 0 = not known
	atBest   time.Duration // the shortest wait that must be reckoned with
}

// ahead tells a newcomer what it stands behind.
func (r *room) ahead(w *waiter) standing {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := standing{ahead: r.q.behind[w.class]}
	if s.ahead == 0 {
		return s
	}
	if l := r.q.lines[lineKey{w.tenant(), w.class}]; l != nil {
		s.refusal = l.refusal
	} else {
		s.refusal = r.anyRefusal(w.class)
	}
	r.estimate(w, &s)
	return s
}

// anyRefusal is the last refusal of a class that only other tenants wait in.
func (r *room) anyRefusal(class string) *pool.Refusal {
	for name := range r.q.tenants {
		if l := r.q.lines[lineKey{name, class}]; l != nil {
			return l.refusal
		}
	}
	return nil
}

// turnIn is how long until a refused newcomer that nobody stands before would be served.
func (r *room) turnIn(w *waiter, refusal *pool.Refusal) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := standing{refusal: refusal}
	r.estimate(w, &s)
	return s.estimate
}

// estimate fills in how long a newcomer will wait.
func (r *room) estimate(w *waiter, s *standing) {
	m := r.q.market(w)
	m.meter.run(r.k.store.Now(), m.size > 0)
	likely, most := 0.0, 0.0
	if s.refusal != nil {
		likely, most = r.k.expected(r.pool, w.params.Target, usable(s.refusal))
	}
	s.estimate = m.estimate(w.tenant(), m.meter.rate(likely/float64(max(1, r.q.active[w.selector]))))
	s.atBest = m.estimate(w.tenant(), m.meter.atBest(most))
}

// enter puts an acquire at the end of its line; false when the room is full. A
// tenant that fills the room makes place for others.
func (r *room) enter(w *waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.k.store.Now()
	if r.q.size >= maxWaiters {
		last := r.q.newest()
		if last == nil || last.tenant() == w.tenant() {
			return false
		}
		r.shed(last, now)
	}
	r.q.enter(w, now)
	return true
}

// shed asks a waiter to leave.
func (r *room) shed(w *waiter, now pool.Time) {
	r.q.leave(w, now)
	w.answer <- answer{shed: true}
}

// leave takes a waiter out of its line; false when its answer is on the way.
func (r *room) leave(w *waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.place == nil || w.trying {
		w.gone = true
		return false
	}
	r.q.leave(w, r.k.store.Now())
	return true
}

// wait stands in line until a lease, the deadline, or the caller goes away. A
// lease that comes when the caller is gone is given back unused.
func (r *room) wait(ctx context.Context, w *waiter, wait time.Duration) (tried, error) {
	if !r.enter(w) {
		return r.overloaded(w, maxWaiters), nil
	}
	r.nudge()
	timer := time.NewTimer(wait)
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
func (r *room) deliver(ctx context.Context, w *waiter, a answer) (tried, error) {
	switch {
	case a.shed:
		return r.overloaded(w, r.waiting()), nil
	case a.err == nil && ctx.Err() != nil:
		r.k.giveBack(r.pool, a.res.Grants)
		return tried{}, ctx.Err()
	case a.err == nil && a.res.Refusal == nil && len(a.res.Grants) == 0:
		return r.missed(ctx, w)
	}
	return tried{AcquireResult: a.res}, a.err
}

// missed is the answer of a waiter whose time is up.
func (r *room) missed(ctx context.Context, w *waiter) (tried, error) {
	if err := ctx.Err(); err != nil {
		return tried{}, err
	}
	if r.k.base.Err() != nil {
		return tried{}, ErrStopping
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := standing{refusal: w.last()}
	r.estimate(w, &s)
	return refusedBehind(&s), nil
}

// last is the refusal that a waiter can be told.
func (w *waiter) last() *pool.Refusal {
	if w.line != nil && w.line.refusal != nil {
		return w.line.refusal
	}
	return w.refusal
}

// overloaded refuses a waiter at once; n is what the reason counts.
func (r *room) overloaded(w *waiter, n int) tried {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := standing{ahead: n, refusal: w.last()}
	r.estimate(w, &s)
	return refusedBehind(&s)
}

// refusedBehind refuses an acquire that would have to pass waiters, or would not
// be served in time.
func refusedBehind(s *standing) tried {
	refusal := pool.Refusal{Held: true}
	if s.refusal != nil {
		refusal = *s.refusal
	}
	refusal.Reasons[pool.ReasonOverloaded] += s.ahead
	return tried{AcquireResult: pool.AcquireResult{Refusal: &refusal}, estimate: s.estimate}
}

// ErrStopping says that the daemon is shutting down; ask another, or later.
var ErrStopping = errors.New("the daemon is shutting down")

// serve tries the heads of the lines whenever something may be free.
func (r *room) serve() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		polled := false
		select {
		case <-r.k.base.Done():
			return
		case <-r.hint:
		case <-timer.C:
			polled = true
		}
		for ; !r.pass(polled); polled = false {
			timer.Reset(restOfPass)
			select {
			case <-r.k.base.Done():
				return
			case <-timer.C:
			}
		}
		timer.Reset(r.nextLook())
	}
}

// pass serves whoever can be served. It is false when tries were left undone.
func (r *room) pass(polled bool) (done bool) {
	r.mu.Lock()
	answers := r.hinted
	r.busy = true
	if polled && r.q.size > 0 {
		r.q.look()
	}
	r.mu.Unlock()
	for refused := 0; refused < triesPerPass; {
		w := r.next()
		if w == nil {
			r.endPass(answers, true)
			return true
		}
		res, err := r.k.store.Acquire(r.k.base, w.params)
		if !r.settle(w, res, err) {
			refused++
		}
	}
	r.endPass(answers, false)
	return false
}

// endPass lets newcomers go on, also when tries were left undone: they give way
// to those that have waited longest, not to any number of lines.
func (r *room) endPass(answers int64, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !done && r.q.credit == 0 {
		r.q.stop() // it was only a look
	}
	r.offered, r.busy = answers, false
	close(r.passed)
	r.passed = make(chan struct{})
}

func (r *room) next() *waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.k.store.Now()
	if r.q.size == 0 {
		r.age.idle()
	}
	if r.age.due(now) {
		if last := r.q.newest(); last != nil {
			r.shed(last, now)
		}
	}
	w := r.q.next(now)
	if w != nil {
		w.trying = true
	}
	return w
}

// settle ends a try: with an answer, or back to waiting. It tells whether the
// waiter was served.
func (r *room) settle(w *waiter, res pool.AcquireResult, err error) (served bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.trying = false
	now := r.k.store.Now()
	if err != nil || res.Refusal == nil {
		r.q.granted(w, len(res.Grants), now)
		if err == nil {
			r.age.served(now.Sub(w.since), now)
		}
		w.answer <- answer{res: res, err: err}
		return true
	}
	r.q.refused(w, res.Refusal)
	if w.gone {
		r.q.leave(w, now)
		w.answer <- answer{} // it has given up meanwhile and waits for this
	}
	return false
}

// nextLook is how long until something falls due for somebody who waits.
func (r *room) nextLook() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.q.size == 0 {
		return time.Hour
	}
	wait := pollAtMost
	if at := r.q.dueAt(); at > 0 {
		wait = min(wait, at.Sub(r.k.store.Now()))
	}
	return max(wait, time.Millisecond)
}

func (r *room) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.q.size
}

// Waiting is how many acquires of a pool wait.
func (k *Keeper) Waiting(poolName string) int {
	k.mu.Lock()
	r := k.rooms[poolName]
	k.mu.Unlock()
	if r == nil {
		return 0
	}
	return r.waiting()
}
