package lab

import "time"

// ProxyKind is what a proxy is made to do.
type ProxyKind string

// The kinds of proxies.
const (
	Good             ProxyKind = "good"
	Refusing         ProxyKind = "refusing"          // nothing listens at its port
	Hanging          ProxyKind = "hanging"           // takes the connection and says nothing
	WrongCredentials ProxyKind = "wrong_credentials" //nolint:gosec // a name; wants others than the list has: 407
	Flaky            ProxyKind = "flaky"             // fails half the time: see [ProxySpec.Turn]
	Denying          ProxyKind = "denying"           // answers 403 itself
	BadGateway       ProxyKind = "bad_gateway"       // answers 502 though the target is up
	Expiring         ProxyKind = "expiring"          // works until its time is over, then refuses
	Slow             ProxyKind = "slow"              // works, after its Delay
	CutsTunnel       ProxyKind = "cuts_tunnel"       // answers CONNECT with 200 and closes; plain requests work
	Truncating       ProxyKind = "truncating"        // cuts bodies in the middle
	Tampering        ProxyKind = "tampering"         // shows its own certificate in the tunnel; plain requests work
)

// TargetKind is what a target is made to do.
type TargetKind string

// The kinds of targets.
const (
	PlainTarget     TargetKind = "http"
	TLSTarget       TargetKind = "https"
	LimitedTarget   TargetKind = "rate_limited"   // 429 above a rate per address
	OutageTarget    TargetKind = "outage"         // down for a part of the run: connections are reset
	BanningTarget   TargetKind = "banning"        // 403 to an address after its first requests
	SoftBlockTarget TargetKind = "soft_block"     // 200 with a captcha page
	HangingTarget   TargetKind = "hanging_target" // takes the request and never answers
)

// ProxySpec makes Count proxies of a kind.
type ProxySpec struct {
	Kind         ProxyKind
	Count        int
	ExpiresAfter time.Duration // Expiring: since the start
	Delay        time.Duration // before every answer
	Auth         bool          // demands the credentials that the list gives; without it the list gives none

	// Turn makes a Flaky proxy refuse and work in turns of this length. Without it
	// each request is a throw of a seeded coin: the proxy closes instead of
	// answering, or closes the tunnel that it has just granted.
	Turn time.Duration
	// TunnelsOnly makes a BadGateway answer 502 to CONNECT only.
	TunnelsOnly bool
}

// TargetSpec makes a target.
type TargetSpec struct {
	Name      string
	Kind      TargetKind
	TLS       bool          // speaks HTTPS whatever its kind
	Rate      float64       // LimitedTarget: requests a second and address
	Burst     int           // LimitedTarget: how many may come at once, at least 1
	DownFrom  time.Duration // OutageTarget: since the start
	DownFor   time.Duration
	BanAfter  int // BanningTarget: so many requests of an address are answered
	Latency   time.Duration
	PageBytes int // the least size of a page
}

// Range is a span of durations.
type Range struct{ Min, Max time.Duration }

// Options make a lab.
type Options struct {
	Seed    uint64
	Proxies []ProxySpec
	Targets []TargetSpec
	// Now is the lab's clock: outages, rates, turns and expiry follow it, while
	// delays are real time. The wall clock if nil.
	Now func() time.Time
	// Latency is what good proxies add to a request, drawn for each.
	Latency Range
}
