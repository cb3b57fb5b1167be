package keeper

import (
	"context"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// pacer gives way to those that lease while a list comes in: then an import
// takes two thirds of the time, so that acquires find the store free and a
// processor idle. While nobody asks it does not rest.
type pacer struct {
	asks func() int64 // acquires ever
	now  func() pool.Time

	seen  int64
	quiet int // pieces since somebody asked
	began pool.Time
	debt  time.Duration // rest that is owed
}

// Bounds of a pacer.
const (
	quietPieces = 100              // after so many pieces without an acquire nobody asks
	leastRest   = time.Millisecond // shorter rests are saved up: timers are no finer
)

// begin is called before a piece goes into the store.
func (p *pacer) begin() { p.began = p.now() }

// owed tells, after a piece, how long to rest now.
func (p *pacer) owed() time.Duration {
	if asks := p.asks(); asks != p.seen {
		p.seen, p.quiet = asks, 0
	} else if p.quiet++; p.quiet > quietPieces {
		p.debt = 0
		return 0
	}
	p.debt += p.now().Sub(p.began) / 2
	if p.debt < leastRest {
		return 0
	}
	rest := p.debt
	p.debt = 0
	return rest
}

// rest rests, if it is owed.
func (p *pacer) rest(ctx context.Context) {
	d := p.owed()
	if d == 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
