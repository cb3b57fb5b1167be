package keeper

import (
	"fmt"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// BenchmarkWakeUp is what the return of one proxy costs the room while 10,000
// wait in many lines that it cannot help.
func BenchmarkWakeUp(b *testing.B) {
	for _, c := range []struct {
		name  string
		lines int
		rest  bool // proxies are free, and rest for each line's target
	}{
		{"1_line", 1, false},
		{"1000_lines", 1000, false},
		{"10000_lines", 10_000, false},
		{"1000_lines_at_rest", 1000, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			q, now := newQueue(), pool.Time(1000)
			for i := range maxWaiters {
				w := anybody("a", fmt.Sprintf("t%d", i%c.lines), "")
				q.enter(w, now)
			}
			refusal := &pool.Refusal{Exact: true, Held: true}
			refusal.Reasons[pool.ReasonLeased] = 5
			if c.rest {
				refusal.Reasons[pool.ReasonReuseInterval] = 5
			}
			tries := 0
			pass := func() {
				for range triesPerPass {
					w := q.next(now)
					if w == nil {
						return
					}
					tries++
					q.refused(w, refusal)
				}
			}
			for q.next(now) != nil {
				pass()
			}
			tries = 0
			b.ResetTimer()
			for b.Loop() {
				now++
				q.cameBack(1)
				pass()
			}
			b.ReportMetric(float64(tries)/float64(b.N), "tries/op")
		})
	}
}

// BenchmarkReturn is the way from a report to the next waiter's lease, with a real
// store, while 10,000 wait in lines.
func BenchmarkReturn(b *testing.B) {
	for _, lines := range []int{1, 1000, 10_000} {
		b.Run(fmt.Sprintf("%d_lines", lines), func(b *testing.B) {
			s := newService(b, 1, nil)
			got := make(chan string, 1)
			queue := func(i int) {
				a, err := s.Acquire(b.Context(), AcquireRequest{Target: fmt.Sprintf("t%d", i%lines), Wait: time.Minute})
				if err == nil && a.Refusal == nil {
					got <- a.Leases[0].ID
				}
			}
			id := s.acquire(b.Context(), AcquireRequest{Target: "t0"}).Leases[0].ID
			for i := range maxWaiters - 1 {
				go queue(i)
			}
			for s.Waiting(DefaultPool) < maxWaiters-1 {
				time.Sleep(time.Millisecond)
			}
			next := 0
			b.ResetTimer()
			for range min(b.N, 5000) {
				s.report(id)
				id = <-got
				go queue(next)
				next++
			}
		})
	}
}
