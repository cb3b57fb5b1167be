package pool

import "time"

// paceBurst is how far starts may catch up with their pace: callers come when
// they come, and a gap that was missed by a few milliseconds is not lost.
const paceBurst = 20 // ms

// paced says whether a target may be asked now. If not, again is when to come
// back; 0 = when a lease on it ends.
func (s *State) paced(t *Target) (ok bool, again Time) {
	a := &t.Judge
	if a.Probe.Open() {
		again = a.Probe.until(s.now)
		return again <= s.now, again
	}
	pace := &a.Pace
	switch {
	case pace.Hold > s.now:
		return false, pace.Hold
	case t.InFlight >= s.limitOf(t):
		return false, 0
	case t.nextStart > float64(s.now):
		return false, Time(t.nextStart) + 1
	default:
		return true, 0
	}
}

// limitOf is the most requests at once on a target.
func (s *State) limitOf(t *Target) int {
	most := s.policy.Pacing.Max
	if own := s.policy.Targets[t.Name].MaxConcurrency; own != nil {
		most = *own
	}
	limit := int(t.Judge.Pace.Limit)
	if t.Judge.Pace.Limit == 0 {
		limit = s.policy.Pacing.Start
	}
	return max(1, min(limit, most))
}

// stepOf is the least time between two starts on a target, in milliseconds.
func (s *State) stepOf(t *Target) float64 {
	least := s.policy.Pacing.MinGap
	if own := s.policy.Targets[t.Name].MinGap; own != nil {
		least = *own
	}
	return max(float64(t.Judge.Pace.Step), float64(least)/float64(time.Millisecond))
}

// startOn counts a start on a target.
func (s *State) startOn(t *Target, lease *Lease) {
	t.InFlight++
	t.Judge.Probe.start(lease)
	if step := s.stepOf(t); step > 0 {
		t.nextStart = max(t.nextStart, float64(s.now)-paceBurst) + step
	}
}

// endOn counts the end of a lease on a target.
func (s *State) endOn(t *Target, lease *Lease) {
	t.InFlight--
	if t.Judge.Probe.end(lease) {
		s.changed.target(t)
	}
}

// Activity is what a pool does now: the guards of a verdict ask for as many groups
// and workers as there are.
type Activity struct {
	Groups, Workers int
	Proxies         int // in service
}

// activity is looked at once a second.
type activity struct {
	Activity
	at Time
}

const (
	activityAge  = time.Second
	activeWorker = time.Minute
)

func (s *State) active() *activity {
	a := &s.activity
	if a.at != 0 && s.now.Sub(a.at) < activityAge {
		return a
	}
	*a = activity{at: s.now}
	groups := map[*Group]bool{}
	for _, c := range s.classes {
		n := c.count[StatusNew] + c.count[StatusActive] + c.count[StatusProbation]
		a.Proxies += n
		if n > 0 {
			groups[c.group] = true
		}
	}
	a.Groups = len(groups)
	for _, w := range s.workers {
		if w != nil && s.now.Sub(w.LastSeen) < activeWorker {
			a.Workers++
		}
	}
	return a
}
