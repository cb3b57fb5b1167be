package judge

import (
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// Probes of a target that was found down or blocking (docs/policy.md, exit).
const (
	probeFirst = 5 * time.Second
	probeMost  = 15 * time.Second // in the first hour
	probeLater = time.Minute      // after it
	probeNext  = 2 * time.Second  // after one that went well
	probeBlock = 30 * time.Second // 20 in ten minutes: more would only confirm the block
	probesOK   = 3
)

// takeProbe takes the outcome of a probe: three in a row that went well, from
// distinct proxies as far as there are as many, end the outage.
func takeProbe(c *pool.Case, a *pool.Assessment, e pool.Effect) {
	p := &a.Probe
	switch e.Target {
	case pool.Plus:
		p.At, p.Step = c.Now.Add(probeNext), probeFirst
		who := c.Lease.Proxy + 1
		if p.By[0] != who && p.By[1] != who || c.Activity.Proxies < probesOK || c.Proxy.Spec.Exit != pool.ExitStatic {
			p.OK++
			p.By[1], p.By[0] = p.By[0], who
		}
		if p.OK >= probesOK {
			recovering(c, a)
		}
	case pool.Minus:
		p.OK, p.By = 0, [2]uint32{}
		p.Step = nextProbe(a.Verdict, p.Step, c.Now.Sub(p.Since))
		p.At = c.Now.Add(p.Step)
	case pool.Nothing, pool.Maybe: // it said nothing of the target: another probe, soon
		p.At = c.Now.Add(probeNext)
	}
}

func nextProbe(v pool.Verdict, step, age time.Duration) time.Duration {
	switch {
	case v == pool.VerdictBlock:
		return probeBlock
	case age > time.Hour:
		return probeLater
	default:
		return min(step+step/2, probeMost)
	}
}

// recovering ends an outage: a tenth of the former limit, then slow start.
func recovering(c *pool.Case, a *pool.Assessment) {
	a.Verdict = pool.VerdictRecovering
	a.Out[0].To = c.Now
	a.Probe = pool.Circuit{}
	a.Run, a.Last, a.Voted, a.InRow, a.LastOK = pool.Run{}, 0, 0, 0, c.Now
	p := &a.Pace
	p.Limit, p.Gap = max(1, p.Former/10), 0
	p.CutFrom, p.CutN = p.Former, c.LastLease
	newWindow(p, c.Now)
	p.Before = pool.Outcomes{}
	setStep(p)
}
