package pool_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
)

// load is the benchmark's work: 20 targets, 10 % mixed failures, a reuse
// interval of 5 s, 100 leases outstanding that come back in random order, and
// windows that are full before the clock starts.
type load struct {
	st      *pool.State
	now     pool.Time
	rng     *rand.Rand
	targets []string
	out     []pool.Key
	step    float64 // ms between two acquires
	sub     float64
	sel     pool.Selector
	ending  [1]pool.Ending
}

const outstanding = 100

func newLoad(tb testing.TB, proxies int, regions int) *load {
	tb.Helper()
	policy := pool.DefaultPolicy()
	policy.ReuseInterval = 5 * time.Second
	policy.Pacing.Start = policy.Pacing.Max // the pace is not what is measured
	l := &load{
		st: pool.New("bench", policy, judge.Rule), now: pool.At(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)),
		rng: rand.New(rand.NewPCG(1, 2)), step: 10_000 / float64(proxies),
	}
	list := make([]pool.Import, proxies)
	for i := range list {
		list[i] = importOf(i, regions)
	}
	l.st.Import(l.now, list)
	for i := range 20 {
		l.targets = append(l.targets, fmt.Sprintf("target%02d.example", i))
	}
	return l
}

func importOf(i, regions int) pool.Import {
	spec := pool.Spec{
		Proxy: proxy.Proxy{
			Scheme: proxy.SchemeHTTP, Host: fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255), Port: 8080,
			Username: fmt.Sprintf("user%06d", i), Password: proxy.Secret(fmt.Sprintf("pass%08d", i)),
		},
		Region: fmt.Sprintf("r%d", i%regions), Group: "provider", Labels: "plan=basic,zone=a",
	}
	return pool.Import{ID: spec.Proxy.ID([]byte("key")), Spec: spec}
}

func (l *load) tick() {
	l.sub += l.step
	whole := int64(l.sub)
	l.sub -= float64(whole)
	l.now += pool.Time(whole)
}

// outcomes are 10 % failures of mixed kinds.
var outcomes = func() []pool.Outcome {
	list := make([]pool.Outcome, 100)
	for i := range list {
		list[i] = pool.Outcome{Class: pool.ClassOK, Status: 200, Elapsed: 300 * time.Millisecond, Bytes: 20_000}
	}
	for i, class := range []pool.Class{
		pool.ClassProxyDial, pool.ClassTimeoutHeaders, pool.ClassTarget5xx, pool.ClassRateLimited, pool.ClassBlockedHard,
		pool.ClassViaUnreachable, pool.ClassTunnelReset, pool.ClassTimeoutBody, pool.ClassTarget5xx, pool.ClassBlockedSoft,
	} {
		list[i] = pool.Outcome{Class: class, Elapsed: time.Second}
	}
	return list
}()

func (l *load) acquire() bool {
	l.tick()
	res, err := l.st.Acquire(l.now, pool.AcquireParams{
		Target: l.targets[l.rng.IntN(len(l.targets))], Worker: "w1", Count: 1, Select: l.sel,
	}, l.rng)
	if err != nil {
		panic(err)
	}
	if res.Refusal != nil {
		return false
	}
	l.out = append(l.out, res.Grants[0].Lease.Key)
	return true
}

func (l *load) report() {
	i := l.rng.IntN(len(l.out))
	key := l.out[i]
	l.out[i] = l.out[len(l.out)-1]
	l.out = l.out[:len(l.out)-1]
	l.ending[0] = pool.Ending{Key: key, Kind: pool.EndReport, Outcome: outcomes[l.rng.IntN(len(outcomes))]}
	l.st.Settle(l.now, l.ending[:], l.rng)
}

func (l *load) fill() {
	for len(l.out) < outstanding {
		if !l.acquire() {
			panic("the pool is too small for the load")
		}
	}
}

func (l *load) cycles(b *testing.B) {
	b.Helper()
	refused := 0
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		l.report()
		for !l.acquire() {
			refused++
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(refused)/float64(b.N)*100, "%refused")
}

// newFullLoad is a load that ran long enough to fill windows and lines.
func newFullLoad(b *testing.B, proxies, regions int) *load {
	b.Helper()
	l := newLoad(b, proxies, regions)
	l.fill()
	for range 200_000 {
		l.report()
		for !l.acquire() {
		}
	}
	return l
}

// BenchmarkRegion asks for one of four regions.
func BenchmarkRegion(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := newFullLoad(b, n, 4)
			l.sel.Region = "r1"
			l.cycles(b)
		})
	}
}

// BenchmarkBlocked works on a target for which nine tenths of the pool rest.
func BenchmarkBlocked(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := newFullLoad(b, n, 1)
			blocked := l.targets[0]
			for rest := n * 9 / 10; rest > 0; {
				l.tick()
				res, err := l.st.Acquire(l.now, pool.AcquireParams{Target: blocked, Worker: "w1", Count: min(rest, 100)}, l.rng)
				if err != nil || res.Refusal != nil {
					break
				}
				for _, g := range res.Grants {
					rest--
					l.ending[0] = pool.Ending{Key: g.Lease.Key, Outcome: pool.Outcome{Class: pool.ClassGeoBlocked}}
					l.st.Settle(l.now, l.ending[:], l.rng)
				}
			}
			l.targets = l.targets[:1]
			l.step *= 20 // one target: a twentieth of the starts
			for range 20_000 {
				l.report()
				for !l.acquire() {
				}
			}
			l.cycles(b)
		})
	}
}

// BenchmarkMemory is what a proxy costs whose windows are full in every bucket,
// with credentials and two labels, and what a pair costs that rests.
func BenchmarkMemory(b *testing.B) {
	const n = 20_000
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for range b.N {
		before := heap()
		l := newLoad(b, n, 4)
		for minute := range 70 {
			l.now = l.now.Add(time.Minute)
			if minute < 60 && minute%5 != 0 {
				continue // a use in each five minutes, then one in each minute
			}
			l.useAll(b, l.targets[0])
		}
		l.settleDown(n)
		used := heap()
		policy := l.st.Policy()
		policy.ReuseInterval = 12 * time.Hour
		l.st.SetPolicy(l.now, policy)
		for _, target := range l.targets[1:5] {
			l.useAll(b, target)
			l.settleDown(n)
		}
		pair := (heap() - used) / (4 * n)
		b.ReportMetric(pair, "B/pair")
		b.ReportMetric((used-before)/n-pair, "B/proxy") // its pair with the first target is not its own
		runtime.KeepAlive(l)
	}
}

// useAll uses every proxy once on a target.
func (l *load) useAll(b *testing.B, target string) {
	b.Helper()
	for {
		res, err := l.st.Acquire(l.now, pool.AcquireParams{Target: target, Worker: "w"}, l.rng)
		if err != nil {
			b.Fatal(err)
		}
		if res.Refusal != nil {
			return
		}
		l.ending[0] = pool.Ending{Key: res.Grants[0].Lease.Key, Outcome: pool.Outcome{Class: pool.ClassOK, Elapsed: time.Second}}
		l.st.Settle(l.now, l.ending[:], l.rng)
	}
}

// settleDown lets ended leases and votes be forgotten.
func (l *load) settleDown(n int) {
	l.now = l.now.Add(3 * time.Minute)
	l.st.Sweep(l.now, n)
}

func BenchmarkCycle(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			newFullLoad(b, n, 1).cycles(b)
		})
	}
}
