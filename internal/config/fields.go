package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// Field is one setting of a pool's policy. One table serves the file, the API,
// the diff and the documentation.
type Field struct {
	// Path is the setting's name in the file, dots between the levels.
	Path string
	// Kind is duration, durations, number, share, text or switch.
	Kind string
	// Doc is its meaning, unit and range.
	Doc string

	get func(*pool.Policy) string
	set func(*pool.Policy, string) error
}

// Get gives the setting's value as it is written in the file.
func (f *Field) Get(p *pool.Policy) string { return f.get(p) }

// Fields lists all settings of a pool, in the order of the documentation.
func Fields() []Field {
	const day = 24 * time.Hour
	return []Field{
		duration("ttl", "How long a lease runs when the caller does not say.", time.Second, 10*time.Minute,
			func(p *pool.Policy) *time.Duration { return &p.TTL }),
		duration("max_lifetime", "How long heartbeats can stretch a lease in all.", time.Second, day,
			func(p *pool.Policy) *time.Duration { return &p.MaxLifetime }),
		duration("grace", "How long after its deadline a lease is left alone before it is reclaimed.", 0, time.Minute,
			func(p *pool.Policy) *time.Duration { return &p.Grace }),
		duration("lock_delay", "Least rest of a proxy on a target after its holder vanished.", 0, time.Hour,
			func(p *pool.Policy) *time.Duration { return &p.LockDelay }),
		duration("reuse_interval", "Least time between two starts of one proxy on one target.", 0, day,
			func(p *pool.Policy) *time.Duration { return &p.ReuseInterval }),
		duration("timeouts.connect", "Budget for reaching and greeting the proxy, carried by every lease.", 10*time.Millisecond, 10*time.Minute,
			func(p *pool.Policy) *time.Duration { return &p.Timeouts.Connect }),
		duration("timeouts.first_byte", "Budget until the first byte of the answer.", 10*time.Millisecond, 10*time.Minute,
			func(p *pool.Policy) *time.Duration { return &p.Timeouts.FirstByte }),
		duration("timeouts.total", "Budget for the whole request.", 10*time.Millisecond, time.Hour,
			func(p *pool.Policy) *time.Duration { return &p.Timeouts.Total }),
		durations("cooldown.ladder", "Rest after the first, second, ... counted failure; the last step repeats.", 10*time.Millisecond, day,
			func(p *pool.Policy) *[]time.Duration { return &p.Cooldown.Ladder }),
		share("cooldown.jitter", "Largest share added at random to a rest.",
			func(p *pool.Policy) *float64 { return &p.Cooldown.Jitter }),
		count("cooldown.suspend_after", "Counted failures in a row that suspend a proxy.", 100,
			func(p *pool.Policy) *int { return &p.Cooldown.SuspendAfter }),
		duration("cooldown.suspend_for", "First suspension; each further one is twice as long.", 10*time.Millisecond, day,
			func(p *pool.Policy) *time.Duration { return &p.Cooldown.SuspendFor }),
		duration("cooldown.suspend_max", "Longest suspension: a trial comes at least this often.", 10*time.Millisecond, day,
			func(p *pool.Policy) *time.Duration { return &p.Cooldown.SuspendMax }),
		duration("cooldown.forgive", "Time without a counted failure that takes one step off the ladder.", 10*time.Millisecond, day,
			func(p *pool.Policy) *time.Duration { return &p.Cooldown.Forgive }),
		count("cooldown.rise", "Fresh successes that end a probation.", 100,
			func(p *pool.Policy) *int { return &p.Cooldown.Rise }),
		share("cooldown.probation_share", "Largest share of grants that goes to probation while others are ready.",
			func(p *pool.Policy) *float64 { return &p.Cooldown.ProbationShare }),
		duration("cooldown.rate_hold", "Rest of a pair after a rate limit without Retry-After; doubles with each repeat.", 10*time.Millisecond, day,
			func(p *pool.Policy) *time.Duration { return &p.Cooldown.RateHold }),
		duration("cooldown.rate_hold_max", "Longest such rest.", 10*time.Millisecond, day,
			func(p *pool.Policy) *time.Duration { return &p.Cooldown.RateHoldMax }),
		duration("cooldown.policy_hold", "Rest of a pair that the proxy's rules forbid.", 10*time.Millisecond, day,
			func(p *pool.Policy) *time.Duration { return &p.Cooldown.PolicyHold }),
		duration("cooldown.geo_hold", "Rest of a pair whose country the site refuses.", 10*time.Millisecond, day,
			func(p *pool.Policy) *time.Duration { return &p.Cooldown.GeoHold }),
		duration("cooldown.quota_hold", "Hold of a group whose account is out of quota; doubles with each repeat.", 10*time.Millisecond, day,
			func(p *pool.Policy) *time.Duration { return &p.Cooldown.QuotaHold }),
		count("caps.static", "Most live leases of a proxy with one address.", 10_000,
			func(p *pool.Policy) *int { return &p.Caps.Static }),
		count("caps.rotating", "Most live leases of a rotating gateway.", 10_000,
			func(p *pool.Policy) *int { return &p.Caps.Rotating }),
		count("caps.template", "Most live leases of a template.", 10_000,
			func(p *pool.Policy) *int { return &p.Caps.Template }),
		count("caps.child", "Most live leases of one session of a template.", 10_000,
			func(p *pool.Policy) *int { return &p.Caps.Child }),
		share("caps.max_bad", "Share of 429, timeouts or 403 in ten minutes above which a cap no longer grows.",
			func(p *pool.Policy) *float64 { return &p.Caps.MaxBad }),
		share("gate.below", "Upper bound (Wilson, 95 %) of the ten-minute success rate under which a proxy is kept back.",
			func(p *pool.Policy) *float64 { return &p.Gate.Below }),
		duration("gate.retry", "How long a proxy that is kept back waits for its next try.", time.Second, day,
			func(p *pool.Policy) *time.Duration { return &p.Gate.Retry }),
		share("gate.max_share", "Largest share of the eligible that is kept back.",
			func(p *pool.Policy) *float64 { return &p.Gate.MaxShare }),
		duration("sessions.idle", "How long an unused session is kept.", time.Second, day,
			func(p *pool.Policy) *time.Duration { return &p.Sessions.Idle }),
		count("sessions.max_children", "Most sessions of one template; the least recently used goes.", 1_000_000,
			func(p *pool.Policy) *int { return &p.Sessions.MaxChildren }),
		count("pacing.start", "Requests at once on a target of which nothing is known; success earns more.", 1_000_000,
			func(p *pool.Policy) *int { return &p.Pacing.Start }),
		count("pacing.max", "Most requests at once on one target.", 1_000_000,
			func(p *pool.Policy) *int { return &p.Pacing.Max }),
		duration("pacing.min_gap", "Least time between two starts on one target, whatever its pace has earned.", 0, time.Hour,
			func(p *pool.Policy) *time.Duration { return &p.Pacing.MinGap }),
		zone("zone", "Time zone (IANA name) in which the day begins.",
			func(p *pool.Policy) *string { return &p.Zone }),
		duration("failures.age", "How long failure records are kept.", time.Minute, 365*day,
			func(p *pool.Policy) *time.Duration { return &p.Failures.Age }),
		count("failures.max", "How many failure records are kept.", 100_000_000,
			func(p *pool.Policy) *int { return &p.Failures.Max }),
		word("currency", "Unit of prices and budgets; only shown. Up to 10 letters.",
			func(p *pool.Policy) *string { return &p.Currency }),
		poolNames("fallback_pools", "Pools that are asked in order when this one would refuse.",
			func(p *pool.Policy) *[]string { return &p.FallbackPools }),
		toggle("keep_query", "Keep query values in stored URLs; otherwise they are cut.",
			func(p *pool.Policy) *bool { return &p.KeepQuery }),
		defaultRulesField(),
	}
}

