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
	// DropSession ends the session: a template's child that failed is never used again.
	DropSession bool
}

// reset readies a ruling for the next case; records that are not set as changed are not read.
func (r *Ruling) reset() {
	r.Counts, r.Vote = Counts{}, 0
	r.ChangeProxy, r.ChangePair, r.ClearPair, r.ChangeGroup, r.DropSession = false, false, false, false, false
}

// Judge decides what an outcome means. It must be a pure function of the case.
type Judge func(*Case, *Ruling)
