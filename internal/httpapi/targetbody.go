package httpapi

import (
	"math"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

type outageBody struct {
	From    timestamp `json:"from"`
	To      timestamp `json:"to"`
	Verdict string    `json:"verdict"`
}

// targetOf shows a target.
func targetOf(poolName string, v *pool.TargetView, at store.Moment) targetBody {
	a := &v.Judge
	b := targetBody{
		Target: v.Name, Pool: poolName, Verdict: a.Verdict.String(), VerdictSince: stamp(a.Since), Outages: []outageBody{},
		Limit: v.Limit, StartGapMS: v.Step.Milliseconds(),
		Holds: []slotBody{}, Votes: voteBody{v.Votes.OK, v.Votes.Failed}, InFlight: v.InFlight,
		ReuseIntervalMS: v.Reuse.Milliseconds(), Resting: map[string]int{"reuse_interval": v.Resting[0], "pair_cooling": v.Resting[1]},
		Requests: v.Spend.Total.Requests, Bytes: v.Spend.Total.Bytes, Money: moneyOf(&v.Spend, at.Calendar, &v.Windows, at.Now, 0),
		Windows: windowsOf(&v.Windows, at.Now, at.Day), Classes: classesOf(&v.Classes), LastUsedAt: stamp(v.LastUsed),
	}
	if a.Probe.Open() {
		b.NextProbeAt = stamp(a.Probe.At)
	}
	for _, o := range a.Out {
		if o.From != 0 {
			b.Outages = append(b.Outages, outageBody{stamp(o.From), stamp(o.To), o.Verdict.String()})
		}
	}
	if a.Pace.Ceiling > 0 {
		ceiling := math.Round(float64(a.Pace.Ceiling)*1000) / 1000
		b.CeilingRPS = &ceiling
	}
	if a.Pace.Hold > at.Now {
		b.Holds = append(b.Holds, slotBody{Cause: pool.CauseRate.String(), Until: stamp(a.Pace.Hold)})
	}
	return b
}
