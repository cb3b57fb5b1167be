package demo

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hostler-proxy/hostler/client"
)

// watch looks at the daemon like an operator would, and remembers what it saw.
type watch struct {
	r *run

	mu    sync.Mutex
	seen  map[string]*path // by proxy id
	lines int              // of the table on the terminal
}

// path is the way of one proxy through its states.
type path struct {
	cooled, probed, back bool
	maxStreak            int
	last                 client.Proxy
}

func newWatch(r *run) *watch { return &watch{r: r, seen: map[string]*path{}} }

func (w *watch) run(ctx context.Context) {
	shown := time.Time{}
	for ctx.Err() == nil {
		w.look(ctx)
		every := 2 * time.Second
		if w.r.o.Terminal {
			every = 500 * time.Millisecond
		}
		if time.Since(shown) > every {
			w.show(ctx)
			shown = time.Now()
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// look takes one look at all proxies.
func (w *watch) look(ctx context.Context) {
	list, err := w.r.api.AllProxies(ctx, client.ProxyFilter{})
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range list {
		at := w.seen[p.ID]
		if at == nil {
			at = &path{}
			w.seen[p.ID] = at
		}
		at.maxStreak = max(at.maxStreak, p.Streak)
		switch p.State {
		case "cooling", "suspended":
			at.cooled, at.probed = true, false
		case "probation":
			at.probed = at.cooled
		case "active":
			at.back = at.back || at.cooled
		}
		at.last = p
	}
}

// show prints the state of things: redrawn on a terminal, a line elsewhere.
func (w *watch) show(ctx context.Context) {
	if w.r.o.Progress == nil {
		return
	}
	pool, err := w.r.api.Pool(ctx, "default")
	if err != nil {
		return
	}
	at := time.Since(w.r.start).Round(time.Second)
	pending := w.r.feeder.pending()
	if !w.r.o.Terminal {
		w.r.say("%5s  active %2d  new %2d  probation %2d  cooling %2d  suspended %2d  expired %d  leased %2d  granted %4d  waiting %3d",
			at, pool.Active, pool.New, pool.Probation, pool.Cooling, pool.Suspended, pool.Expired, pool.Leased, pool.Leases.Granted, pending)
		return
	}
	w.redraw(ctx, pool, at, pending)
}

func (w *watch) redraw(ctx context.Context, pool *client.Pool, at time.Duration, pending int) {
	targets, err := w.r.api.Targets(ctx, "")
	if err != nil {
		return
	}
	var b strings.Builder
	if w.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", w.lines)
	}
	lines := []string{
		fmt.Sprintf("%s of %s   granted %d   open %d   recovered %d   requests waiting %d", at, w.r.o.Duration, pool.Leases.Granted,
			pool.Leases.Open, pool.Leases.Expired, pending),
		fmt.Sprintf("proxies  active %d  new %d  probation %d  cooling %d  suspended %d  expired %d   in use %d", pool.Active, pool.New,
			pool.Probation, pool.Cooling, pool.Suspended, pool.Expired, pool.Leased),
	}
	for _, t := range targets {
		lines = append(lines, fmt.Sprintf("%-9s 10 min: %4d of %4d ok %s  429 %3d  timeouts %3d  in flight %d", t.Target, t.Windows.Ten.OK,
			t.Windows.Ten.Total, bar(t.Windows.Ten.Rate), t.Windows.Ten.S429, t.Windows.Ten.Timeouts, t.InFlight))
	}
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	w.lines = len(lines)
	_, _ = w.r.o.Progress.Write([]byte(b.String()))
}

// bar draws a rate in ten characters.
func bar(rate *float64) string {
	if rate == nil {
		return strings.Repeat(".", 10)
	}
	n := int(*rate*10 + 0.5)
	return strings.Repeat("#", n) + strings.Repeat(".", 10-n)
}