func duration(path, doc string, low, high time.Duration, at func(*pool.Policy) *time.Duration) Field {
	return Field{
		Path: path, Kind: "duration", Doc: doc + fmt.Sprintf(" %s to %s.", low, high),
		get: func(p *pool.Policy) string { return at(p).String() },
		set: func(p *pool.Policy, v string) (err error) { *at(p), err = parseDuration(v, low, high); return err },
	}
}

func parseDuration(v string, low, high time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration such as 30s or 5m", v)
	case d < low || d > high:
		return 0, fmt.Errorf("%s is not within %s and %s", v, low, high)
	}
	return d.Truncate(time.Millisecond), nil
}

func durations(path, doc string, low, high time.Duration, at func(*pool.Policy) *[]time.Duration) Field {
	return Field{
		Path: path, Kind: "durations", Doc: doc + fmt.Sprintf(" 1 to 20 steps, each %s to %s.", low, high),
		get: func(p *pool.Policy) string {
			parts := make([]string, len(*at(p)))
			for i, d := range *at(p) {
				parts[i] = d.String()
			}
			return strings.Join(parts, ", ")
		},
		set: func(p *pool.Policy, v string) error {
			var list []time.Duration
			for part := range strings.SplitSeq(v, ",") {
				d, err := parseDuration(strings.TrimSpace(part), low, high)
				if err != nil {
					return err
				}
				list = append(list, d)
			}
			if len(list) > 20 {
				return fmt.Errorf("%d steps are more than 20", len(list))
			}
			*at(p) = list
			return nil
		},
	}
}

