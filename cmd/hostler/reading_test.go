package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	var out strings.Builder
	at := time.Unix(1000, 0)
	p := newReading(io.MultiReader(strings.NewReader("a\nb\n"), strings.NewReader("c\n")), &out, func() time.Time { return at })
	p.total = 8
	b := make([]byte, 4)
	for _, want := range []string{"\r[===============               ]  50%  2 lines\x1b[K", "\r[======================        ]  75%  3 lines, 2 lines/s\x1b[K"} {
		if _, err := p.Read(b); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Errorf("drew %q, want %q", got, want)
		}
		out.Reset()
		at = at.Add(1500 * time.Millisecond)
	}
	p.total = 0
	if got := p.text(at); got != "3 lines, 1 lines/s" {
		t.Errorf("without a size: %q", got)
	}
	if p.clear(); out.String() != "\r\x1b[K" {
		t.Errorf("cleared with %q", out.String())
	}
}
