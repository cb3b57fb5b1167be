package pool_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
)

func TestSecondOpinion(t *testing.T) {
	const minute = pool.Time(60_000)
	type word struct {
		proxy     byte
		request   string
		at        pool.Time
		good      bool // a good answer instead of a suspicion
		confirmed bool
		first     byte // whose charge follows; 0 = nobody's
	}
	for _, tt := range []struct {
		name  string
		words []word
	}{
		{"one alone", []word{{proxy: 1, request: "a"}}},
		{"two agree", []word{{proxy: 1, request: "a"}, {proxy: 2, request: "a", at: 10 * minute, confirmed: true, first: 1}}},
		{"too late, and then a third", []word{
			{proxy: 1, request: "a"}, {proxy: 2, request: "a", at: 10*minute + 1}, {proxy: 3, request: "a", at: 11 * minute, confirmed: true, first: 2},
		}},
		{"the same proxy twice", []word{{proxy: 1, request: "a"}, {proxy: 1, request: "a", at: 1}, {proxy: 2, request: "a", at: 2, confirmed: true, first: 1}}},
		{"a third is charged, the first not again", []word{
			{proxy: 1, request: "a"}, {proxy: 2, request: "a", confirmed: true, first: 1}, {proxy: 3, request: "a", confirmed: true}, {proxy: 1, request: "a", confirmed: true},
		}},
		{"another request", []word{{proxy: 1, request: "a"}, {proxy: 2, request: "b"}}},
		{"no fingerprint", []word{{proxy: 1}, {proxy: 2}}},
		{"a good answer between", []word{{proxy: 1, request: "a"}, {proxy: 2, request: "a", good: true}, {proxy: 3, request: "a"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := pool.NewOpinions(10)
			for i, w := range tt.words {
				if w.good {
					o.Clear(1, w.request)
					continue
				}
				first, confirmed := o.Suspect(1, w.request, pool.Suspicion{Proxy: proxy.ID{w.proxy}, Class: pool.ClassSuspectSoft, At: w.at, Fence: int64(i)})
				whose := byte(0)
				if first != nil {
					whose = first.Proxy[0]
				}
				if confirmed != w.confirmed || whose != w.first {
					t.Fatalf("word %d: confirmed %v with %d", i+1, confirmed, whose)
				}
			}
		})
	}
	o := pool.NewOpinions(10)
	o.Suspect(1, "a", pool.Suspicion{Proxy: proxy.ID{1}})
	if _, confirmed := o.Suspect(2, "a", pool.Suspicion{Proxy: proxy.ID{2}}); confirmed {
		t.Error("another target agreed")
	}
}

// TestOpinionsAreBounded forgets the oldest first, and never confirms without two proxies.
func TestOpinionsAreBounded(t *testing.T) {
	o := pool.NewOpinions(3)
	for i := range 4 {
		o.Suspect(1, fmt.Sprint(i), pool.Suspicion{Proxy: proxy.ID{1}})
	}
	if _, confirmed := o.Suspect(1, "1", pool.Suspicion{Proxy: proxy.ID{2}}); !confirmed || o.Len() != 3 {
		t.Errorf("a kept request is not confirmed; %d are kept", o.Len())
	}
	if _, confirmed := o.Suspect(1, "0", pool.Suspicion{Proxy: proxy.ID{2}}); confirmed {
		t.Error("a forgotten request is confirmed")
	}
}

func TestOpinionsHoldTheirPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := pool.NewOpinions(rapid.IntRange(1, 5).Draw(t, "most"))
		told := map[string]map[byte]pool.Time{}
		now := pool.Time(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += pool.Time(rapid.Int64Range(0, int64(4*time.Minute/time.Millisecond)).Draw(t, "gap"))
			request := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "request")
			id := rapid.ByteRange(1, 4).Draw(t, "proxy")
			first, confirmed := o.Suspect(1, request, pool.Suspicion{Proxy: proxy.ID{id}, At: now})
			if told[request] == nil {
				told[request] = map[byte]pool.Time{}
			}
			others := 0
			for other, at := range told[request] {
				if other != id && now.Sub(at) <= 10*time.Minute {
					others++
				}
			}
			if confirmed && others == 0 && first != nil {
				t.Fatal("confirmed by nobody else")
			}
			if first != nil && (first.Proxy[0] == id || now.Sub(first.At) > 10*time.Minute) {
				t.Fatalf("the first is %+v at %d", first, now)
			}
			told[request][id] = now
		}
		if o.Len() > 5 {
			t.Fatalf("%d are kept", o.Len())
		}
	})
}

// TestSecondOpinionCharges: one weak hit charges nobody; the second, by another proxy on
// the same request, charges both.
func TestSecondOpinionCharges(t *testing.T) {
	t.Parallel()
	policy := pool.DefaultPolicy()
	policy.Pacing.Start = policy.Pacing.Max
	st := pool.New("p", policy, judge.Rule)
	rng := rand.New(rand.NewPCG(1, 1))
	now := pool.At(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	for i := range 6 {
		st.Import(now, []pool.Import{importOf(i, 1)})
	}
	suspect := func() proxy.ID {
		now = now.Add(time.Second)
		res, err := st.Acquire(now, pool.AcquireParams{
			Target: "t.example", Worker: "w", Request: pool.Request{Fingerprint: "page 1"},
		}, rng)
		if err != nil || res.Refusal != nil {
			t.Fatal(err, res.Refusal)
		}
		st.Settle(now, []pool.Ending{{Key: res.Grants[0].Lease.Key, Outcome: pool.Outcome{Class: pool.ClassSuspectSoft}}}, rng)
		return res.Grants[0].ID
	}
	rests := func(id proxy.ID) bool {
		for _, pair := range st.Pairs(now, st.ProxyByID(id)) {
			if pair.Charge != nil && pair.Charge.Slots[pool.CauseFailure] > now {
				return true
			}
		}
		return false
	}
	first := suspect()
	if rests(first) {
		t.Fatal("one weak hit charged the pair")
	}
	second := suspect()
	if first == second || !rests(first) || !rests(second) {
		t.Fatalf("after a second opinion: first rests %v, second rests %v", rests(first), rests(second))
	}
}
