package keeper

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// small is a pool small enough to be looked at whole: proxies of two regions that
// cool, and pairs that rest. It answers as pool.State does.
type small struct {
	regions []string
	held    []bool
	cooling []pool.Time
	rests   map[[2]int]pool.Time // proxy and target
}

func (s *small) usable(w *waiter, n int, now pool.Time) (fits, free, open bool) {
	region := w.params.Select.Region
	fits = region == "" || region == s.regions[n]
	free = fits && !s.held[n] && s.cooling[n] <= now
	return fits, free, free && s.rests[[2]int{n, targetNumber(w)}] <= now
}

func targetNumber(w *waiter) (n int) {
	_, _ = fmt.Sscanf(w.params.Target, "t%d", &n)
	return n
}

// try grants a proxy, or refuses.
func (s *small) try(w *waiter, now pool.Time, reuse pool.Time) (int, *pool.Refusal) {
	r := &pool.Refusal{Exact: true}
	soonest := func(at pool.Time) {
		if r.NextDue == 0 || at < r.NextDue {
			r.NextDue = at
		}
	}
	for n := range s.regions {
		fits, free, open := s.usable(w, n, now)
		end := s.rests[[2]int{n, targetNumber(w)}]
		switch {
		case open:
			s.held[n] = true
			s.rests[[2]int{n, targetNumber(w)}] = now + reuse
			return n, nil
		case !fits:
			r.Reasons[pool.ReasonFiltered]++
		case !free && !s.held[n]:
			r.Reasons[pool.ReasonCooling]++
			soonest(s.cooling[n])
		case !free:
			r.Reasons[pool.ReasonLeased]++
			r.Held = true
		default:
			r.Reasons[pool.ReasonReuseInterval]++
			soonest(end)
		}
	}
	return -1, r
}

func anybody(tenant, target, region string) *waiter {
	return newWaiter(store.AcquireParams{Pool: "p", AcquireParams: pool.AcquireParams{
		Tenant: tenant, Target: target, Select: pool.Selector{Region: region},
	}})
}

// TestQueueProperties plays any sequence of arrivals, departures, returns and
// time: within a line it is first come, first served; when the queue says that
// nobody can be helped, nobody can; and sizes add up.
func TestQueueProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &small{rests: map[[2]int]pool.Time{}}
		for range rapid.IntRange(1, 6).Draw(t, "proxies") {
			s.regions = append(s.regions, rapid.SampledFrom([]string{"de", "us"}).Draw(t, "region"))
			s.held, s.cooling = append(s.held, false), append(s.cooling, 0)
		}
		reuse := pool.Time(rapid.SampledFrom([]int64{0, 50, 5000}).Draw(t, "reuse"))
		q, now := newQueue(), pool.Time(1000)
		var all []*waiter
		waits := func() []*waiter {
			list := all[:0:0]
			for _, w := range all {
				if w.place != nil {
					list = append(list, w)
				}
			}
			return list
		}
		lastOf := map[lineKey]int64{}
		comeBack := func() {
			k := 0
			for n := range s.held {
				if s.held[n] && rapid.Bool().Draw(t, "back") {
					s.held[n] = false
					if rapid.Bool().Draw(t, "failed") {
						s.cooling[n] = now + 3000
					}
					k++
				}
			}
			if k > 0 {
				q.cameBack(k)
			}
		}
		pass := func() {
			for {
				w := q.next(now)
				if w == nil {
					break
				}
				key := w.line.key
				n, refusal := s.try(w, now, reuse)
				if refusal != nil && rapid.IntRange(0, 3).Draw(t, "meanwhile") == 0 {
					comeBack() // while the try is under way
				}
				if refusal == nil {
					if w.seq <= lastOf[key] {
						t.Fatalf("waiter %d of %v was served after %d", w.seq, key, lastOf[key])
					}
					for _, x := range waits() {
						if x.line.key == key && x.seq < w.seq {
							t.Fatalf("waiter %d passed %d", w.seq, x.seq)
						}
					}
					lastOf[key] = w.seq
					q.granted(w, 1, now)
					_ = n
				} else {
					q.refused(w, refusal)
				}
			}
			for _, w := range waits() {
				for n := range s.regions {
					if _, _, open := s.usable(w, n, now); open {
						t.Fatalf("proxy %d is free for a waiter of %v, and nobody tried", n, w.line.key)
					}
				}
			}
			if got := len(waits()); got != q.size {
				t.Fatalf("size %d, want %d", q.size, got)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				w := anybody(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant"),
					rapid.SampledFrom([]string{"t1", "t2", "t3", "t4"}).Draw(t, "target"),
					rapid.SampledFrom([]string{"", "de", "us"}).Draw(t, "region"))
				q.enter(w, now)
				all = append(all, w)
				pass()
			},
			"depart": func(t *rapid.T) {
				if list := waits(); len(list) > 0 {
					q.leave(rapid.SampledFrom(list).Draw(t, "who"), now)
				}
				pass()
			},
			"come back": func(*rapid.T) { comeBack(); pass() },
			"look":      func(*rapid.T) { q.look(); pass() },
			"time": func(t *rapid.T) {
				before := now
				now += pool.Time(rapid.IntRange(1, 6000).Draw(t, "passed"))
				if due := q.dueAt(); due > 0 && due < before {
					t.Fatalf("due at %d and it is %d", due, before)
				}
				pass()
			},
		})
	})
}

