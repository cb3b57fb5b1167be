package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// reading shows on a terminal how much of a list was read.
type reading struct {
	in    io.Reader
	out   io.Writer
	total int64 // bytes; 0 = not known
	now   func() time.Time

	bytes, lines int64
	began, drawn time.Time
}

// redraw is the least time between two drawings.
const redraw = 200 * time.Millisecond

// watch wraps a list that is to be read; without a terminal it stays as it is.
func (e *env) watch(list io.Reader) (watched io.Reader, done func()) {
	if !terminal(e.errs) {
		return list, func() {}
	}
	p := newReading(list, e.errs, time.Now)
	return p, p.clear
}

func newReading(list io.Reader, out io.Writer, now func() time.Time) *reading {
	p := &reading{in: list, out: out, now: now, began: now()}
	if f, ok := list.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			p.total = info.Size()
		}
	}
	return p
}

// Read reads on and draws.
func (p *reading) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	p.bytes += int64(n)
	p.lines += int64(bytes.Count(b[:n], []byte{'\n'}))
	if now := p.now(); now.Sub(p.drawn) >= redraw {
		p.drawn = now
		_, _ = fmt.Fprintf(p.out, "\r%s\x1b[K", p.text(now))
	}
	return n, err
}

// text is the bar, where the size is known, and the pace.
func (p *reading) text(now time.Time) string {
	pace := ""
	if took := now.Sub(p.began).Seconds(); took >= 1 {
		pace = fmt.Sprintf(", %.0f lines/s", float64(p.lines)/took)
	}
	if p.total <= 0 {
		return fmt.Sprintf("%d lines%s", p.lines, pace)
	}
	const width = 30
	share := min(1, float64(p.bytes)/float64(p.total))
	full := int(share * width)
	return fmt.Sprintf("[%s%s] %3.0f%%  %d lines%s", strings.Repeat("=", full), strings.Repeat(" ", width-full), share*100, p.lines, pace)
}

// clear takes the bar away.
func (p *reading) clear() {
	if !p.drawn.IsZero() {
		_, _ = io.WriteString(p.out, "\r\x1b[K")
	}
}
