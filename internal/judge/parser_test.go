package judge_test

import (
	"testing"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
)

func TestParserSuspect(t *testing.T) {
	pages := func(valid, invalid, ok, total uint32) pool.Counts {
		return pool.Counts{Valid: valid, Invalid: invalid, OK: ok, Total: total}
	}
	for _, tt := range []struct {
		name           string
		ten, hour, day pool.Counts
		proxies        int
		want           bool
	}{
		{"all of a sudden nothing is valid", pages(0, 20, 20, 20), pages(95, 25, 120, 120), pages(95, 25, 120, 120), 5, true},
		{"half is a smaller fall", pages(10, 10, 20, 20), pages(105, 15, 120, 120), pages(105, 15, 120, 120), 5, false},
		{"four proxies", pages(0, 20, 20, 20), pages(95, 25, 120, 120), pages(95, 25, 120, 120), 4, false},
		{"nineteen pages", pages(0, 19, 19, 19), pages(95, 24, 119, 119), pages(95, 24, 119, 119), 9, false},
		{"the hour is too short, the day is not", pages(0, 30, 30, 30), pages(5, 30, 35, 35), pages(500, 40, 540, 540), 8, true},
		{"nothing before", pages(0, 300, 300, 300), pages(0, 300, 300, 300), pages(0, 300, 300, 300), 50, false},
		{"it never was any better", pages(2, 28, 30, 30), pages(12, 138, 150, 150), pages(12, 138, 150, 150), 9, false},
		{"the site fails: not the parser", pages(0, 30, 10, 60), pages(200, 30, 230, 280), pages(200, 30, 230, 280), 9, false},
		{"only notes speak", pages(0, 30, 0, 0), pages(200, 40, 0, 0), pages(200, 40, 0, 0), 9, true},
		{"the day has just begun", pages(0, 30, 30, 30), pages(200, 40, 240, 240), pages(0, 10, 10, 10), 9, true},
		{"and nothing went before", pages(0, 30, 30, 30), pages(0, 30, 30, 30), pages(0, 10, 10, 10), 9, false},
		{"all is well", pages(200, 3, 203, 203), pages(1200, 15, 1215, 1215), pages(9000, 90, 9090, 9090), 3, false},
	} {
		if got := judge.ParserSuspect(tt.ten, tt.hour, tt.day, tt.proxies); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
