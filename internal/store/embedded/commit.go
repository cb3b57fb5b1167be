package embedded

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// op is one operation on its way through a batch. do runs under the store's
// lock; its answer goes out when the batch stands.
type op struct {
	do   func() error
	err  error
	done chan struct{}
}

// queue gathers operations while a commit is under way.
type queue struct {
	mu     sync.Mutex
	some   *sync.Cond
	ops    []*op
	closed bool
}

func (q *queue) init() { q.some = sync.NewCond(&q.mu) }

func (q *queue) put(o *op) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.ops = append(q.ops, o)
	q.some.Signal()
	return true
}

// maxBatch bounds a batch, so that no answer waits for a very long commit.
const maxBatch = 512

// take waits for operations; ok is false when the queue is closed and empty.
func (q *queue) take(into []*op) (batch []*op, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.ops) == 0 && !q.closed {
		q.some.Wait()
	}
	n := min(len(q.ops), maxBatch)
	batch = append(into[:0], q.ops[:n]...)
	rest := copy(q.ops, q.ops[n:])
	clear(q.ops[rest:])
	q.ops = q.ops[:rest]
	return batch, n > 0
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.some.Broadcast()
}

// apply runs do in the next batch and waits until it is durable. Once queued it
// runs to its end even if the caller goes away: half an answer is no answer.
func (s *Store) apply(ctx context.Context, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o := &op{do: do, done: make(chan struct{})}
	if !s.queue.put(o) {
		return fmt.Errorf("%w: it is closing", store.ErrUnavailable)
	}
	<-o.done
	return o.err
}

// commitLoop commits batch after batch until the queue is closed.
func (s *Store) commitLoop() {
	defer close(s.done)
	var batch []*op
	for {
		var ok bool
		if batch, ok = s.queue.take(batch); !ok {
			return
		}
		s.commit(batch)
		for _, o := range batch {
			close(o.done)
		}
		runtime.Gosched() // those that were answered come back with their next: one batch then serves them all
	}
}

// commit runs a batch on the state and writes what changed in one transaction.
func (s *Store) commit(batch []*op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		if err := s.rebuild(); err != nil {
			fail(batch, err)
			return
		}
	}
	for _, o := range batch {
		o.err = o.do()
	}
	if err := s.write(); err != nil {
		s.broken = true
		s.o.Log.Error("a commit failed; its answers are withdrawn", "error", err, "batch", len(batch))
		fail(batch, err)
	}
}

func fail(batch []*op, err error) {
	for _, o := range batch {
		o.err = fmt.Errorf("%w: %v", store.ErrUnavailable, err) //nolint:errorlint // the cause is for people; callers branch on ErrUnavailable
	}
}

// write puts all changes of all pools into one transaction.
func (s *Store) write() (err error) {
	if !s.changed() {
		return nil
	}
	end, err := sqlitex.ImmediateTransaction(s.db)
	if err != nil {
		return err
	}
	defer end(&err)
	for name, p := range s.pools {
		s.sink.pool, s.sink.name = p.id, name
		if !p.state.Changed() {
			continue
		}
		if err := p.state.Take(s.sink); err != nil {
			return err
		}
		if err := s.sink.putTotals(p); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) changed() bool {
	for _, p := range s.pools {
		if p.state.Changed() {
			return true
		}
	}
	return false
}

// rebuild throws the state away and reads the file again.
func (s *Store) rebuild() error {
	if err := s.load(); err != nil {
		s.o.Log.Error("cannot read the store again", "error", err)
		return err
	}
	s.broken = false
	s.o.Log.Info("read the store again after a failed commit")
	return nil
}

// now is the time of an operation: the caller's in tests, else the clock's.
func (s *Store) now(given pool.Time) pool.Time {
	if given != 0 {
		return given
	}
	return s.o.Clock()
}

// lookTimeout bounds how long a query of records waits for a connection.
const lookTimeout = 5 * time.Second
