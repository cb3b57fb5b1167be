package judge

import (
	"math"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// Constants of the target detector (docs/policy.md, verdicts).
const (
	alarm      = 18  // log-likelihood at which a run is a verdict: less than one false alarm a target and month
	minVoters  = 5   // distinct voters before a verdict counts; Envoy and gRPC ask for as many hosts
	lastVotes  = 20  // votes that must confirm it
	baseStart  = .05 // failure rate of a target of which nothing is known
	baseWeight = 20  // votes that this guess is worth
	baseMemory = 500 // votes over which the rate is learnt
	baseLow    = .02
	baseHigh   = .25
)

// Low traffic: so many failed votes in a row, none ok for so long, are a suspicion.
const (
	suspectRow   = 4
	suspectQuiet = 10 * time.Minute
)

// kinds of failed votes, as Run.Kinds counts them.
const (
	kindDown = iota
	kindRate
	kindBlock
)

func kindOf(class pool.Class) int {
	switch class {
	case pool.ClassRateLimited:
		return kindRate
	case pool.ClassBlockedHard, pool.ClassBlockedSoft, pool.ClassGeoBlocked, pool.ClassPlainDenied:
		return kindBlock
	default:
		return kindDown
	}
}

// ruleTarget moves the verdict and the pace of the target.
func ruleTarget(c *pool.Case, r *pool.Ruling, e pool.Effect) {
	r.Target = c.Target.Judge
	a := &r.Target
	before := a.Verdict
	if a.Probe.Open() {
		if c.Probe {
			takeProbe(c, a, e)
		}
	} else if c.Lease.N > a.Pace.CutN || a.Verdict != pool.VerdictRecovering {
		if c.Ballot && e.Target != pool.Nothing && e.Target != pool.Maybe {
			castVote(c, a, e.Target == pool.Minus)
			conclude(c, a)
		}
		setPace(c, a, e)
	}
	if a.Verdict != before {
		a.Version++
		a.Since = c.Now
		r.Void = a.Probe.Open() && !c.Target.Judge.Probe.Open()
	}
}

// likelihood gives what a failed and an ok vote say for "it fails now" against
// "it is as always": Page's CUSUM as a repeated sequential test.
func likelihood(base float32) (failed, ok float32, p1 float64) {
	p0 := min(max(float64(base), baseLow), baseHigh)
	p1 = min(.9, max(.5, 4*p0))
	return float32(math.Log(p1 / p0)), float32(math.Log((1 - p1) / (1 - p0))), p1
}

// castVote takes one vote into the evidence.
func castVote(c *pool.Case, a *pool.Assessment, failed bool) {
	bit := uint32(0)
	if failed {
		bit = 1
	}
	a.Last = (a.Last<<1 | bit) & (1<<lastVotes - 1)
	a.Voted = min(a.Voted+1, lastVotes)
	learnBase(a, float32(bit))
	minus, plus, _ := likelihood(a.Base)
	if failed {
		a.InRow = inc(a.InRow)
		if a.Run.Sum <= 0 {
			a.Run = pool.Run{Since: c.Now}
		}
		a.Run.Sum += minus
		a.Run.Kinds[kindOf(c.Outcome.Class)]++
	} else {
		a.InRow, a.LastOK = 0, c.Now
		if a.Run.Sum += plus; a.Run.Sum <= 0 {
			a.Run = pool.Run{}
			return
		}
	}
	witness(c, &a.Run, int(bit))
}

// learnBase follows the failure rate of healthy times.
func learnBase(a *pool.Assessment, failed float32) {
	if a.BaseN == 0 {
		a.Base, a.BaseN = baseStart, baseWeight
	}
	if a.Verdict != pool.VerdictHealthy {
		return
	}
	a.BaseN = min(a.BaseN+1, baseMemory)
	a.Base += (failed - a.Base) / float32(a.BaseN)
}

// witness counts who spoke in a run.
func witness(c *pool.Case, run *pool.Run, failed int) {
	if c.NewVoter {
		run.Voters++
	}
	if c.Lease.Fresh {
		run.Fresh[failed]++
	} else {
		run.Used[failed]++
	}
	if failed == 0 {
		return
	}
	group, worker := c.GroupKey, c.Lease.Worker+1
	run.ManyGroups = run.ManyGroups || run.Group != 0 && run.Group != group
	run.ManyWorker = run.ManyWorker || run.Worker != 0 && run.Worker != worker
	run.Group, run.Worker = group, worker
}

// conclude turns the evidence into a verdict.
func conclude(c *pool.Case, a *pool.Assessment) {
	switch {
	case convicted(c, a):
		sentence(c, a)
	case a.Verdict == pool.VerdictRecovering && a.InRow >= suspectRow:
		open(c, a, pool.VerdictDown, probeFirst) // it fell again: no new evidence is asked for
	case a.Verdict == pool.VerdictHealthy && a.InRow >= suspectRow && c.Now.Sub(a.LastOK) >= suspectQuiet:
		suspect(c, a)
	case a.Verdict == pool.VerdictSuspect && a.InRow == 0,
		calm(a) && c.Now.Sub(a.Pace.CutAt) >= calmAfter:
		a.Verdict = pool.VerdictHealthy
	}
}

// suspect halves the pace and defers charges, on too little evidence for more.
func suspect(c *pool.Case, a *pool.Assessment) {
	if a.Verdict != pool.VerdictHealthy {
		return
	}
	a.Verdict, a.Since = pool.VerdictSuspect, c.Now
	cut(c, a, .5)
}

// calmAfter is how long a target must have been quiet after its last cut before
// "rate" or "block" is over.
const calmAfter = time.Minute

func calm(a *pool.Assessment) bool {
	return a.Run.Sum <= 0 && (a.Verdict == pool.VerdictRate || a.Verdict == pool.VerdictBlock)
}

// convicted says whether the evidence is enough, and comes from enough voters.
func convicted(c *pool.Case, a *pool.Assessment) bool {
	run := &a.Run
	if run.Sum < alarm || run.Voters < minVoters {
		return false
	}
	if c.Activity.Groups >= 2 && !run.ManyGroups || c.Activity.Workers >= 2 && !run.ManyWorker {
		return false
	}
	_, _, p1 := likelihood(a.Base)
	failed := 0
	for bits := a.Last; bits != 0; bits &= bits - 1 {
		failed++
	}
	return WilsonLow(float64(failed), float64(a.Voted), wilson95) > p1/2
}

// sentence says what kind of verdict it is, and acts.
func sentence(c *pool.Case, a *pool.Assessment) {
	k := a.Run.Kinds
	all := k[kindDown] + k[kindRate] + k[kindBlock]
	switch {
	case 2*k[kindRate] > all:
		a.Verdict = pool.VerdictRate
		cut(c, a, .5)
	case 2*k[kindBlock] > all && burnt(&a.Run):
		a.Verdict = pool.VerdictBlock
		a.ReuseSteps, a.ReuseAt = min(a.ReuseSteps+1, maxReuseSteps), c.Now
		cut(c, a, .5)
	case 2*k[kindBlock] > all:
		open(c, a, pool.VerdictBlock, probeBlock)
	default:
		open(c, a, pool.VerdictDown, probeFirst)
	}
}

// maxReuseSteps bounds how often the reuse interval of burnt addresses doubles.
const maxReuseSteps = 4

// burnt compares addresses that are new to the target with those that were used
// on it: the control group. If the new ones do better, the others are burnt; if
// not, the target refuses everybody.
func burnt(r *pool.Run) bool {
	fresh, used := float64(r.Fresh[0]+r.Fresh[1]), float64(r.Used[0]+r.Used[1])
	if fresh < minVoters {
		return false
	}
	return WilsonLow(float64(r.Fresh[0]), fresh, wilson95) > WilsonHigh(float64(r.Used[0]), used, wilson95)
}

// open stops all starts but probes, and remembers the outage.
func open(c *pool.Case, a *pool.Assessment, v pool.Verdict, every time.Duration) {
	a.Verdict = v
	p := &a.Pace
	p.Former = p.Limit
	if c.Now.Sub(p.CutAt) < formerAge {
		p.Former = max(p.Former, p.CutFrom)
	}
	from := a.Run.Since
	if from == 0 {
		from = c.Now
	}
	copy(a.Out[1:], a.Out[:3])
	a.Out[0] = pool.Outage{From: from, Verdict: v}
	a.Probe = pool.Circuit{Since: c.Now, At: c.Now.Add(every), Step: every, Cause: c.Outcome.Class}
	a.Run = pool.Run{}
	p.CutN, p.CutAt = c.LastLease, c.Now
	p.Seen, p.Before = pool.Outcomes{}, pool.Outcomes{}
}

// formerAge is how long ago a cut may be for the limit before it to be the one
// that a target gets back after an outage.
const formerAge = time.Minute
