// Package judge decides what outcomes mean: it classifies what a worker saw, and
// rules on the records of proxy, pair and group. Pure functions over pool's
// records; classes.csv is the one table of classes.
package judge

import "github.com/hostler-proxy/hostler/internal/pool"

// Rule decides what one outcome means for the records it touches. It is the one
// judge of all stores: a pure function of the case.
func Rule(c *pool.Case, r *pool.Ruling) {
	effect := c.Outcome.Class.Effect()
	ruleTarget(c, r, effect)
	r.Counts = counts(c.Outcome, effect, r.Target.Charges())
	ruleDoubt(c, r, effect)
	ruleProxy(c, r, effect)
	ruleGroup(c, r, effect)
	if c.Proxy.Spec.Exit == pool.ExitStatic {
		rulePair(c, r, effect)
	} else {
		r.DropSession = c.Proxy.Spec.Exit == pool.ExitTemplate && endsChild(c.Outcome.Class, effect)
	}
	r.Vote = vote(effect)
	r.Fault = blamed(c, r, effect)
	r.Quality = quality(c, r.Counts)
}

// counts is what the outcome adds to every window. While the target itself is
// out, nothing doubtful is held against a proxy.
func counts(o *pool.Outcome, e pool.Effect, charges bool) pool.Counts {
	var d pool.Counts
	switch o.Valid {
	case pool.Valid:
		d.Valid = 1
	case pool.Invalid:
		d.Invalid = 1
	case pool.Unknown:
	}
	if !e.Counts {
		return d
	}
	d.Total = 1
	switch {
	case e.Success:
		d.OK = 1
	case e.Global == pool.Minus:
		d.Blamed = 1
	case e.Global == pool.Maybe && charges:
		d.Doubtful = 1
	}
	if o.Timeout {
		d.Timeouts = 1
	}
	switch o.Status {
	case 403:
		d.S403 = 1
	case 429:
		d.S429 = 1
	}
	return d
}

func vote(e pool.Effect) int {
	switch e.Target {
	case pool.Plus:
		return 1
	case pool.Minus:
		return -1
	default:
		return 0
	}
}

// endsChild says whether a template's session is burnt: what rests a static
// pair ends a child, since another is to be had.
func endsChild(class pool.Class, e pool.Effect) bool {
	return e.Pair == pool.Minus || class == pool.ClassRateLimited || class == pool.ClassTamper
}
