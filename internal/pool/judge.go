package pool

// Case is what a judge is asked about one ended lease: the records as they
// stand. A judge reads them and changes nothing.
type Case struct {
	Now     Time
	Day     int32 // local day number in the pool's zone
	Policy  *Policy
	Lease   *Lease
	Kind    EndKind
	Outcome *Outcome
	Proxy   *Proxy
	Group   *Group  // nil = the proxy has none
	Charge  *Charge // nil = nothing is held against the pair
	Target  *Target
	// Jitter is a random number in [0,1), the same for all slots of the ruling.
	Jitter float64

	// Ballot says that the outcome, if it speaks of the target, is its voter's
	// first in this epoch; NewVoter that the voter was not yet heard in the run.
	Ballot, NewVoter bool
	// Probe says that the lease was the probe of a target that is down.
	Probe bool
	// Held says that a guard holds the group or the pool: failures are not the proxies'.
	Held bool
	// MayPromote says that the group's share of promotions is not used up, and
	// MayRest that the target's share of resting pairs is not.
	MayPromote, MayRest bool
	// GroupKey tells groups apart; 0 = none.
	GroupKey  uint32
	LastLease int64 // number of the newest lease of the pool
	Activity  Activity
	Burst     Burst // of failures that are the proxies' own; only for those
}

// Ruling is the judge's answer: what is to change. Fields that are not set leave the record alone.
type Ruling struct {
	// Counts is added to the windows of proxy, group, target and worker.
	Counts Counts
	// Proxy replaces the proxy's judgement if ChangeProxy.
	ChangeProxy bool
	Proxy       Judgement
	// Charge replaces the pair's charge if ChangePair; ClearPair forgets it.
	ChangePair bool
	ClearPair  bool
	Charge     Charge
	// Quality always replaces the proxy's; it carries no version.
	Quality Quality
	// Hold is the new hold of the group if ChangeGroup.
	ChangeGroup bool
	HoldUntil   Time
	HoldSteps   uint8
	// Vote is the pair's vote on the target: +1 ok, -1 failed, 0 none.
	Vote int
	// Target replaces the target's assessment.
	Target Assessment
	// Void takes back the charges of pairs since the onset of the target's outage.
	Void bool
	// Doubt replaces what is doubted of the proxy if ChangeDoubt; Promoted says
	// that doubts were enough for a step.
	ChangeDoubt, Promoted bool
	Doubt                 Doubt
	// Trouble says that the failure is counted and the proxy had worked; Guard
	// whose fault the burst of them is.
	Trouble bool
	Guard   Guard
	// Fault is whose fault the outcome is, by what is known now.
	Fault Fault
	// DropSession ends the session: a template's child that failed is never used again.
	DropSession bool
}

// reset readies a ruling for the next case; records that are not set as changed are not read.
func (r *Ruling) reset() {
	r.Counts, r.Vote = Counts{}, 0
	r.Void, r.ChangeDoubt, r.Promoted, r.Trouble, r.Guard = false, false, false, false, GuardNone
	r.ChangeProxy, r.ChangePair, r.ClearPair, r.ChangeGroup, r.DropSession = false, false, false, false, false
}

// Judge decides what an outcome means. It must be a pure function of the case.
type Judge func(*Case, *Ruling)
