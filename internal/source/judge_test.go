package source_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hostler-proxy/hostler/internal/source"
)

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		inForce int
		held    *source.Held
		answer  source.Answer
		verdict source.Verdict
		reason  string
		waits   int // equal answers that wait afterwards; 0 = nothing waits
	}{
		"the first list":                   {0, nil, source.Answer{Proxies: 1}, source.Take, "", 0},
		"as large as before":               {100, nil, source.Answer{Proxies: 100}, source.Take, "", 0},
		"half":                             {100, nil, source.Answer{Proxies: 50}, source.Take, "", 0},
		"less than half":                   {100, nil, source.Answer{Proxies: 49, Digest: "a"}, source.Hold, "49 proxies where 100 are in force", 1},
		"less than half, odd":              {101, nil, source.Answer{Proxies: 50, Digest: "a"}, source.Hold, "", 1},
		"the same again":                   {100, &source.Held{Digest: "a", Proxies: 49, Seen: 1}, source.Answer{Proxies: 49, Digest: "a"}, source.Hold, "(now 2)", 2},
		"three equal ones":                 {100, &source.Held{Digest: "a", Proxies: 49, Seen: 2}, source.Answer{Proxies: 49, Digest: "a"}, source.Take, "", 0},
		"another small one":                {100, &source.Held{Digest: "a", Proxies: 49, Seen: 2}, source.Answer{Proxies: 49, Digest: "b"}, source.Hold, "", 1},
		"the old one is back":              {100, &source.Held{Digest: "a", Proxies: 49, Seen: 2}, source.Answer{Proxies: 100}, source.Take, "", 0},
		"not modified":                     {100, &source.Held{Digest: "a", Proxies: 49, Seen: 2}, source.Answer{Unchanged: true}, source.Same, "", 0},
		"a failure":                        {100, nil, source.Answer{Fault: "the server answers 500"}, source.Refuse, "answers 500", 0},
		"a failure between":                {100, &source.Held{Digest: "a", Proxies: 49, Seen: 2}, source.Answer{Fault: "x"}, source.Refuse, "", 2},
		"empty":                            {100, nil, source.Answer{}, source.Refuse, "the list is empty", 0},
		"empty, and nothing in force":      {0, nil, source.Answer{}, source.Refuse, "the list is empty", 0},
		"no line is a proxy":               {0, nil, source.Answer{Rejected: 9, First: "no port"}, source.Refuse, "9 of 9 lines are no proxies, so this is hardly a list; the first: no port", 0},
		"more than half are no proxies":    {0, nil, source.Answer{Proxies: 9, Rejected: 10}, source.Refuse, "10 of 19", 0},
		"half of the lines are no proxies": {0, nil, source.Answer{Proxies: 10, Rejected: 10}, source.Take, "", 0},
	} {
		d := source.Judge(c.inForce, c.held, &c.answer)
		waits := 0
		if d.Held != nil {
			waits = d.Held.Seen
		}
		if d.Verdict != c.verdict || !strings.Contains(d.Reason, c.reason) || waits != c.waits || (d.Reason == "") != (c.verdict <= source.Same) {
			t.Errorf("%s: got %s %q, %d wait; want %s %q, %d", name, d.Verdict, d.Reason, waits, c.verdict, c.reason, c.waits)
		}
	}
}

// TestJudgeProperties plays answers and checks what must never happen.
func TestJudgeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inForce := rapid.IntRange(0, 20).Draw(t, "in force")
		var held *source.Held
		row, last := 0, ""
		for range rapid.IntRange(1, 30).Draw(t, "answers") {
			a := source.Answer{
				Proxies: rapid.IntRange(0, 20).Draw(t, "proxies"), Rejected: rapid.IntRange(0, 20).Draw(t, "rejected"),
				Digest:    rapid.SampledFrom([]string{"a", "b"}).Draw(t, "digest"),
				Unchanged: rapid.IntRange(0, 9).Draw(t, "unchanged") == 0,
			}
			if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
				a.Fault = "fault"
			}
			d := source.Judge(inForce, held, &a)
			small := a.Fault == "" && !a.Unchanged && a.Proxies > 0 && a.Rejected <= a.Proxies && 2*a.Proxies < inForce
			switch {
			case small && a.Digest == last:
				row++
			case small:
				row, last = 1, a.Digest
			case d.Verdict != source.Refuse:
				row, last = 0, ""
			}
			switch d.Verdict {
			case source.Take:
				if a.Fault != "" || a.Proxies == 0 || a.Rejected > a.Proxies {
					t.Fatalf("took %+v", a)
				}
				if small && row < 3 {
					t.Fatalf("took %d of %d after %d equal answers", a.Proxies, inForce, row)
				}
				if d.Held != nil {
					t.Fatal("something waits behind a set that was taken")
				}
				inForce, row, last = a.Proxies, 0, ""
			case source.Same:
				if d.Held != nil {
					t.Fatal("something waits although the set in force is back")
				}
			case source.Hold:
				if !small || d.Held == nil || d.Held.Seen != row || row >= 3 || d.Reason == "" {
					t.Fatalf("held %+v with %d in force: %+v, row %d", a, inForce, d.Held, row)
				}
			case source.Refuse:
				if d.Held != held || d.Reason == "" {
					t.Fatalf("a refusal changed what waits: %+v", d)
				}
			}
			held = d.Held
		}
	})
}

func TestWait(t *testing.T) {
	for _, c := range []struct {
		interval time.Duration
		fails    int
		asked    time.Duration
		want     time.Duration
	}{
		{time.Hour, 0, 0, time.Hour},
		{time.Hour, 1, 0, 30 * time.Second},
		{time.Hour, 2, 0, time.Minute},
		{time.Hour, 9, 0, time.Hour},
		{time.Hour, 1000, 0, time.Hour},
		{10 * time.Second, 1, 0, 10 * time.Second},
		{10 * time.Second, 3, 0, 40 * time.Second},
		{10 * time.Second, 99, 0, 10 * time.Minute},
		{time.Hour, 1, 5 * time.Minute, 5 * time.Minute},
		{time.Hour, 1, 500 * time.Hour, 24 * time.Hour},
		{time.Hour, 0, 5 * time.Hour, time.Hour},
	} {
		if got := source.Wait(c.interval, c.fails, c.asked, 0); got != c.want {
			t.Errorf("%s after %d failures: %s, want %s", c.interval, c.fails, got, c.want)
		}
		if got := source.Wait(c.interval, c.fails, c.asked, 1); got != c.want*11/10 {
			t.Errorf("with all the jitter: %s", got)
		}
	}
	for until, want := range map[time.Duration]time.Duration{-time.Hour: 0, time.Hour: time.Hour, 25 * time.Hour: 25 * time.Hour, 49 * time.Hour: 0} {
		if got := source.Left(time.Hour, until); got != want {
			t.Errorf("%s until the next: %s left, want %s", until, got, want)
		}
	}
	if source.Stale(time.Minute, 3*time.Minute) || !source.Stale(time.Minute, 3*time.Minute+1) {
		t.Error("stale begins at three intervals")
	}
}
