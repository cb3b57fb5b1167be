package lab

import "time"

// lateness is how far a port may lag behind its schedule: a few ticks, on a busy
// machine.
const lateness = 5 * tick

// fails says whether the proxy was made to fail a request to a target between
// two times.
func (p *Proxy) fails(t *Target, from, until time.Time) bool {
	switch p.Kind {
	case Refusing, Hanging, WrongCredentials, Denying, Truncating:
		return true
	case BadGateway:
		return t.secure || !p.spec.TunnelsOnly
	case CutsTunnel, Tampering:
		return t.secure
	case Flaky:
		return p.takesTurns() && (!p.works(from) || !p.works(until) || !p.works(from.Add(-lateness)))
	case Expiring:
		return !until.Before(p.ExpiresAt)
	default:
		return false
	}
}

// mayFail says whether the proxy is the likely one where nothing else was made to
// fail.
func (p *Proxy) mayFail() bool {
	return p.Kind == Slow || p.Kind == Flaky && !p.takesTurns()
}
