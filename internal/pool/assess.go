package pool

// testify completes a case with what the judge of a target needs: who speaks,
// and for the first time.
func (s *State) testify(c *Case, pair *Pair, w *Worker) {
	t := c.Target
	c.LastLease, c.Activity, c.GroupKey = s.lastLease, s.active().Activity, groupKey(c.Group)
	c.Probe = c.Lease.Probe && t.Judge.Probe.Open() && c.Lease.Granted >= t.Judge.Probe.Since
	c.Held = s.held(c.Group)
	epoch := epochOf(s.now)
	if c.Proxy.Spec.Exit == ExitStatic {
		c.Ballot = pair == nil || pair.Epoch != epoch || !pair.Failed && c.Outcome.Class.Effect().Target == Minus
		c.NewVoter = pair == nil || pair.Epoch == 0 || epochEnd(pair.Epoch) <= t.Judge.Run.Since
	} else {
		c.Ballot = t.Votes.Epoch != epoch || t.Votes.ByLease < maxLeaseVotes
		c.NewVoter = true
	}
	switch e := c.Outcome.Class.Effect(); e.Global {
	case Minus:
		c.Burst = s.burst(c.Lease, c.Group, w)
	case Maybe:
		c.MayPromote = s.tallyOf(c.Group).mayPromote(s.now, s.groupSize(c.Group))
	}
	if c.Outcome.Class.Effect().Pair == Minus {
		c.MayRest = s.mayRest(t, pair)
	}
}

// restShare is the share of a target's proxies that may rest for failures on it:
// a sick target never empties the pool (docs/policy.md, ejection).
const restShare = .5

// mayRest says whether one more pair may rest, counted after it does. A pool of
// one never rests its only pair by statistics.
func (s *State) mayRest(t *Target, pair *Pair) bool {
	if pair != nil && pair.rests == restFault {
		return true // it is counted already
	}
	resting := 0
	for i := range t.blocked {
		resting += t.blocked[i][restFault-1]
	}
	return resting+1 <= int(restShare*float64(s.active().Proxies))
}

// assess puts a ruling on a target in force.
func (s *State) assess(t *Target, r *Ruling) {
	before := &t.Judge.Pace
	if before.Window != r.Target.Pace.Window {
		t.pressed = false
	}
	steps := t.Judge.ReuseSteps
	t.Judge = r.Target
	if t.Judge.ReuseSteps != steps {
		s.reuse[t.n] = -1
	}
	if r.Void {
		s.void(t)
		fault := FaultTarget
		if t.Judge.Verdict == VerdictBlock {
			fault = FaultBlock
		}
		s.changed.finding(Finding{Target: t.Name, Since: t.Judge.Out[0].From.Add(-onsetSlack), Fault: fault})
	}
}

// rememberMost bounds the pairs that an outage can free at once.
const rememberMost = 256

func (t *Target) remember(n uint32, at Time) {
	if len(t.recent) >= rememberMost {
		t.recent = append(t.recent[:0], t.recent[rememberMost/2:]...)
	}
	t.recent = append(t.recent, chargedPair{n, at})
}

// void takes back what pairs were charged since the onset of the target's outage.
func (s *State) void(t *Target) {
	outage := t.Judge.Out[0]
	for _, c := range t.recent {
		pair := t.pair(c.proxy)
		if pair == nil || pair.Charge == nil || c.at < outage.From.Add(-onsetSlack) {
			continue
		}
		charge := pair.Charge
		if charge.Slots[CauseFailure] > s.now {
			charge.Slots[CauseFailure] = s.now
		}
		charge.Streak -= min(1, charge.Streak)
		charge.Level -= min(1, charge.Level)
		charge.Version++
		place := t.pairs[c.proxy]
		s.recountPair(t, place)
		if pair.rests == restNone {
			s.retire(t, pair, place)
		}
		s.changed.pair(t, place)
	}
	t.recent = t.recent[:0]
}

// blame puts in force what an outcome says of the proxy's path: doubts, guards,
// or that it works.
func (s *State) blame(lease *Lease, p *Proxy, w *Worker, o *Outcome, before *Judgement, r *Ruling) {
	if r.ChangeDoubt {
		if r.Fault == FaultProxy && r.Doubt.Target[1] != 0 && (p.Doubt == nil || p.Doubt.Target[1] != r.Doubt.Target[1]) {
			s.changed.finding(Finding{Proxy: p.ID.String(), Since: r.Doubt.At[1], Fault: FaultProxy})
		}
		s.setDoubt(p, r.Doubt)
	}
	if r.Promoted {
		s.tallyOf(p.group).n++
	}
	if r.Trouble {
		s.trouble(lease, p, before, o.Class, r.Guard)
	}
	if o.Class.Effect().Global == Plus {
		s.works(lease, p.group, w)
	}
}

func (s *State) setDoubt(p *Proxy, d Doubt) {
	if d == (Doubt{}) {
		p.Doubt = nil
	} else {
		p.Doubt = &d
	}
	s.changed.proxy(p, dirtyJudge)
}