func share(path, doc string, at func(*pool.Policy) *float64) Field {
	return Field{
		Path: path, Kind: "share", Doc: doc + " 0 to 1.",
		get: func(p *pool.Policy) string { return strconv.FormatFloat(*at(p), 'g', -1, 64) },
		set: func(p *pool.Policy, v string) error {
			x, err := strconv.ParseFloat(v, 64)
			if err != nil || math.IsNaN(x) || x < 0 || x > 1 {
				return fmt.Errorf("%q is not a number within 0 and 1", v)
			}
			*at(p) = x
			return nil
		},
	}
}

func count(path, doc string, high int, at func(*pool.Policy) *int) Field {
	return Field{
		Path: path, Kind: "number", Doc: doc + fmt.Sprintf(" 1 to %d.", high),
		get: func(p *pool.Policy) string { return strconv.Itoa(*at(p)) },
		set: func(p *pool.Policy, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 || n > high {
				return fmt.Errorf("%q is not a whole number within 1 and %d", v, high)
			}
			*at(p) = n
			return nil
		},
	}
}

func zone(path, doc string, at func(*pool.Policy) *string) Field {
	return Field{
		Path: path, Kind: "text", Doc: doc,
		get: func(p *pool.Policy) string { return *at(p) },
		set: func(p *pool.Policy, v string) error {
			if _, err := time.LoadLocation(v); err != nil || v == "" || v == "Local" {
				return fmt.Errorf("%q is not the name of a time zone such as UTC or Europe/Berlin", v)
			}
			*at(p) = v
			return nil
		},
	}
}

// word is a text without blanks, at most 10 letters long.
func word(path, doc string, at func(*pool.Policy) *string) Field {
	return Field{
		Path: path, Kind: "text", Doc: doc,
		get: func(p *pool.Policy) string { return *at(p) },
		set: func(p *pool.Policy, v string) error {
			if len([]rune(v)) > 10 || strings.ContainsFunc(v, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }) {
				return fmt.Errorf("%q is not a word of at most 10 letters", v)
			}
			*at(p) = v
			return nil
		},
	}
}

// poolNames is a list of pools, each once.
func poolNames(path, doc string, at func(*pool.Policy) *[]string) Field {
	return Field{
		Path: path, Kind: "names", Doc: doc,
		get: func(p *pool.Policy) string { return strings.Join(*at(p), ", ") },
		set: func(p *pool.Policy, v string) error {
			var list []string
			for part := range strings.SplitSeq(v, ",") {
				name := strings.TrimSpace(part)
				if name == "" && v == "" {
					break
				}
				if err := CheckName(name); err != nil {
					return err
				}
				if slices.Contains(list, name) {
					return fmt.Errorf("pool %s stands twice", name)
				}
				list = append(list, name)
			}
			*at(p) = list
			return nil
		},
	}
}

func toggle(path, doc string, at func(*pool.Policy) *bool) Field {
	return Field{
		Path: path, Kind: "switch", Doc: doc,
		get: func(p *pool.Policy) string { return strconv.FormatBool(*at(p)) },
		set: func(p *pool.Policy, v string) error {
			b, err := strconv.ParseBool(v)
			if err != nil {
				return fmt.Errorf("%q is neither true nor false", v)
			}
			*at(p) = b
			return nil
		},
	}
}
