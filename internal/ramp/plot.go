package ramp

import (
	"fmt"
	"html"
	"strings"
)

// Size of the plot, and the frame around its field.
const (
	width, height = 640, 360
	left, right   = 60, 60
	top, bottom   = 40, 50
)

// Plot draws the curve as SVG: requests a second over concurrency, and the share
// of 429 and of timeouts on the right-hand scale.
func Plot(r *Result) string {
	p := plot{most: 1, rps: 1, bad: 0.05}
	for _, s := range r.Steps {
		p.most = max(p.most, float64(s.Concurrency))
		p.rps = max(p.rps, s.RPS)
		p.bad = max(p.bad, share(s.S429, s.Requests), share(s.Timeouts, s.Requests))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/><text x="%d" y="20">%s: what it bears</text>`+"\n", width, height, left, html.EscapeString(r.Target))
	fmt.Fprintf(&b, `<path d="M%d %dV%dH%dV%d" fill="none" stroke="#888"/>`+"\n", left, top, height-bottom, width-right, top)
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">requests at once (to %.0f)</text>`+"\n", width/2, height-15, p.most)
	for _, line := range []struct {
		name, colour string
		of           func(*Step) float64
		y            int
	}{
		{fmt.Sprintf("requests a second, to %.1f", p.rps), "#1668c4", func(s *Step) float64 { return s.RPS / p.rps }, 20},
		{fmt.Sprintf("429, to %.0f %%", 100*p.bad), "#c4381a", func(s *Step) float64 { return share(s.S429, s.Requests) / p.bad }, 36},
		{fmt.Sprintf("timeouts, to %.0f %%", 100*p.bad), "#b8860b", func(s *Step) float64 { return share(s.Timeouts, s.Requests) / p.bad }, 52},
	} {
		var points []string
		for i := range r.Steps {
			s := &r.Steps[i]
			points = append(points, fmt.Sprintf("%.1f,%.1f", p.x(s.Concurrency), p.y(line.of(s))))
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(points, " "), line.colour)
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" fill="%s">%s</text>`+"\n", width-right, line.y, line.colour, line.name)
	}
	if r.LastGood != nil {
		x := p.x(r.LastGood.Concurrency)
		fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="#2a8f3a" stroke-dasharray="4"/>`+"\n", x, top, height-bottom)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#2a8f3a">last good: %d</text>`+"\n", x, height-bottom+16, r.LastGood.Concurrency)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// plot is the scale: the ends of the axes.
type plot struct{ most, rps, bad float64 }

func (p *plot) x(n int) float64 { return left + float64(n)/p.most*(width-left-right) }

func (p *plot) y(share float64) float64 {
	return height - bottom - share*(height-top-bottom)
}
