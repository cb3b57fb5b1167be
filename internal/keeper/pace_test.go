package keeper

import (
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

func TestAnImportGivesWayToThoseThatLease(t *testing.T) {
	var asks int64
	var now pool.Time
	p := pacer{asks: func() int64 { return asks }, now: func() pool.Time { return now }}
	// pieces plays pieces of 1 ms each, of which every nth has an acquire beside it
	pieces := func(n, every int) (rested time.Duration) {
		for i := range n {
			if every > 0 && i%every == 0 {
				asks++
			}
			p.begin()
			now++
			rested += p.owed()
		}
		return rested
	}
	if rested := pieces(1000, 0); rested > quietPieces*time.Millisecond {
		t.Errorf("nobody asks: rested %s", rested)
	}
	if rested := pieces(1000, 10); rested < 490*time.Millisecond || rested > 510*time.Millisecond {
		t.Errorf("somebody asks: rested %s of 1 s, want half of it", rested)
	}
	pieces(1000, 0)
	if rested := pieces(1000, 0); rested != 0 {
		t.Errorf("nobody asks any more: rested %s", rested)
	}
}
