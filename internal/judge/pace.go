package judge

import (
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// Constants of the pace (docs/policy.md, pacing).
const (
	paceWindow     = 5 * time.Second // least length of a window
	recoveryWindow = 2 * time.Second // of a target that comes back
	windowVotes    = 20              // outcomes that a window waits for
	cutAbove       = .10             // Wilson-low of the failed share that cuts
	cutHard        = .50
	cutRated       = .02 // and of the rate-limited share
	growBelow      = .02
	grow           = 1.5
	growAfterCut   = .05 // of the limit, at least 1, once the last cut's limit is reached
	gapGrow        = 1.5
	gapShrink      = .8
	gapMost        = 60_000 // ms
	underCeiling   = .85
	ceilingGrow    = 1.02
	ceilingEvery   = 20 * time.Second
	latencyWeight  = .1
)

// setPace takes an outcome into the pace: it is cut at once, and grows window
// by window.
func setPace(c *pool.Case, a *pool.Assessment, e pool.Effect) {
	p := &a.Pace
	if p.Limit == 0 {
		p.Limit = float32(c.Policy.Pacing.Start)
		newWindow(p, c.Now)
		p.Clean = c.Now
	}
	if a.Probe.Open() || c.Lease.N <= p.CutN {
		return // one cut per event: what started before it says nothing of the new pace
	}
	switch {
	case e.Target == pool.Plus:
		p.Seen.OK++
		if c.Lease.Fresh {
			p.Seen.FreshOK++
		}
		learnLatency(c, p)
	case e.Target != pool.Minus:
		return
	default:
		p.Seen.Failed++
		if c.Outcome.Class == pool.ClassRateLimited {
			p.Seen.Rated++
			if c.Lease.Fresh {
				p.Seen.FreshRated++
			}
			holdAll(c, p)
		}
		if by := cutBy(a); by < 1 {
			cut(c, a, by)
			return
		}
	}
	closeWindow(c, a)
	setStep(p)
}

// learnLatency follows the time of good answers.
func learnLatency(c *pool.Case, p *pool.Pace) {
	d := c.Outcome.Elapsed
	if d <= 0 {
		d = c.Now.Sub(c.Lease.Granted)
	}
	ms := float32(d) / float32(time.Millisecond)
	if p.Latency == 0 {
		p.Latency = ms
	}
	p.Latency += latencyWeight * (ms - p.Latency)
}

// holdAll honours Retry-After for the whole target, once it says so to most:
// what it says to one address while others are served holds only that pair.
func holdAll(c *pool.Case, p *pool.Pace) {
	if after := c.Outcome.RetryAfter; after > 0 && p.Seen.Rated >= 2 && p.Seen.Rated > p.Seen.OK {
		p.Hold = max(p.Hold, c.Now.Add(after))
	}
}

// cutBy tells what the outcomes of two windows make of the limit: 1 = nothing.
func cutBy(a *pool.Assessment) float32 {
	p := &a.Pace
	n := float64(p.Seen.N() + p.Before.N())
	failed, rated := float64(p.Seen.Failed+p.Before.Failed), float64(p.Seen.Rated+p.Before.Rated)
	share := WilsonLow(failed, n, wilson95)
	usual := min(max(float64(a.Base), baseLow), baseHigh)
	switch {
	case n < minVoters:
		return 1
	case share > max(cutHard, 2*usual):
		return .5
	case share > max(cutAbove, 2*usual), rated >= 2 && WilsonLow(rated, n, wilson95) > cutRated:
		return .7
	default:
		return 1
	}
}

// cut lowers the limit, and widens the gap or, at a rate limit, remembers the
// rate that went well.
func cut(c *pool.Case, a *pool.Assessment, by float32) {
	p := &a.Pace
	if p.Limit == 0 {
		p.Limit = float32(c.Policy.Pacing.Start)
	}
	all := p.Seen.Plus(p.Before)
	p.CutN, p.CutAt = c.LastLease, c.Now
	switch rated := 2*all.Rated >= all.Failed && all.Rated > 0; {
	case rated && perAddress(all) && a.ReuseSteps < maxReuseSteps:
		a.ReuseSteps, a.ReuseAt = a.ReuseSteps+1, c.Now
	case rated:
		p.CutFrom, p.Limit = p.Limit, max(1, p.Limit*by)
		setCeiling(c, p, all)
	default:
		p.CutFrom, p.Limit = p.Limit, max(1, p.Limit*by)
		p.Gap = min(gapMost, max(p.Gap, p.Step, 1)*gapGrow)
	}
	newWindow(p, c.Now)
	p.Before, p.Elapsed = pool.Outcomes{}, 0
	setStep(p)
	a.Version++
}

// perAddress says whether the target limits addresses rather than everybody:
// those that had rested from it are served. Then each has to rest longer.
func perAddress(all pool.Outcomes) bool {
	return all.FreshRated == 0 && all.FreshOK >= minFresh
}

const minFresh = 3

// setCeiling remembers how many a second went well when the target said "too many".
func setCeiling(c *pool.Case, p *pool.Pace, all pool.Outcomes) {
	seconds := float32(c.Now.Sub(p.Window).Seconds()) + p.Elapsed
	rate := float32(all.OK) / max(seconds, 1)
	if p.Ceiling > 0 {
		rate = min(rate, p.Ceiling) // a limit that was exceeded lies below it
	}
	p.Ceiling = max(rate, 1./60)
	p.Clean = c.Now
}

// closeWindow ends a window that is long and full enough, and lets the pace
// grow if the target was asked as fast as the pace allowed and stood it.
func closeWindow(c *pool.Case, a *pool.Assessment) {
	p := &a.Pace
	least := paceWindow
	if a.Verdict == pool.VerdictRecovering {
		least = recoveryWindow
	}
	age := c.Now.Sub(p.Window)
	if age < least || p.Seen.N() < min(windowVotes, max(1, int(2*p.Limit))) {
		return
	}
	usual := min(max(float64(a.Base), baseLow), baseHigh)
	good := float64(p.Seen.Failed) <= max(growBelow, usual)*float64(p.Seen.N())+1 && p.Seen.Rated == 0
	if good && c.Target.Pressed() {
		raise(p)
	}
	if good {
		p.Gap *= gapShrink
		if p.Gap < 1 {
			p.Gap = 0
		}
		for p.Ceiling > 0 && c.Now.Sub(p.Clean) >= ceilingEvery {
			p.Ceiling *= ceilingGrow
			p.Clean = p.Clean.Add(ceilingEvery)
		}
	}
	if a.Verdict == pool.VerdictRecovering && good && (p.Limit >= p.Former/2 || !c.Target.Pressed()) {
		a.Verdict = pool.VerdictHealthy
	}
	p.Before, p.Elapsed = p.Seen, float32(age.Seconds())
	newWindow(p, c.Now)
	forgiveReuse(c, a)
}

// raise grows the limit: by half until the last cut's, then step by step.
func raise(p *pool.Pace) {
	if p.CutFrom == 0 || p.Limit < p.CutFrom {
		p.Limit *= grow
		if p.CutFrom > 0 {
			p.Limit = min(p.Limit, p.CutFrom)
		}
		return
	}
	p.Limit += max(1, growAfterCut*p.Limit)
	p.CutFrom = p.Limit
}

func newWindow(p *pool.Pace, now pool.Time) {
	p.Window, p.Seen = now, pool.Outcomes{}
}

// setStep works out the gap between starts: that of the cuts, the pace of the
// limit at the usual latency (an answer that fails fast must not speed things
// up), and the ceiling.
func setStep(p *pool.Pace) {
	p.Step = p.Gap
	if p.Limit > 0 {
		p.Step = max(p.Step, p.Latency/p.Limit)
	}
	if p.Ceiling > 0 {
		p.Step = max(p.Step, 1000/(underCeiling*p.Ceiling))
	}
}

// reuseForgive is how long a target must be healthy for its reuse interval to halve again.
const reuseForgive = 10 * time.Minute

func forgiveReuse(c *pool.Case, a *pool.Assessment) {
	if a.ReuseSteps > 0 && a.Verdict == pool.VerdictHealthy && c.Now.Sub(a.ReuseAt) >= reuseForgive {
		a.ReuseSteps--
		a.ReuseAt = c.Now
	}
}
