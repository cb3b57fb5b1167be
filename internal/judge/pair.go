package judge

import (
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// rulePair charges or clears one proxy on one target.
func rulePair(c *pool.Case, r *pool.Ruling, e pool.Effect) {
	if e.Pair == pool.Plus && (c.Charge == nil || unburdened(c.Charge, c.Now)) {
		r.ClearPair = c.Charge != nil && forgiven(c, c.Charge)
		return
	}
	var before pool.Charge
	if c.Charge != nil {
		before = *c.Charge
	}
	charge := before
	cool := &c.Policy.Cooldown
	switch class := c.Outcome.Class; {
	case class == pool.ClassProxyPolicy:
		charge.Slots.Extend(pool.CausePolicy, c.Now.Add(jittered(cool.PolicyHold, cool.Jitter, c.Jitter)))
	case class == pool.ClassGeoBlocked:
		charge.Slots.Extend(pool.CauseGeo, c.Now.Add(cool.GeoHold))
	case class == pool.ClassRateLimited:
		limitRate(c, &charge)
	case e.Pair == pool.Minus && !r.Target.Charges(): // the target fails everybody
	case e.Pair == pool.Minus:
		chargePair(c, r, &charge)
	case e.Pair == pool.Maybe:
		charge.Provisional++
	case e.Pair == pool.Plus:
		clearPair(c, &charge)
	}
	if r.ChangePair = charge != before; r.ChangePair {
		r.Charge = charge
	}
}

// unburdened says that a success has nothing to clear.
func unburdened(ch *pool.Charge, now pool.Time) bool {
	return ch.Streak == 0 && ch.Provisional == 0 && ch.RateSteps == 0 && ch.Slots[pool.CauseFailure] <= now
}

// forgiven says that nothing is left of what was held against the pair: its
// ladder has sunk to the ground, no rest runs, and no lease is out from before
// the last failure. Then the record can go.
func forgiven(c *pool.Case, ch *pool.Charge) bool {
	end, _ := ch.Slots.Until()
	return end <= c.Now && decayed(ch.Level, ch.LevelAt, c.Now, c.Policy.Cooldown.Forgive) == 0 &&
		c.Now.Sub(ch.LevelAt) > c.Policy.MaxLifetime && c.Lease.Fence > ch.RateFence
}

// chargePair steps the pair's own ladder; it never suspends.
func chargePair(c *pool.Case, r *pool.Ruling, ch *pool.Charge) {
	if c.Lease.Fence <= ch.FailFence {
		return
	}
	cool := &c.Policy.Cooldown
	ch.Streak = inc(ch.Streak)
	ch.Level = inc(decayed(ch.Level, ch.LevelAt, c.Now, cool.Forgive))
	ch.LevelAt = c.Now
	ch.FailFence = c.Proxy.Mech.Fence
	if !c.MayRest { // half of the pool rests for this target: more would empty it
		suspect(c, &r.Target)
		return
	}
	ch.Slots.Extend(pool.CauseFailure, c.Now.Add(jittered(step(cool.Ladder, ch.Level), cool.Jitter, c.Jitter)))
}

// limitRate honours Retry-After, or guesses: doubling with each repeat. It is no
// failure and has no streak.
func limitRate(c *pool.Case, ch *pool.Charge) {
	hold := c.Outcome.RetryAfter
	if hold == 0 {
		hold = doubled(c.Policy.Cooldown.RateHold, ch.RateSteps, c.Policy.Cooldown.RateHoldMax)
	}
	if c.Lease.Fence > ch.RateFence { // one step for leases that were out together
		ch.RateSteps = inc(ch.RateSteps)
		ch.RateFence = c.Proxy.Mech.Fence
	}
	ch.Slots.Extend(pool.CauseRate, c.Now.Add(hold))
}

// clearPair takes a fresh success: it ends what failures had put on the pair.
func clearPair(c *pool.Case, ch *pool.Charge) {
	if c.Lease.Fence > ch.FailFence {
		ch.Streak, ch.Provisional = 0, 0
		ch.Slots[pool.CauseFailure] = min(ch.Slots[pool.CauseFailure], c.Now)
	}
	if c.Lease.Fence > ch.RateFence {
		ch.RateSteps = 0
	}
}

// ruleGroup holds a group whose account is out of quota, and counts the holds
// in a row.
func ruleGroup(c *pool.Case, r *pool.Ruling, e pool.Effect) {
	g := c.Group
	if g == nil {
		return
	}
	r.HoldUntil, r.HoldSteps = g.HoldUntil, g.HoldSteps
	switch {
	case c.Outcome.Class == pool.ClassProxyQuota:
		hold := c.Outcome.RetryAfter
		if hold == 0 {
			hold = doubled(c.Policy.Cooldown.QuotaHold, g.HoldSteps, c.Policy.Cooldown.RateHoldMax)
		}
		if c.Now >= g.HoldUntil { // those in flight when the hold began do not lengthen it
			r.HoldUntil, r.HoldSteps = c.Now.Add(hold), inc(g.HoldSteps)
		}
	case e.Success && g.HoldSteps > 0 && c.Now >= g.HoldUntil:
		r.HoldSteps = 0
	}
	r.ChangeGroup = r.HoldUntil != g.HoldUntil || r.HoldSteps != g.HoldSteps
}

func doubled(d time.Duration, steps uint8, most time.Duration) time.Duration {
	for range steps {
		if d *= 2; d >= most {
			return most
		}
	}
	return min(d, most)
}
