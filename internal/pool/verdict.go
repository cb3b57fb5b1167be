package pool

import (
	"fmt"
	"time"
)

// Verdict is the current judgement on a target.
type Verdict uint8

// The verdicts.
const (
	VerdictHealthy    Verdict = iota
	VerdictSuspect            // it looks bad, on too little evidence: half the pace, no charges
	VerdictDown               // it does not answer: no starts but probes
	VerdictRate               // it is asked too fast
	VerdictBlock              // it refuses addresses, or everybody
	VerdictRecovering         // it is back: slow start
	NumVerdicts
)

var verdictNames = [...]string{"healthy", "suspect", "down", "rate", "block", "recovering"}

// String gives the wire name.
func (v Verdict) String() string { return verdictNames[v] }

// MarshalText gives the wire name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a wire name.
func (v *Verdict) UnmarshalText(b []byte) error {
	for i, name := range verdictNames {
		if string(b) == name {
			*v = Verdict(i)
			return nil
		}
	}
	return fmt.Errorf("%q is not a verdict", b)
}

// Assessment is what the judge holds of a target: the verdict with its evidence,
// the pace of starts, and the outages that it remembers. Its zero value is that
// of a target of which nothing is known.
type Assessment struct {
	Version int64   `json:"version,omitempty"`
	Verdict Verdict `json:"verdict"`
	Since   Time    `json:"since,omitempty"`

	Run    Run       `json:"run"`
	Last   uint32    `json:"last,omitempty"`  // the newest 20 votes, the newest in the lowest bit; 1 = failed
	Voted  uint8     `json:"voted,omitempty"` // how many of them there are
	Base   float32   `json:"base,omitempty"`  // share of failed votes in healthy times
	BaseN  uint16    `json:"base_n,omitempty"`
	LastOK Time      `json:"last_ok,omitempty"`
	InRow  uint8     `json:"in_row,omitempty"` // failed votes since LastOK
	Pace   Pace      `json:"pace"`
	Probe  Circuit   `json:"probe"` // open while the verdict stops all starts but probes
	Out    [4]Outage `json:"out"`   // the last outages, newest first

	// ReuseSteps doubles the reuse interval: addresses were burnt.
	ReuseSteps uint8 `json:"reuse_steps,omitempty"`
	ReuseAt    Time  `json:"reuse_at,omitempty"` // when it last changed
}

// Run is the evidence against a target since its detector last stood at nothing.
type Run struct {
	Sum        float32   `json:"sum,omitempty"` // log-likelihood for "it fails now"
	Since      Time      `json:"since,omitempty"`
	Voters     uint16    `json:"voters,omitempty"`
	Kinds      [3]uint16 `json:"kinds"` // failed votes: down, rate, block
	Fresh      [2]uint16 `json:"fresh"` // ok and failed votes of addresses that were new to the target
	Used       [2]uint16 `json:"used"`  // and of those that were not
	Group      uint32    `json:"group,omitempty"`
	Worker     uint32    `json:"worker,omitempty"`
	ManyGroups bool      `json:"many_groups,omitempty"`
	ManyWorker bool      `json:"many_workers,omitempty"`
}

// Pace is how many requests may be at a target, and how far apart they start.
type Pace struct {
	Limit   float32 `json:"limit,omitempty"`   // most requests at once; 0 = not begun
	Gap     float32 `json:"gap,omitempty"`     // between starts after cuts, in ms
	Latency float32 `json:"latency,omitempty"` // of good answers, in ms
	Ceiling float32 `json:"ceiling,omitempty"` // starts a second that went well before the last rate limit
	CutFrom float32 `json:"cut_from,omitempty"`
	CutN    int64   `json:"cut_n,omitempty"` // newest lease at the last cut: older ones say nothing of the new pace
	CutAt   Time    `json:"cut_at,omitempty"`
	Clean   Time    `json:"clean,omitempty"` // since when the ceiling has held
	Hold    Time    `json:"hold,omitempty"`  // no start before: Retry-After

	Window  Time     `json:"window,omitempty"` // start of the window below
	Seen    Outcomes `json:"seen"`
	Before  Outcomes `json:"before"` // of the window before
	Elapsed float32  `json:"elapsed,omitempty"`
	Former  float32  `json:"former,omitempty"` // limit before the outage
	Step    float32  `json:"step,omitempty"`   // ms between starts that follows from all of this: what the mechanics read
}

// Outcomes are the outcomes of one window of a pace.
type Outcomes struct {
	OK, Failed, Rated uint16
	// FreshOK and FreshRated are those of addresses that had rested from the target.
	FreshOK, FreshRated uint16
}

// Plus adds two windows.
func (o Outcomes) Plus(d Outcomes) Outcomes {
	return Outcomes{o.OK + d.OK, o.Failed + d.Failed, o.Rated + d.Rated, o.FreshOK + d.FreshOK, o.FreshRated + d.FreshRated}
}

// N is how many there were.
func (o Outcomes) N() int { return int(o.OK) + int(o.Failed) }

// Circuit lets probes through instead of requests.
type Circuit struct {
	Since Time          `json:"since,omitempty"` // open since; 0 = closed
	At    Time          `json:"at,omitempty"`    // no probe before
	Step  time.Duration `json:"step,omitempty"`
	OK    uint8         `json:"ok,omitempty"` // probes in a row that went well
	By    [2]uint32     `json:"by"`           // their proxies
	Cause Class         `json:"cause,omitempty"`

	probe int64 // the lease that is the probe under way; 0 = none
}

// Open says whether only probes pass.
func (c Circuit) Open() bool { return c.Since != 0 }

// until is when to come again; 0 or past = a lease may start now.
func (c Circuit) until(now Time) Time {
	switch {
	case !c.Open():
		return 0
	case c.probe != 0:
		return now.Add(probeWait)
	default:
		return c.At
	}
}

// probeWait is how long somebody waits who finds a probe under way.
const probeWait = time.Second

// start books a lease that passed an open circuit as its probe.
func (c *Circuit) start(lease *Lease) {
	if c.Open() {
		c.probe, lease.Probe = lease.N, true
	}
}

// end takes the end of a lease; it tells whether it was the probe.
func (c *Circuit) end(lease *Lease) bool {
	if c.probe != lease.N {
		return false
	}
	c.probe = 0
	return true
}

// Outage is a time in which a target itself was at fault; To = 0 while it lasts.
type Outage struct {
	From    Time    `json:"from,omitempty"`
	To      Time    `json:"to,omitempty"`
	Verdict Verdict `json:"verdict"`
}

// onsetSlack is how long before the onset of an outage charges are void: the
// first failures came before the evidence (docs/policy.md, void).
const onsetSlack = 30 * time.Second

// At tells the outage that covers a time.
func (a *Assessment) At(when Time) (Outage, bool) {
	for _, o := range a.Out {
		if o.From != 0 && when >= o.From.Add(-onsetSlack) && (o.To == 0 || when <= o.To) {
			return o, true
		}
	}
	return Outage{}, false
}

// Charges says whether failures on the target may be held against pairs and proxies.
func (a *Assessment) Charges() bool {
	return a.Verdict == VerdictHealthy || a.Verdict == VerdictRate || a.Verdict == VerdictRecovering || a.Verdict == VerdictBlock && !a.Probe.Open()
}
