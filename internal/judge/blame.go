package judge

import "github.com/hostler-proxy/hostler/internal/pool"

// othersSucceed is the Wilson-low of a target's last votes above which a failure
// that may be the proxy's or the target's is the proxy's.
const othersSucceed = .5

// blamed tells whose fault an outcome is, by what is known now. What turns out
// later, an outage or a proxy that fails elsewhere too, rewrites the record.
func blamed(c *pool.Case, r *pool.Ruling, e pool.Effect) pool.Fault {
	doubtful := e.Fault == pool.FaultUnsure || c.Outcome.Class == pool.ClassPlainDenied
	switch {
	case !doubtful:
		return e.Fault
	case r.Target.Probe.Open():
		if r.Target.Verdict == pool.VerdictBlock {
			return pool.FaultBlock
		}
		return pool.FaultTarget
	case c.Outcome.Class == pool.ClassSuspectSoft:
		return e.Fault
	case r.Doubt.Target[1] != 0 && r.ChangeDoubt && c.Now.Sub(r.Doubt.At[1]) <= doubtAge:
		return pool.FaultProxy // it fails on another target that works
	case c.Outcome.Class == pool.ClassPlainDenied:
		return e.Fault
	case othersWork(&c.Target.Judge):
		return pool.FaultProxy
	default:
		return e.Fault
	}
}

// othersWork says whether the target answered most of its last voters.
func othersWork(a *pool.Assessment) bool {
	ok, n := 0, int(a.Voted)
	for i := range n {
		if a.Last>>i&1 == 0 {
			ok++
		}
	}
	return WilsonLow(float64(ok), float64(n), 1) > othersSucceed
}
