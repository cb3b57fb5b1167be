package keeper

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store/embedded"
)

// service is a keeper over a real store; in a synctest bubble its time is virtual.
type service struct {
	testing.TB
	*Keeper
	list sync.Mutex
}

func newService(tb testing.TB, proxies int, settings map[string]string) *service {
	tb.Helper()
	log := slog.New(slog.DiscardHandler)
	st, err := embedded.Open(tb.Context(), embedded.Options{
		Path: filepath.Join(tb.TempDir(), "hostler.db"), Judge: judge.Rule, Log: log, Clock: func() pool.Time { return pool.At(time.Now()) },
	})
	if err != nil {
		tb.Fatal(err)
	}
	k, err := New(tb.Context(), Options{Store: st, Log: log})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		k.Close()
		if err := st.Close(); err != nil {
			tb.Error(err)
		}
	})
	s := &service{TB: tb, Keeper: k}
	if settings == nil {
		settings = map[string]string{"reuse_interval": "0s"}
	}
	settings["pacing.start"] = "100000" // these tests are about proxies that are too few, not about a target's pace
	if _, err := k.Override(tb.Context(), DefaultPool, settings); err != nil {
		tb.Fatal(err)
	}
	var b strings.Builder
	for i := range proxies {
		fmt.Fprintf(&b, "10.0.%d.%d:8080\n", i/250, i%250+1)
	}
	if _, err := k.Import(tb.Context(), ImportRequest{Body: strings.NewReader(b.String()), AllowSpecial: true}); err != nil {
		tb.Fatal(err)
	}
	return s
}

func (s *service) acquire(ctx context.Context, r AcquireRequest) Acquired {
	s.Helper()
	if r.Target == "" {
		r.Target = "shop.example"
	}
	a, err := s.Acquire(ctx, r)
	if err != nil {
		s.Error(err)
	}
	return a
}

func (s *service) report(id string) {
	s.Helper()
	res, err := s.Reports(s.Context(), []Report{{Lease: id, Facts: judge.Facts{Phase: "body", Status: 200, HTTPS: true}}})
	if err != nil || res[0].Result != pool.ResultApplied {
		s.Errorf("report: %v %+v", err, res)
	}
}

// serve acquires, holds the proxy and reports; it tells how long it waited, below
// 0 when it was refused.
func (s *service) serve(r AcquireRequest, hold time.Duration) time.Duration {
	begin := time.Now()
	a := s.acquire(s.Context(), r)
	waited := time.Since(begin)
	if a.Refusal != nil {
		return -1
	}
	time.Sleep(hold) // virtual: see synctest
	s.report(a.Leases[0].ID)
	return waited
}

// warm gives every proxy a few successes, so that lease times are known.
func (s *service) warm(proxies int, hold time.Duration) {
	var wg sync.WaitGroup
	for range 4 * proxies {
		wg.Go(func() { s.serve(AcquireRequest{Wait: time.Minute}, hold) })
	}
	wg.Wait()
}

// TestManyWaiters: 500 acquires on 5 proxies held 50 ms: the longest wait is not
// more than three times the mean, and 90 % wait not more than twice as long or
// half as long as was estimated when they came.
func TestManyWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const proxies, hold, n = 5, 50 * time.Millisecond, 500
		s := newService(t, proxies, nil)
		s.warm(proxies, hold)
		told, waits := make([]time.Duration, n), make([]time.Duration, n)
		var wg sync.WaitGroup
		for i := range n {
			if lines, err := s.Waiters(DefaultPool); err == nil && len(lines) > 0 {
				told[i] = lines[0].Estimate
			}
			wg.Go(func() { waits[i] = s.serve(AcquireRequest{Wait: time.Minute}, hold) })
			synctest.Wait()
		}
		wg.Wait()
		var sum time.Duration
		within, estimated := 0, 0
		for i, w := range waits {
			if w < 0 {
				t.Fatalf("acquire %d was refused", i)
			}
			sum += w
			if told[i] > 0 {
				estimated++
				if w <= 2*told[i] && told[i] <= 2*w {
					within++
				}
			}
		}
		mean, longest := sum/n, slices.Max(waits)
		t.Logf("mean %s, longest %s; %d of %d estimates within twofold", mean, longest, within, estimated)
		if longest > 3*mean {
			t.Errorf("the longest wait is %s, the mean %s", longest, mean)
		}
		if estimated < n-2*proxies || within*10 < estimated*9 {
			t.Errorf("%d of %d estimates are within twofold", within, estimated)
		}
	})
}

// TestTenantsShare: one tenant has ten times the demand of another, and both get
// half of the leases.
func TestTenantsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 5, nil)
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		got := map[string]int{}
		var wg sync.WaitGroup
		crawl := func(tenant string) {
			for ctx.Err() == nil {
				if s.serve(AcquireRequest{Tenant: tenant, Wait: time.Minute}, 50*time.Millisecond) >= 0 {
					s.list.Lock()
					got[tenant]++
					s.list.Unlock()
				}
			}
		}
		for range 100 {
			wg.Go(func() { crawl("loud") })
		}
		for range 10 {
			wg.Go(func() { crawl("quiet") })
		}
		wg.Wait()
		share := float64(got["quiet"]) / float64(got["quiet"]+got["loud"])
		t.Logf("quiet got %d, loud %d: %.3f", got["quiet"], got["loud"], share)
		if share < 0.45 || share > 0.55 {
			t.Errorf("the quiet tenant got %.2f of the leases", share)
		}
	})
}

