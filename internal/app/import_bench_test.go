package app_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
)

// lines is a list of n proxies that is made while it is read.
type lines struct {
	n, at int
	rest  []byte
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) < len(p) && l.at < l.n {
		l.rest = fmt.Appendf(l.rest, "%d.%d.%d.%d:8080:user%d:pass%d\n", 11+l.at>>24, l.at>>16&255, l.at>>8&255, l.at&255, l.at%1000, l.at)
		l.at++
	}
	if len(l.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, l.rest)
	l.rest = l.rest[:copy(l.rest, l.rest[n:])]
	return n, nil
}

// bench is a daemon of a benchmark.
type bench struct {
	*testing.B
	app *app.App
	api *client.Client
}

func startBench(b *testing.B, file string) *bench {
	b.Helper()
	a, err := app.New(b.Context(), app.Options{Listen: "127.0.0.1:0", Store: file, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	a.Start(b.Context())
	api, err := client.New(a.URL(), client.WithHTTPClient(&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}))
	if err != nil {
		b.Fatal(err)
	}
	return &bench{b, a, api}
}

func (b *bench) stop() {
	if err := b.app.Stop(context.Background()); err != nil {
		b.Error(err)
	}
}

// acquires lets four workers take and give back proxies, 500 times a second
// together at most, and adds how long each acquire took.
func (b *bench) acquires(ctx context.Context, target string, took *[]time.Duration) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			tick := time.NewTicker(8 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				began := time.Now()
				got, err := b.api.Acquire(context.Background(), client.AcquireRequest{Target: target, Worker: fmt.Sprint("w", i), WaitMS: 5000})
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				*took = append(*took, time.Since(began))
				mu.Unlock()
				if err := b.api.Release(context.Background(), got.Leases[0].ID); err != nil {
					b.Error(err)
					return
				}
				<-tick.C
			}
		})
	}
	wg.Wait()
}

func p99(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)*99/100]
}

// busyImport brings lines in while workers acquire, and gives how long it took.
func (b *bench) busyImport(from, to int, took *[]time.Duration) time.Duration {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() { b.acquires(ctx, "busy.example", took) })
	began := time.Now()
	if _, err := b.api.Import(b.Context(), &lines{n: to, at: from}, client.ImportOptions{}); err != nil {
		b.Error(err)
	}
	spent := time.Since(began)
	cancel()
	wg.Wait()
	return spent
}

// BenchmarkImport brings a list of b.N lines in through the API, while workers
// acquire, and starts a daemon anew on what came. -benchtime 1000000x is the
// size that docs/performance.md speaks of.
func BenchmarkImport(b *testing.B) {
	file := filepath.Join(b.TempDir(), "s.db")
	d := startBench(b, file)
	if _, err := d.api.Import(b.Context(), &lines{n: 1000}, client.ImportOptions{Source: "first"}); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	began := time.Now()
	res, err := d.api.Import(b.Context(), &lines{n: 1000 + b.N, at: 1000}, client.ImportOptions{})
	if err != nil || res.Accepted != b.N {
		b.Fatalf("%+v %v", res, err)
	}
	b.StopTimer()
	alone := time.Since(began)

	// By turns, so that the machine's own moods fall on both alike.
	var idle, during []time.Duration
	var busy time.Duration
	const turns = 8
	for turn := range turns {
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		d.acquires(ctx, "idle.example", &idle)
		cancel()
		busy += d.busyImport(1000+b.N+turn*b.N/turns, 1000+b.N+(turn+1)*b.N/turns, &during)
	}
	d.stop()

	began = time.Now()
	again := startBench(b, file)
	ready := time.Since(began)
	again.stop()
	b.ReportMetric(float64(b.N)/alone.Seconds(), "lines/s")
	b.ReportMetric(float64(b.N)/busy.Seconds(), "busy-lines/s")
	b.ReportMetric(float64(p99(idle).Microseconds())/1000, "idle-p99-ms")
	b.ReportMetric(float64(p99(during).Microseconds())/1000, "import-p99-ms")
	b.ReportMetric(float64(p99(during))/float64(p99(idle)), "ratio")
	b.ReportMetric(ready.Seconds(), "start-s")
	b.ReportMetric(float64(1000+2*b.N), "proxies")
}
