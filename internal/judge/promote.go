package judge

import (
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// Promotion of doubtful failures to the proxy (docs/policy.md, promotion). A
// target that fails cannot promote: it needs two that work for others.
const (
	doubtAge     = 10 * time.Minute
	promoteLeast = 4  // outcomes in ten minutes
	promoteBelow = .6 // Wilson-high of their success
)

// ruleDoubt remembers on which healthy targets the proxy failed for reasons
// that may be its own.
func ruleDoubt(c *pool.Case, r *pool.Ruling, e pool.Effect) {
	if e.Global != pool.Maybe || c.Proxy.Spec.Exit != pool.ExitStatic || r.Target.Verdict != pool.VerdictHealthy {
		return
	}
	var d pool.Doubt
	if c.Proxy.Doubt != nil {
		d = *c.Proxy.Doubt
	}
	if d.Target[0] != c.Lease.Target+1 {
		d.Target[1], d.At[1] = d.Target[0], d.At[0]
	}
	d.Target[0], d.At[0] = c.Lease.Target+1, c.Now
	r.ChangeDoubt, r.Doubt = true, d
}

// promoted says whether doubtful failures add up to one step of the proxy.
func promoted(c *pool.Case, r *pool.Ruling) bool {
	if !r.ChangeDoubt || !c.MayPromote {
		return false
	}
	d := &r.Doubt
	if d.Target[1] == 0 || c.Now.Sub(d.At[1]) > doubtAge {
		return false
	}
	ten := c.Proxy.Windows.TenMinutes(c.Now).Plus(r.Counts)
	ok, n := float64(ten.OK), float64(ten.OK+ten.Blamed+ten.Doubtful)
	if n < promoteLeast || WilsonHigh(ok, n, wilson95) >= promoteBelow {
		return false
	}
	return true
}
