package pool

import (
	"fmt"
	"sort"
	"strings"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// Exit is how a proxy leaves to the internet.
type Exit uint8

// The exit kinds (docs/architecture.md).
const (
	ExitStatic   Exit = iota // one address
	ExitRotating             // a gateway that changes its exit by itself
	ExitTemplate             // username or password holds {session} or {country}: each session is a child
)

var exitNames = [...]string{"static", "rotating", "template"}

// String gives the wire name.
func (e Exit) String() string { return exitNames[e] }

// ParseExit reads a wire name.
func ParseExit(s string) (Exit, error) {
	for i, name := range exitNames {
		if s == name {
			return Exit(i), nil
		}
	}
	return 0, fmt.Errorf("exit %q is not one of static, rotating, template", s)
}

// Status is the state of a proxy as a person sees it; the counts of all
// statuses add up to the pool.
type Status uint8

// The states of a proxy.
const (
	StatusNew       Status = iota // never proven, never failed: cap 1
	StatusProbation               // rested after a failure: one trial at a time
	StatusActive                  // proven
	StatusCooling                 // resting until a time
	StatusSuspended               // resting long after a streak of failures
	StatusDraining                // an operator lets its leases run out
	StatusDisabled                // an operator paused it
	StatusExpired                 // its lifetime is over
	NumStatuses
)

var statusNames = [...]string{"new", "probation", "active", "cooling", "suspended", "draining", "disabled", "expired"}

// String gives the wire name.
func (s Status) String() string { return statusNames[s] }

// ParseStatus reads a wire name.
func ParseStatus(s string) (Status, error) {
	for i, name := range statusNames {
		if s == name {
			return Status(i), nil
		}
	}
	return 0, fmt.Errorf("state %q is not one of %s", s, strings.Join(statusNames[:], ", "))
}

// Cause is why something rests. Every cause has a slot of its own, so that a
// short rest never cuts a long one.
type Cause uint8

// The causes of a rest.
const (
	CauseFailure Cause = iota // counted failures: the ladder
	CauseRate                 // a rate limit, or a quota
	CausePolicy               // a rule of the proxy or of the site forbids the pair
	CauseGeo                  // the exit's country is refused
	NumCauses
)

var causeNames = [...]string{"failure", "rate", "policy", "geo"}

// String gives the wire name.
func (c Cause) String() string { return causeNames[c] }

// Slots are the ends of the rests of one record, by cause.
type Slots [NumCauses]Time

// Until is the latest end, and its cause.
func (s *Slots) Until() (Time, Cause) {
	end, cause := s[0], Cause(0)
	for c := Cause(1); c < NumCauses; c++ {
		if s[c] > end {
			end, cause = s[c], c
		}
	}
	return end, cause
}

// Extend moves one slot later, never earlier.
func (s *Slots) Extend(c Cause, end Time) { s[c] = max(s[c], end) }

// Labels are an operator's key=value marks in canonical text: sorted, separated
// by commas. One string is shared by all proxies that carry the same labels.
type Labels string

// MakeLabels gives the canonical text.
func MakeLabels(m map[string]string) Labels {
	parts := make([]string, 0, len(m))
	for k, v := range m {
		parts = append(parts, k+"="+v)
	}
	sort.Strings(parts)
	return Labels(strings.Join(parts, ","))
}

// Map gives the labels as a map.
func (l Labels) Map() map[string]string {
	m := map[string]string{}
	for part := range strings.SplitSeq(string(l), ",") {
		if k, v, ok := strings.Cut(part, "="); ok {
			m[k] = v
		}
	}
	return m
}

// Has says whether the labels hold k=v.
func (l Labels) Has(k, v string) bool {
	for part := range strings.SplitSeq(string(l), ",") {
		if key, value, ok := strings.Cut(part, "="); ok && key == k && value == v {
			return true
		}
	}
	return false
}

// Spec is what an operator or a list says of a proxy.
type Spec struct {
	proxy.Proxy
	Region, Group, Source string
	Labels                Labels
	Exit                  Exit
	// Cap is the proxy's own cap; 0 takes the policy's for its exit kind.
	Cap       int
	ExpiresAt Time
	AddedAt   Time
}

// Admin is what an operator ordered; it outranks every judgement.
type Admin struct {
	// State is StatusDraining or StatusDisabled, or StatusNew for "nothing ordered".
	State Status
	// Remove takes the proxy out of the pool when its last lease ends.
	Remove bool
	Until  Time // 0 = until further notice
	Reason string
}

// Mech is what the mechanics know of a proxy.
type Mech struct {
	Uses      int64 // grants ever, without those given back unused
	Fence     int64 // of the last grant; strictly increasing
	LastStart Time  // time of the last grant
	LastEnd   Time  // time of the last ended lease
	InUse     int   // live leases
}

// Judgement is what the judge holds of a proxy. It changes only with streaks,
// caps and slots, so that a plain success conflicts with nothing.
type Judgement struct {
	Version int64
	// State is New, Probation, Active, Cooling or Suspended. A rest that is over
	// reads as Probation: see [Judgement.StatusAt].
	State Status
	// Streak is the number of counted failures since the last fresh success.
	Streak uint8
	// Level is the ladder's step; it sinks by one per Policy.Cooldown.Forgive.
	Level   uint8
	LevelAt Time
	// Trials is the number of fresh successes since the last counted failure.
	Trials uint8
	// Suspensions is how often in a row the proxy was suspended.
	Suspensions uint8
	// Orphans is the number of leases in a row that expired unreported,
	// OrphanWorker the first one's worker, OrphanMany whether others had some.
	Orphans      uint8
	OrphanMany   bool
	OrphanWorker uint32
	Slots        Slots
	// FailFence is the fence of the newest lease granted when the last counted
	// failure came: outcomes of leases up to it are stale (invariant I17).
	FailFence int64
	FailedAt  Time
	// Earned is the cap earned by success, and EarnedOK the fresh successes since it last changed.
	Earned   int32
	EarnedOK int32
}

// StatusAt is the state without an operator's orders and without expiry.
func (j *Judgement) StatusAt(now Time) Status {
	if j.State != StatusCooling && j.State != StatusSuspended {
		return j.State
	}
	if end, _ := j.Slots.Until(); now < end {
		return j.State
	}
	return StatusProbation
}

// Quality is what the pick reads of the judge's opinion; it is no decision, so
// it has no version.
type Quality struct {
	Score float32 // 0..1, higher is better
	// Idle is the score without the last ten minutes; it takes over at
	// ScoreUntil, so that a proxy does not stay at the bottom for want of use.
	Idle       float32
	ScoreUntil Time
	// GatedUntil keeps the proxy out of the pick while others are ready.
	GatedUntil Time
	LastClass  Class
	LastReport Time
}

// Proxy is the whole record of one proxy. The order of its fields leaves no gaps:
// 632 bytes and a header of 8 are a size of the allocator, the next one is 704.
type Proxy struct {
	ID      proxy.ID
	Spec    *Spec // never changed in place: grants point at it
	Admin   Admin
	Mech    Mech
	Judge   Judgement
	Quality Quality
	Windows Windows
	Recent  Samples
	dirty   dirty
	n       uint32 // its number in the state
	Bytes   int64

	group *Group
	pairs pairRef
}

// StatusAt is the state of the proxy: an operator's order first, then expiry, then judgement.
func (p *Proxy) StatusAt(now Time) Status {
	if p.ordered(now) {
		return p.Admin.State
	}
	if p.expired(now) {
		return StatusExpired
	}
	return p.Judge.StatusAt(now)
}

func (p *Proxy) ordered(now Time) bool {
	return p.Admin.State != StatusNew && (p.Admin.Until == 0 || now < p.Admin.Until || p.Admin.Remove)
}

func (p *Proxy) expired(now Time) bool {
	return p.Spec.ExpiresAt != 0 && now >= p.Spec.ExpiresAt
}

// wakeAt is the next time at which the status or the tier changes by itself; 0 = never.
func (p *Proxy) wakeAt(now Time) Time {
	next := Time(0)
	soonest := func(t Time) {
		if t > now && (next == 0 || t < next) {
			next = t
		}
	}
	if p.ordered(now) {
		soonest(p.Admin.Until)
	}
	if s := p.Judge.StatusAt(now); s == StatusCooling || s == StatusSuspended {
		end, _ := p.Judge.Slots.Until()
		soonest(end)
	}
	soonest(p.Spec.ExpiresAt)
	soonest(p.Quality.GatedUntil)
	soonest(p.Quality.ScoreUntil)
	return next
}

// capIn is the cap in force for grants: 1 until proven, then what was earned,
// never more than the proxy's own.
func (p *Proxy) capIn(status Status, policy *Policy) int {
	if status != StatusActive {
		return 1
	}
	return max(1, min(int(p.Judge.Earned), p.OwnCap(policy)))
}

// scoreAt is the score that holds now.
func (q *Quality) scoreAt(now Time) float32 {
	if q.ScoreUntil != 0 && now >= q.ScoreUntil {
		return q.Idle
	}
	return q.Score
}

// OwnCap is the largest cap that the proxy can earn.
func (p *Proxy) OwnCap(policy *Policy) int {
	if p.Spec.Cap > 0 {
		return p.Spec.Cap
	}
	return policy.Cap(p.Spec.Exit)
}