// TestOverload: who cannot be served in time is refused at once and told how long
// the line is; who can be is not. Both errors are counted.
func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const proxies, hold, n = 5, 50 * time.Millisecond, 400 // 100 a second: the last would wait 4 s
		s := newService(t, proxies, nil)
		s.warm(proxies, hold)
		const wait = 2 * time.Second
		var wg sync.WaitGroup
		served, late, refused := 0, 0, 0
		var retry time.Duration
		for range n {
			wg.Go(func() {
				begin := time.Now()
				a := s.acquire(t.Context(), AcquireRequest{Wait: wait})
				s.list.Lock()
				switch {
				case a.Refusal == nil:
					served++
				case time.Since(begin) == 0:
					refused++
					retry = max(retry, a.RetryAfter)
					if a.Refusal.Reasons[pool.ReasonOverloaded] == 0 {
						t.Errorf("refused at once for %v", a.Refusal.Reasons)
					}
				default:
					late++
				}
				s.list.Unlock()
				if a.Refusal == nil {
					time.Sleep(hold)
					s.report(a.Leases[0].ID)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		t.Logf("%d served, %d too late, %d refused at once; come back in %s at the most", served, late, refused, retry)
		can := int(wait / hold * proxies)
		if served < can-proxies {
			t.Errorf("%d were served, and %d could have been", served, can)
		}
		if refused == 0 || late > n/5 {
			t.Errorf("%d waited in vain, %d were refused at once", late, refused)
		}
		if retry < 2*time.Second || retry > 4*time.Second {
			t.Errorf("the longest line was estimated at %s, want 2 s to 4 s", retry)
		}
	})
}

// TestNobodyIsRefusedTooEarly: after a time in which nothing moved the estimate
// must not shut out those whom the returning proxies could serve.
func TestNobodyIsRefusedTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 5, nil)
		s.warm(5, 50*time.Millisecond)
		held := s.acquire(t.Context(), AcquireRequest{Count: 5, TTL: time.Minute})
		if len(held.Leases) != 5 {
			t.Fatalf("holds %d", len(held.Leases))
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if s.serve(AcquireRequest{Wait: 30 * time.Second}, 50*time.Millisecond) < 0 {
					t.Error("one was refused that could be served")
				}
			})
			synctest.Wait()
		}
		time.Sleep(20 * time.Second) // nothing moves
		for range 20 {
			wg.Go(func() {
				if s.serve(AcquireRequest{Wait: 5 * time.Second}, 50*time.Millisecond) < 0 {
					t.Error("one was refused that could be served")
				}
			})
			synctest.Wait()
		}
		for _, l := range held.Leases {
			s.report(l.ID)
		}
		wg.Wait()
	})
}

// TestStandingLineSheds: when even the shortest wait of ten seconds is over a
// second, the newest of the tenant with the longest line is asked to leave.
func TestStandingLineSheds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, nil)
		ctx, stop := context.WithTimeout(t.Context(), 40*time.Second)
		defer stop()
		refused := map[string]int{}
		var wg sync.WaitGroup
		crawl := func(tenant string) {
			for ctx.Err() == nil {
				if s.serve(AcquireRequest{Tenant: tenant, Wait: time.Minute}, 500*time.Millisecond) < 0 {
					s.list.Lock()
					refused[tenant]++
					s.list.Unlock()
					time.Sleep(5 * time.Second) // it does as it is told
				}
			}
		}
		for range 40 {
			wg.Go(func() { crawl("loud") })
		}
		for range 3 {
			wg.Go(func() { crawl("quiet") })
		}
		wg.Wait()
		t.Logf("shed %v", refused)
		if refused["loud"] == 0 || refused["loud"] > 20 || refused["quiet"] > 0 {
			t.Errorf("shed %v", refused)
		}
	})
}

// TestNewcomersDoNotPass: what falls due while somebody waits for it goes to that
// one, though a newcomer with another selector asks first.
func TestNewcomersDoNotPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, map[string]string{"reuse_interval": "10s"})
		s.report(s.acquire(t.Context(), AcquireRequest{}).Leases[0].ID)
		first := make(chan Acquired, 1)
		go func() { first <- s.acquire(t.Context(), AcquireRequest{Wait: time.Minute, Worker: "first"}) }()
		synctest.Wait()
		time.Sleep(10*time.Second - time.Millisecond)
		late := make(chan Acquired, 1)
		go func() {
			time.Sleep(time.Millisecond)
			late <- s.acquire(t.Context(), AcquireRequest{Worker: "late", LeastBad: true})
		}()
		if a := <-late; a.Refusal == nil {
			t.Fatal("a newcomer passed the one that waited")
		}
		if a := <-first; a.Refusal != nil {
			t.Fatalf("the first was refused: %v", a.Refusal.Reasons)
		}
	})
}
