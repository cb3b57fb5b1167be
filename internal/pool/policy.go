package pool

import "time"

// Policy is what an operator decides for one pool. The zero value is not
// usable; start from [DefaultPolicy]. Sources of the defaults are the sections
// of docs/policy.md named beside them.
type Policy struct {
	// Version grows by one with every accepted change.
	Version int64 `json:"version"`

	// TTL is how long a lease runs when the caller does not say, and
	// MaxLifetime how long heartbeats can stretch it in all.
	TTL         time.Duration `json:"ttl"`
	MaxLifetime time.Duration `json:"max_lifetime"`
	// Grace is how long after its deadline a lease is left alone before it is
	// reclaimed: the caller's clock starts when it sends, ours when we grant.
	Grace time.Duration `json:"grace"`
	// LockDelay is the least rest of a pair whose holder vanished: the request
	// may still be under way (Chubby's lock-delay).
	LockDelay time.Duration `json:"lock_delay"`
	// Timeouts are the budgets that every lease carries. A worker that gives up
	// earlier is impatient, and its proxy is not blamed.
	Timeouts Timeouts `json:"timeouts"`

	// ReuseInterval is the least time between two starts of one pair.
	ReuseInterval time.Duration `json:"reuse_interval"`
	// Targets holds what differs for a target, by its name.
	Targets map[string]TargetPolicy `json:"targets,omitempty"`
	// Groups holds prices and budgets of provider accounts, by group.
	Groups map[string]GroupPolicy `json:"groups,omitempty"`
	// Currency names the unit of prices and budgets; it is only shown.
	Currency string `json:"currency,omitempty"`
	// FallbackPools are asked in order when this pool would refuse.
	FallbackPools []string `json:"fallback_pools,omitempty"`

	Cooldown Cooldown `json:"cooldown"`
	Caps     Caps     `json:"caps"`
	Gate     Gate     `json:"gate"`
	Sessions Sessions `json:"sessions"`

	// Zone is the IANA name of the time zone in which "the day" begins.
	Zone string `json:"zone"`
	// Failures bounds the kept failure records.
	Failures Retention `json:"failures"`
	// KeepQuery keeps query values in stored URLs; without it they are cut.
	KeepQuery bool `json:"keep_query"`
}

// Timeouts are the budgets of one request, each from its own start.
type Timeouts struct {
	Connect   time.Duration `json:"connect"`
	FirstByte time.Duration `json:"first_byte"`
	Total     time.Duration `json:"total"`
}

// TargetPolicy is what differs for one target; nil fields take the pool's value.
type TargetPolicy struct {
	ReuseInterval *time.Duration `json:"reuse_interval,omitempty"`
	// MaxConcurrency is the most requests at once, whatever the pace has earned.
	MaxConcurrency *int `json:"max_concurrency,omitempty"`
}

// Cooldown says how long faults rest a proxy or a pair.
type Cooldown struct {
	// Ladder is the rest after the first, second, ... counted failure; the last
	// step repeats.
	Ladder []time.Duration `json:"ladder"`
	// Jitter is the largest share added at random to a rest, 0..1. It is only
	// ever added, so that "at least 30 s" stays true.
	Jitter float64 `json:"jitter"`
	// SuspendAfter is the streak of counted failures that suspends.
	SuspendAfter int `json:"suspend_after"`
	// SuspendFor is the first suspension; each further one is twice as long, to SuspendMax.
	SuspendFor time.Duration `json:"suspend_for"`
	SuspendMax time.Duration `json:"suspend_max"`
	// Forgive is the time without a counted failure that takes one level off.
	Forgive time.Duration `json:"forgive"`
	// Rise is how many fresh successes end a probation.
	Rise int `json:"rise"`
	// ProbationShare is the largest share of grants that goes to probation while others are ready.
	ProbationShare float64 `json:"probation_share"`
	// RateHold is the rest of a pair after a rate limit without Retry-After; it
	// doubles with each repeat, to RateHoldMax.
	RateHold    time.Duration `json:"rate_hold"`
	RateHoldMax time.Duration `json:"rate_hold_max"`
	// PolicyHold and GeoHold rest a pair that the proxy's or the site's rules forbid.
	PolicyHold time.Duration `json:"policy_hold"`
	GeoHold    time.Duration `json:"geo_hold"`
	// QuotaHold rests a group whose account is out of quota.
	QuotaHold time.Duration `json:"quota_hold"`
}

