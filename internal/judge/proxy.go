package judge

import (
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// ruleProxy moves the proxy's own standing.
func ruleProxy(c *pool.Case, r *pool.Ruling, e pool.Effect) {
	if e.Global == pool.Plus && settled(c) {
		return
	}
	r.Proxy = c.Proxy.Judge
	j := &r.Proxy
	switch {
	case c.Kind == pool.EndExpire:
		orphan(c, j)
	case fault(c, e) && c.Held: // whose fault it is, is known
	case fault(c, e):
		failed(c, j)
		if r.Trouble = j.Streak > c.Proxy.Judge.Streak && c.Proxy.Judge.State == pool.StatusActive; r.Trouble {
			r.Guard = guard(c)
		}
	case promoted(c, r):
		failed(c, j)
		r.Promoted = j.Streak > c.Proxy.Judge.Streak
	case e.Global == pool.Plus:
		worked(c, j)
	case c.Outcome.Class == pool.ClassProxyQuota && c.Group == nil:
		rest(c, j)
	}
	if c.Kind == pool.EndReport {
		j.Orphans, j.OrphanWorker, j.OrphanMany = 0, 0, false
	}
	r.ChangeProxy = *j != c.Proxy.Judge
}

// settled says that a success changes nothing: the proxy is active, clean, and
// has earned all it can. Then the plain success, the common case, touches no
// judgement.
func settled(c *pool.Case) bool {
	j := &c.Proxy.Judge
	return c.Kind == pool.EndReport && j.State == pool.StatusActive && j.Streak == 0 && j.Orphans == 0 &&
		int(j.Earned) >= c.Proxy.OwnCap(c.Policy)
}

// fault says whether the outcome is a counted failure of the proxy itself. An
// exit that changes by itself is answerable only for its gateway: dial, TLS and
// credentials (docs/architecture.md, exits).
func fault(c *pool.Case, e pool.Effect) bool {
	if c.Outcome.Class != pool.ClassTamper {
		return e.Global == pool.Minus
	}
	return c.Proxy.Spec.Exit == pool.ExitStatic && witnessed(c)
}

// witnessed says whether others got good answers from the target lately. Without
// them a bad certificate is the target's own, and must not suspend the pool.
func witnessed(c *pool.Case) bool { return c.Target.Windows.TenMinutes(c.Now).OK > 0 }

// failed counts a failure: one step for all leases that were out when the first
// of them failed (the generation rule, invariant I17).
func failed(c *pool.Case, j *pool.Judgement) {
	if c.Lease.Fence <= j.FailFence {
		return
	}
	cool := &c.Policy.Cooldown
	j.Streak = inc(j.Streak)
	j.Level = inc(decayed(j.Level, j.LevelAt, c.Now, cool.Forgive))
	j.LevelAt = c.Now
	j.FailFence = c.Proxy.Mech.Fence
	j.Trials = 0
	j.Earned, j.EarnedOK = max(1, j.Earned/2), 0
	if int(j.Streak) >= cool.SuspendAfter || c.Outcome.Class == pool.ClassTamper {
		suspend(c, j)
		return
	}
	j.State = pool.StatusCooling
	j.Slots.Extend(pool.CauseFailure, c.Now.Add(jittered(step(cool.Ladder, j.Level), cool.Jitter, c.Jitter)))
}

// suspend rests the proxy long: twice as long each time, but never so long that
// it gets no trial within SuspendMax.
func suspend(c *pool.Case, j *pool.Judgement) {
	cool := &c.Policy.Cooldown
	rest := cool.SuspendFor
	for range j.Suspensions {
		if rest *= 2; rest >= cool.SuspendMax {
			break
		}
	}
	j.Suspensions = inc(j.Suspensions)
	j.State = pool.StatusSuspended
	j.Slots.Extend(pool.CauseFailure, c.Now.Add(min(jittered(rest, cool.Jitter, c.Jitter), cool.SuspendMax)))
}

// worked takes a sign that the path through the proxy works. Only leases newer
// than the last counted failure say anything about now.
func worked(c *pool.Case, j *pool.Judgement) {
	if c.Lease.Fence <= j.FailFence {
		return
	}
	j.Streak = 0
	switch j.StatusAt(c.Now) {
	case pool.StatusNew, pool.StatusProbation:
		prove(c, j)
	case pool.StatusActive:
		earn(c, j)
	}
}

// prove counts a trial that went well; enough of them make the proxy active.
func prove(c *pool.Case, j *pool.Judgement) {
	if j.State != pool.StatusNew {
		j.State = pool.StatusProbation
	}
	j.Trials = inc(j.Trials)
	if int(j.Trials) >= c.Policy.Cooldown.Rise {
		j.State = pool.StatusActive
		j.Suspensions = 0
		j.EarnedOK = 0
	}
}

// earn doubles the cap after as many fresh successes as the cap, as long as the
// proxy's last ten minutes are clean enough. The slow start of HAProxy by
// successes instead of seconds: an idle proxy earns nothing.
func earn(c *pool.Case, j *pool.Judgement) {
	own := int32(c.Proxy.OwnCap(c.Policy))
	if j.Earned >= own {
		return
	}
	j.EarnedOK++
	if j.EarnedOK < j.Earned {
		return
	}
	j.EarnedOK = 0
	if clean(c.Proxy.Windows.TenMinutes(c.Now), c.Policy.Caps.MaxBad) {
		j.Earned = min(2*j.Earned, own)
	}
}

// clean says whether the shares of rate limits, timeouts and bans stay within the bound.
func clean(ten pool.Counts, bound float64) bool {
	most := max(ten.S429, ten.Timeouts, ten.S403)
	return float64(most) <= bound*float64(ten.Total)
}

// orphan counts a lease that nobody ended. That is no failure of the proxy; but
// three in a row from two workers or more ask for a trial (docs/policy.md, leases).
func orphan(c *pool.Case, j *pool.Judgement) {
	if j.Orphans == 0 {
		j.OrphanWorker = c.Lease.Worker
	}
	j.OrphanMany = j.OrphanMany || j.OrphanWorker != c.Lease.Worker
	j.Orphans = inc(j.Orphans)
	if j.Orphans >= 3 && j.OrphanMany {
		if j.State == pool.StatusActive {
			j.State, j.Trials = pool.StatusProbation, 0
		}
		j.Orphans, j.OrphanMany = 0, false
	}
}

// rest keeps a proxy back whose own account is out of quota: no failure, no streak.
func rest(c *pool.Case, j *pool.Judgement) {
	hold := c.Policy.Cooldown.QuotaHold
	if c.Outcome.RetryAfter > 0 {
		hold = c.Outcome.RetryAfter
	}
	if j.State == pool.StatusActive || j.State == pool.StatusNew || j.State == pool.StatusProbation {
		j.State = pool.StatusCooling
	}
	j.Trials = 0
	j.Slots.Extend(pool.CauseRate, c.Now.Add(hold))
}

// decayed is the ladder level after some time without a counted failure.
func decayed(level uint8, at, now pool.Time, forgive time.Duration) uint8 {
	if forgive <= 0 || now <= at {
		return level
	}
	off := int64(now.Sub(at) / forgive)
	return uint8(max(0, int64(level)-off))
}

// step is the rest of a level, counted from 1; the last step repeats.
func step(ladder []time.Duration, level uint8) time.Duration {
	return ladder[min(int(level), len(ladder))-1]
}

// jittered adds up to share of d. It only ever adds, so that a step is kept.
func jittered(d time.Duration, share, random float64) time.Duration {
	return d + time.Duration(float64(d)*share*random)
}

func inc(n uint8) uint8 { return n + 1 - n/255 }
