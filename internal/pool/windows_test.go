package pool_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// TestWindowsAgainstAllEvents compares the rings with a list of all events, over
// clock steps both ways and jumps over many buckets (invariant I21).
func TestWindowsAgainstAllEvents(t *testing.T) {
	type event struct {
		at  pool.Time
		day int32
		c   pool.Counts
	}
	rapid.Check(t, func(t *rapid.T) {
		var w pool.Windows
		now := pool.At(time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC))
		newest, newestDay := pool.Time(0), int32(0)
		var events []event
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 30, 61, 300, 3700, 90_000, -45, -4000}).Draw(t, "step")) * time.Second)
			day := int32(now / 86_400_000)
			newest, newestDay = max(newest, now), max(newestDay, day)
			c := pool.Counts{Total: 1, OK: uint32(rapid.IntRange(0, 1).Draw(t, "ok"))}
			if rapid.IntRange(0, 5).Draw(t, "kind") == 0 {
				c = pool.Counts{Total: uint32(rapid.IntRange(0, 70_000).Draw(t, "many")), Blamed: 3, Doubtful: 1, S429: 2, Valid: 1}
			}
			w.Add(now, day, c)
			events = append(events, event{newest, newestDay, c}) // an old time counts in the newest bucket
			if rapid.Bool().Draw(t, "through bytes") {
				var back pool.Windows
				if err := back.UnmarshalBinary(w.AppendBinary(nil)); err != nil {
					t.Fatal(err)
				}
				if back.TenMinutes(now) != w.TenMinutes(now) || back.Hour(now) != w.Hour(now) || back.Day(now, day) != w.Day(now, day) {
					t.Fatal("the encoding lost something")
				}
				w = back
			}
		}
		sum := func(bucket, count pool.Time) (total pool.Counts) {
			from := (newest/bucket - count + 1) * bucket
			for _, e := range events {
				if e.at >= from {
					total = total.Plus(e.c)
				}
			}
			return total
		}
		var today pool.Counts
		for _, e := range events {
			if e.day == newestDay {
				today = today.Plus(e.c)
			}
		}
		if diff := cmp.Diff(sum(60_000, 10), w.TenMinutes(now)); diff != "" {
			t.Fatal("ten minutes:", diff)
		}
		if diff := cmp.Diff(sum(300_000, 12), w.Hour(now)); diff != "" {
			t.Fatal("hour:", diff)
		}
		if diff := cmp.Diff(today, w.Day(now, newestDay)); diff != "" {
			t.Fatal("day:", diff)
		}
		ten, hour, _ := w.Standings(newest, newestDay)
		a, b := sum(60_000, 10), sum(300_000, 12)
		if ten != (pool.Standing{OK: a.OK, Bad: a.Blamed + a.Doubtful}) || hour != (pool.Standing{OK: b.OK, Bad: b.Blamed + b.Doubtful}) {
			t.Fatalf("standings %+v %+v for %+v %+v", ten, hour, a, b)
		}
	})
}

func TestAmendTouchesOnlyKeptBuckets(t *testing.T) {
	var w pool.Windows
	at := pool.At(time.Date(2026, 1, 1, 12, 0, 30, 0, time.UTC))
	w.Add(at, 1, pool.Counts{Total: 1, OK: 1})
	w.Amend(at, 1, at.Add(5*time.Minute), pool.Counts{Invalid: 1}, pool.Counts{OK: 1})
	if got := w.TenMinutes(at.Add(5 * time.Minute)); got != (pool.Counts{Total: 1, Invalid: 1}) {
		t.Errorf("amended %+v", got)
	}
	w.Amend(at, 1, at.Add(30*time.Minute), pool.Counts{}, pool.Counts{Total: 5})
	if got := w.TenMinutes(at.Add(30 * time.Minute)); got != (pool.Counts{}) {
		t.Errorf("a bucket that is gone: %+v", got)
	}
	if got := w.Hour(at.Add(30 * time.Minute)); got.Total != 0 {
		t.Errorf("below 0: %+v", got)
	}
}

func FuzzWindows(f *testing.F) {
	var w pool.Windows
	f.Add(w.AppendBinary(nil))
	w.Add(1e12, 5, pool.Counts{Total: 70_000, OK: 3})
	f.Add(w.AppendBinary(nil))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var w pool.Windows
		if err := w.UnmarshalBinary(b); err != nil {
			return
		}
		w.Add(2e12, 30_000, pool.Counts{Total: 1})
		var back pool.Windows
		if err := back.UnmarshalBinary(w.AppendBinary(nil)); err != nil {
			t.Fatal(err)
		}
		var s pool.Samples
		_ = s.UnmarshalBinary(b)
		s.Add(2e12, pool.Use{time.Second, time.Second, -1})
	})
}

func TestSamples(t *testing.T) {
	var s pool.Samples
	if _, ok := s.P50(pool.Hold, 0, time.Hour); ok {
		t.Error("nothing has a median")
	}
	now := pool.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for i := range 40 {
		latency := time.Duration(-1)
		if i == 30 {
			latency = 0
		}
		s.Add(now.Add(time.Duration(i)*time.Minute), pool.Use{pool.Interval: 5 * time.Hour, pool.Hold: time.Duration(i) * time.Second, pool.Latency: latency})
	}
	end := now.Add(39 * time.Minute)
	if d, _ := s.Last(pool.Hold); d != 39*time.Second {
		t.Errorf("last %s", d)
	}
	if d, ok := s.Last(pool.Latency); !ok || d != 0 {
		t.Errorf("last latency %s %v", d, ok)
	}
	if d, _ := s.P50(pool.Hold, end, time.Hour); d != 33*time.Second { // the last thirteen: 27 to 39
		t.Errorf("median %s", d)
	}
	if d, _ := s.P50(pool.Hold, end, 4*time.Minute); d != 37*time.Second { // 35 to 39
		t.Errorf("median of five minutes %s", d)
	}
	if d, _ := s.P50(pool.Interval, end, time.Hour); d != 5*time.Hour {
		t.Errorf("a long one %s", d)
	}
	var back pool.Samples
	if err := back.UnmarshalBinary(s.AppendBinary(nil)); err != nil {
		t.Error(err)
	}
	a, _ := s.P50(pool.Hold, end, 5*time.Minute)
	if b, _ := back.P50(pool.Hold, end, 5*time.Minute); a != b {
		t.Errorf("the encoding lost something: %s, %s", a, b)
	}
}