// Caps bound the live leases of one proxy.
type Caps struct {
	// Static, Rotating, Template are the caps of proxies that name none, and
	// Child that of one session of a template.
	Static   int `json:"static"`
	Rotating int `json:"rotating"`
	Template int `json:"template"`
	Child    int `json:"child"`
	// MaxBad is the share of 429, timeouts or bans in ten minutes above which an
	// earned cap no longer grows.
	MaxBad float64 `json:"max_bad"`
}

// Gate keeps proxies that fail now out of the pick.
type Gate struct {
	// Below is the Wilson-high bound of the ten-minute success rate under which a proxy is gated.
	Below float64 `json:"below"`
	// Retry is how long a gated proxy waits for its next try.
	Retry time.Duration `json:"retry"`
	// MaxShare is the largest share of the eligible that the gate may skip.
	MaxShare float64 `json:"max_share"`
}

// Sessions bounds sticky sessions.
type Sessions struct {
	// Idle is how long an unused session is kept.
	Idle time.Duration `json:"idle"`
	// MaxChildren is the most sessions of one template; the least recently used goes.
	MaxChildren int `json:"max_children"`
}

// Retention bounds kept records by age and number.
type Retention struct {
	Age time.Duration `json:"age"`
	Max int           `json:"max"`
}

// DefaultPolicy is the policy of a pool that nobody configured.
func DefaultPolicy() Policy {
	return Policy{
		Version:       1,
		TTL:           30 * time.Second,
		MaxLifetime:   10 * time.Minute,
		Grace:         2 * time.Second,
		LockDelay:     5 * time.Second,
		Timeouts:      Timeouts{Connect: 10 * time.Second, FirstByte: 30 * time.Second, Total: 60 * time.Second},
		ReuseInterval: time.Second,
		Cooldown: Cooldown{
			Ladder: []time.Duration{
				30 * time.Second, 60 * time.Second, 120 * time.Second,
				240 * time.Second, 480 * time.Second, 600 * time.Second,
			},
			Jitter: 0.2, SuspendAfter: 5, SuspendFor: time.Hour, SuspendMax: 24 * time.Hour,
			Forgive: 10 * time.Minute, Rise: 2, ProbationShare: 0.1,
			RateHold: time.Minute, RateHoldMax: 15 * time.Minute,
			PolicyHold: 6 * time.Hour, GeoHold: 24 * time.Hour, QuotaHold: time.Minute,
		},
		Caps:     Caps{Static: 1, Rotating: 100, Template: 100, Child: 1, MaxBad: 0.1},
		Gate:     Gate{Below: 0.5, Retry: 10 * time.Minute, MaxShare: 0.25},
		Sessions: Sessions{Idle: 10 * time.Minute, MaxChildren: 10_000},
		Zone:     "UTC",
		Failures: Retention{Age: 7 * 24 * time.Hour, Max: 1_000_000},
	}
}

// Reuse is the reuse interval of pairs on a target.
func (p *Policy) Reuse(target string) time.Duration {
	if t, ok := p.Targets[target]; ok && t.ReuseInterval != nil {
		return *t.ReuseInterval
	}
	return p.ReuseInterval
}

// Cap is the largest number of live leases of a proxy that names none itself.
func (p *Policy) Cap(exit Exit) int {
	switch exit {
	case ExitRotating:
		return p.Caps.Rotating
	case ExitTemplate:
		return p.Caps.Template
	default:
		return p.Caps.Static
	}
}
