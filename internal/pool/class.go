package pool

import "fmt"

// Class is what kind of outcome a report is. Numbers and names are those of
// docs/policy.md; the table that finds the class of a report is
// internal/judge/classes.csv.
type Class uint8

// The classes.
const (
	ClassNone           Class = iota
	ClassOK                   // the target answered and the data is what was asked for
	ClassTargetAnswer         // the target said no to the request itself: 404, 400 ...
	ClassProxyDial            // the proxy could not be reached
	ClassProxyTLS             // TLS to the proxy itself failed
	ClassProxyAuth            // the proxy refused our credentials
	ClassProxyQuota           // the account is out of traffic, threads or money
	ClassProxyPolicy          // the proxy's rules forbid this target
	ClassViaUnreachable       // the proxy says that it cannot reach the target
	ClassTunnelReset          // the tunnel stood and broke before any answer
	ClassTamper               // somebody between changed the answer
	ClassTimeoutHeaders       // no first byte in the budget
	ClassTimeoutBody          // the body stalled or was cut
	ClassTarget5xx            // the target failed
	ClassRateLimited          // too many requests
	ClassBlockedHard          // the target refuses this address
	ClassGeoBlocked           // the target refuses this country
	ClassBlockedSoft          // a decisive rule found a block page
	ClassSuspectSoft          // a weak rule found one
	ClassClientFault          // the caller's own doing
	ClassWorkerFault          // the worker's machine or network
	ClassLeaseExpired         // nobody reported
	ClassTunnelDone           // bytes went both ways, nobody saw the status
	ClassPlainDenied          // 401 or 403 over plain HTTP: proxy or target
	ClassPlain5xx             // 5xx over plain HTTP: proxy or target
	NumClasses
)

// Sign is what a class means for one record.
type Sign uint8

// The signs.
const (
	Nothing Sign = iota
	Plus         // it works
	Minus        // a counted failure
	Maybe        // charged provisionally, see docs/policy.md, assessment
)

// Fault is who is to blame.
type Fault uint8

// The faults.
const (
	FaultNone Fault = iota
	FaultRequest
	FaultProxy
	FaultGroup  // the provider's account
	FaultRule   // a rule of the proxy against this target
	FaultUnsure // proxy or target, not known yet
	FaultTarget
	FaultRate    // too fast, for the pair or the target
	FaultBlock   // the target refuses the address
	FaultCountry // the target refuses the exit's country
	FaultCaller
	FaultWorker
	FaultExpired
)

var faultNames = [...]string{
	"none", "request", "proxy", "group", "rule", "unsure", "target", "rate", "block", "country", "caller", "worker", "expired",
}

// String gives the wire name.
func (f Fault) String() string { return faultNames[f] }

// ParseFault reads a wire name.
func ParseFault(s string) (Fault, error) {
	for i, name := range faultNames {
		if s == name {
			return Fault(i), nil
		}
	}
	return FaultNone, fmt.Errorf("fault %q is not known", s)
}

// Effect is what a class does to proxy, pair and target.
type Effect struct {
	Global, Pair, Target Sign
	Fault                Fault
	Counts               bool // enters the success rates
	Success              bool
}

type classInfo struct {
	name   string
	effect Effect
}

// classInfos is the table of docs/policy.md 1.1 with the amendments of
// docs/architecture.md, classes.
var classInfos = [NumClasses]classInfo{
	ClassNone:           {"NONE", Effect{}},
	ClassOK:             {"OK", Effect{Plus, Plus, Plus, FaultNone, true, true}},
	ClassTargetAnswer:   {"TARGET_ANSWER", Effect{Plus, Plus, Plus, FaultRequest, true, true}},
	ClassProxyDial:      {"PROXY_DIAL", Effect{Minus, Nothing, Nothing, FaultProxy, true, false}},
	ClassProxyTLS:       {"PROXY_TLS", Effect{Minus, Nothing, Nothing, FaultProxy, true, false}},
	ClassProxyAuth:      {"PROXY_AUTH", Effect{Minus, Nothing, Nothing, FaultProxy, true, false}},
	ClassProxyQuota:     {"PROXY_QUOTA", Effect{Nothing, Nothing, Nothing, FaultGroup, true, false}},
	ClassProxyPolicy:    {"PROXY_POLICY", Effect{Nothing, Minus, Nothing, FaultRule, true, false}},
	ClassViaUnreachable: {"VIA_UNREACHABLE", Effect{Maybe, Minus, Minus, FaultUnsure, true, false}},
	ClassTunnelReset:    {"TUNNEL_RESET", Effect{Maybe, Minus, Minus, FaultUnsure, true, false}},
	ClassTamper:         {"TAMPER", Effect{Minus, Nothing, Nothing, FaultProxy, true, false}},
	ClassTimeoutHeaders: {"TIMEOUT_HEADERS", Effect{Maybe, Minus, Minus, FaultUnsure, true, false}},
	ClassTimeoutBody:    {"TIMEOUT_BODY", Effect{Maybe, Minus, Nothing, FaultUnsure, true, false}},
	ClassTarget5xx:      {"TARGET_5XX", Effect{Plus, Nothing, Minus, FaultTarget, true, false}},
	ClassRateLimited:    {"RATE_LIMITED", Effect{Plus, Nothing, Minus, FaultRate, true, false}},
	ClassBlockedHard:    {"BLOCKED_HARD", Effect{Nothing, Minus, Minus, FaultBlock, true, false}},
	ClassGeoBlocked:     {"GEO_BLOCKED", Effect{Nothing, Minus, Nothing, FaultCountry, true, false}},
	ClassBlockedSoft:    {"BLOCKED_SOFT", Effect{Nothing, Minus, Minus, FaultBlock, true, false}},
	ClassSuspectSoft:    {"SUSPECT_SOFT", Effect{Nothing, Maybe, Maybe, FaultUnsure, true, false}},
	ClassClientFault:    {"CLIENT_FAULT", Effect{Fault: FaultCaller}},
	ClassWorkerFault:    {"WORKER_FAULT", Effect{Fault: FaultWorker}},
	ClassLeaseExpired:   {"LEASE_EXPIRED", Effect{Fault: FaultExpired}},
	ClassTunnelDone:     {"TUNNEL_DONE", Effect{Global: Plus}},
	ClassPlainDenied:    {"PLAIN_DENIED", Effect{Maybe, Minus, Minus, FaultBlock, true, false}},
	ClassPlain5xx:       {"PLAIN_5XX", Effect{Maybe, Minus, Minus, FaultUnsure, true, false}},
}

// String gives the wire name.
func (c Class) String() string {
	if c >= NumClasses {
		return "NONE"
	}
	return classInfos[c].name
}

// Effect tells what the class does.
func (c Class) Effect() Effect { return classInfos[c].effect }

// ParseClass reads a wire name.
func ParseClass(s string) (Class, error) {
	for c := range NumClasses {
		if classInfos[c].name == s {
			return c, nil
		}
	}
	return ClassNone, fmt.Errorf("class %q is not known", s)
}

// MarshalText gives the wire name.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a wire name; the empty text is ClassNone.
func (c *Class) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 {
		*c = ClassNone
		return nil
	}
	*c, err = ParseClass(string(b))
	return err
}
