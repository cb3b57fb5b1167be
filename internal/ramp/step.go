package ramp

import (
	"slices"
	"time"

	"github.com/hostler-proxy/hostler/internal/judge"
)

// Step is what came of one concurrency.
type Step struct {
	Concurrency int     `json:"concurrency"`
	Seconds     float64 `json:"seconds"`
	Requests    int     `json:"requests"`
	RPS         float64 `json:"rps"` // requests a second
	OK          int     `json:"ok"`
	S429        int     `json:"s429"`
	Timeouts    int     `json:"timeouts"`
	Answers     int     `json:"answers"` // that the target itself gave
	Valid       int     `json:"valid"`   // of these: with the text that must be there
	Refused     int     `json:"refused"` // acquires that got no proxy
	Proxies     int     `json:"proxies"` // different ones
	InFlight    float64 `json:"in_flight"`
	P50MS       int64   `json:"p50_ms"`
	P95MS       int64   `json:"p95_ms"`
	// Stop says why this step was one too many; "" = it was good.
	Stop Stop `json:"stop"`
}

// Stop is why a ramp ends.
type Stop string

// The reasons. StopMax and StopEnded end a ramp on a good step.
const (
	Good         Stop = ""
	Stop429      Stop = "429"
	StopTimeouts Stop = "timeouts"
	StopValid    Stop = "valid"
	StopFailures Stop = "failures" // more than half failed, in whatever way
	StopPool     Stop = "pool"     // the pool lends no more proxies at once
	StopMax      Stop = "max"
	StopEnded    Stop = "interrupted"
)

// Bounds are the shares, 0..1, above which a step is one too many.
type Bounds struct {
	S429, Timeouts float64
	// ValidDrop is how much of the first step's share of valid pages may be lost.
	ValidDrop float64
}

// Judge says whether a step is within the bounds; first is the ramp's first step,
// nil while it runs. A step that is under way stops only when it is sure (z > 0)
// that a share is above its bound.
func (b *Bounds) Judge(s, first *Step, checked bool, z float64) Stop {
	above := func(n, of int, bound float64) bool {
		if of == 0 {
			return false
		}
		if z > 0 {
			return of >= leastSample && judge.WilsonLow(float64(n), float64(of), z) > bound
		}
		return float64(n) > bound*float64(of)+1e-9
	}
	switch {
	case above(s.S429, s.Requests, b.S429):
		return Stop429
	case above(s.Timeouts, s.Requests, b.Timeouts):
		return StopTimeouts
	case checked && first != nil && first.Answers > 0 && above(s.Answers-s.Valid, s.Answers, 1-(1-b.ValidDrop)*share(first.Valid, first.Answers)):
		return StopValid
	case above(s.Requests-s.OK, s.Requests, 0.5):
		return StopFailures
	}
	return Good
}

// leastSample is how many requests a step under way must have made to be stopped.
const leastSample = 20

func share(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// reached is the share of a step's concurrency that must have been under way for
// it to say anything about the target.
const reached = 0.7

// next is the concurrency after n: a quarter more, so that the last good one is
// at most a fifth below the truth.
func next(n int) int { return max(n+1, n*5/4) }

// percentile of sorted durations.
func percentile(sorted []time.Duration, p float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))].Milliseconds()
}

// tally gathers what a step's workers see.
type tally struct {
	step    Step
	times   []time.Duration
	busy    time.Duration
	proxies map[string]bool
}

func (t *tally) add(o *outcome, proxy string) {
	t.step.Requests++
	t.proxies[proxy] = true
	t.busy += o.elapsed
	if o.ok() {
		t.step.OK++
		t.times = append(t.times, o.elapsed)
	}
	if o.facts.Status == 429 {
		t.step.S429++
	}
	if o.facts.Error == "timeout" {
		t.step.Timeouts++
	}
	if o.facts.Phase == "body" || o.facts.Phase == "headers" {
		t.step.Answers++
		if o.facts.Valid == nil && o.ok() || o.facts.Valid != nil && *o.facts.Valid {
			t.step.Valid++
		}
	}
}

// sum is the step as it stands after a time.
func (t *tally) sum(took time.Duration) Step {
	s := t.step
	s.Seconds = took.Seconds()
	s.RPS = float64(s.Requests) / max(took.Seconds(), 1e-3)
	s.InFlight = t.busy.Seconds() / max(took.Seconds(), 1e-3)
	s.Proxies = len(t.proxies)
	sorted := slices.Clone(t.times)
	slices.Sort(sorted)
	s.P50MS, s.P95MS = percentile(sorted, 0.5), percentile(sorted, 0.95)
	return s
}
