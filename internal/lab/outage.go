package lab

import "time"

// outage gives the window in which the target is down.
func (t *Target) outage() (from, until time.Time) {
	from = t.lab.start.Add(t.spec.DownFrom)
	return from, from.Add(t.spec.DownFor)
}

// down says whether the target is in its outage.
func (t *Target) down() bool {
	now := t.lab.now()
	from, until := t.outage()
	return t.Kind == OutageTarget && !now.Before(from) && now.Before(until)
}

// fault is what the target was made to do to requests between two times.
func (t *Target) fault(from, until time.Time) string {
	switch t.Kind {
	case OutageTarget:
		down, up := t.outage()
		if !until.Before(down) && from.Before(up) {
			return FaultTarget
		}
	case HangingTarget:
		return FaultTarget
	case LimitedTarget:
		return FaultRate
	case BanningTarget, SoftBlockTarget:
		return FaultBlock
	case PlainTarget, TLSTarget:
	}
	return FaultNone
}