// TestRoundRobin: tenants that both wait get the same number of leases, whatever
// the number of their waiters and of the leases they ask for at once.
func TestRoundRobin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, now := newQueue(), pool.Time(1000)
		got := map[string]int{}
		most := rapid.IntRange(1, 20).Draw(t, "count")
		for _, name := range []string{"a", "b", "c"} {
			for range rapid.IntRange(200, 400).Draw(t, "waiters of "+name) {
				q.enter(anybody(name, "t1", ""), now)
			}
		}
		grants := 0
		for grants < 300 {
			now++
			q.cameBack(1)
			w := q.next(now)
			n := rapid.IntRange(1, most).Draw(t, "leases")
			q.granted(w, n, now)
			got[w.tenant()] += n
			grants += n
			for name, n := range got {
				for other, m := range got {
					if n-m > most+1 {
						t.Fatalf("%s had %d and %s %d: more than one acquire of %d apart", name, n, other, m, most)
					}
				}
			}
		}
	})
}

// TestIdlenessSavesNothing: who comes late, or could not use what there was, gets
// no more than its share from then on.
func TestIdlenessSavesNothing(t *testing.T) {
	q, now := newQueue(), pool.Time(1000)
	serve := func(n int) map[string]int {
		got := map[string]int{}
		for range n {
			now++
			q.cameBack(1)
			w := q.next(now)
			got[w.tenant()]++
			q.granted(w, 1, now)
		}
		return got
	}
	for range 500 {
		q.enter(anybody("a", "t1", ""), now)
	}
	serve(100)
	for range 500 {
		q.enter(anybody("b", "t1", ""), now)
	}
	if got := serve(100); got["a"] < 49 || got["a"] > 51 {
		t.Errorf("of 100 leases after b came a got %d", got["a"])
	}
}

// TestNobodyStarves: a line that can be served is, though others come all the time.
func TestNobodyStarves(t *testing.T) {
	q, now := newQueue(), pool.Time(1000)
	late := anybody("quiet", "t9", "")
	for i := range 100 {
		q.enter(anybody("loud", fmt.Sprintf("t%d", i%7), ""), now)
	}
	q.enter(late, now)
	for i := range 10 {
		q.enter(anybody("loud", "t1", ""), now)
		now++
		q.cameBack(1)
		w := q.next(now)
		if w == late {
			return
		}
		q.granted(w, 1, now)
		if i > 2 {
			t.Fatalf("the quiet tenant was not served among %d", i+1)
		}
	}
}

// TestFullRoom: the newest of the tenant that waits with most leaves first.
func TestFullRoom(t *testing.T) {
	q := newQueue()
	for range 3 {
		q.enter(anybody("a", "t1", ""), 1)
	}
	last := anybody("a", "t2", "")
	q.enter(last, 1)
	q.enter(anybody("b", "t1", ""), 1)
	if got := q.newest(); got != last {
		t.Errorf("newest is %+v", got.params)
	}
}
