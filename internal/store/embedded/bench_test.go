package embedded_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/store"
	"github.com/hostler-proxy/hostler/internal/store/embedded"
)

func options(path string) embedded.Options {
	return embedded.Options{
		Path: path, Judge: judge.Rule, Log: slog.New(slog.DiscardHandler),
		Clock: func() pool.Time { return pool.At(time.Now()) },
	}
}

func open(tb testing.TB, path string) *embedded.Store {
	tb.Helper()
	s, err := embedded.Open(tb.Context(), options(path))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// BenchmarkCycle is an acquire and a report, both durable, by 64 callers.
func BenchmarkCycle(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "bench.db"))
	ctx := context.Background()
	policy := pool.DefaultPolicy()
	policy.ReuseInterval = 5 * time.Second
	policy.Pacing.Start = policy.Pacing.Max // the pace is not what is measured
	if _, err := s.PutPool(ctx, store.PutPoolParams{Name: "default", Record: store.PolicyRecord{Policy: policy}, Expect: -1}); err != nil {
		b.Fatal(err)
	}
	list := make([]pool.Import, 5_000)
	for i := range list {
		p := proxy.Proxy{Scheme: "http", Host: fmt.Sprintf("10.0.%d.%d", i>>8, i&255), Port: 80, Username: "user", Password: "secret"}
		list[i] = pool.Import{ID: p.ID([]byte("k")), Spec: pool.Spec{Proxy: p, Group: "g"}}
	}
	if _, err := s.Import(ctx, store.ImportParams{Pool: "default", Proxies: list}); err != nil {
		b.Fatal(err)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	var refused atomic.Int64
	b.ResetTimer()
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			worker := fmt.Sprintf("w%d", w)
			for left.Add(-1) >= 0 {
				target := fmt.Sprintf("t%02d.example", (w+int(left.Load()))%20)
				res, err := s.Acquire(ctx, store.AcquireParams{Pool: "default", AcquireParams: pool.AcquireParams{Target: target, Worker: worker, Count: 1}})
				if err != nil {
					b.Error(err)
					return
				}
				if res.Refusal != nil {
					refused.Add(1)
					continue
				}
				class := pool.ClassOK
				if left.Load()%10 == 0 {
					class = pool.ClassTarget5xx
				}
				if _, err := s.Settle(ctx, store.SettleParams{Pool: "default", Endings: []pool.Ending{{
					Key: res.Grants[0].Lease.Key, Outcome: pool.Outcome{Class: class, Elapsed: 300 * time.Millisecond},
				}}}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	b.ReportMetric(100*float64(refused.Load())/float64(b.N), "%refused")
}
