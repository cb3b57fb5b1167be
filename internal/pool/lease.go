package pool

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// Key names a lease inside the store: its number and 64 random bits. Callers
// see a token that carries it, signed.
type Key [2]uint64

// Short is what views show of a lease: the first eight characters of its id, too
// little to use it.
func (k Key) Short() string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, k[1]))[:8]
}

// Request is what a caller says of the request it will send; it is kept for
// failure records.
type Request struct {
	Fingerprint string
	URL         string
	Method      string
	Attempt     int
}

// or replaces what later words on the same request say.
func (r Request) or(later Request) Request {
	setIf(&r.Fingerprint, later.Fingerprint)
	setIf(&r.URL, later.URL)
	setIf(&r.Method, later.Method)
	setIf(&r.Attempt, later.Attempt)
	return r
}

// Lease is the right to send one request, or a bounded series, through one
// proxy until Deadline. After its end the record stays for two minutes, so that
// a repeated report gets the first answer.
type Lease struct {
	N        int64 // its number in the state, growing
	Key      Key
	Granted  Time
	Deadline Time
	Hard     Time // heartbeats never go past this
	RestEnd  Time // the end of the pair's rest that this lease started
	TTL      time.Duration
	Gap      time.Duration // since the proxy's start before; below 0 = this was its first
	Fence    int64
	More     *More
	Ended    Time // 0 = live
	Proxy    uint32
	Target   uint32
	Worker   uint32
	Band     Band
	Kind     EndKind // how it ended
	Class    Class   // what its report was
	Late     bool    // a report after expiry was counted, once
	Probe    bool    // it passed a circuit that was open
	Fresh    bool    // the proxy was new to the target, as far as is remembered

	dirty  dirty
	stored bool
}

// More is what only some leases have. It does not change.
type More struct {
	CallID  string // the caller's request_id, for idempotency
	Tenant  string // whose request_id it is
	Digest  uint64 // of the caller's body
	Session string
	Child   string // session id of a template's child
	Request Request
	// Moved says that the session had to leave Previous for this proxy.
	Moved    bool
	Previous proxy.ID
	// Relaxed says that least_bad set a failure slot of the pair aside.
	Relaxed bool
}

// Live says whether the lease has not ended.
func (l *Lease) Live() bool { return l.Ended == 0 }

// Band is the standing of a proxy when it was leased, so that the valid-data
// rate can be shown by it.
type Band uint8

// The bands.
const (
	BandProbation Band = iota
	BandAfterCooldown
	BandHigh // score >= 0.9
	BandMid  // 0.7 to 0.9
	BandLow  // < 0.7
	NumBands
)

var bandNames = [...]string{"probation", "after_cooldown", "score>=.9", "score.7-.9", "score<.7"}

// String gives the wire name.
func (b Band) String() string { return bandNames[b] }

// EndKind is how a lease ended.
type EndKind uint8

// The ways a lease ends; each lease ends exactly once (invariant I3).
const (
	EndReport  EndKind = iota // the worker said what it saw
	EndRelease                // unused
	EndRevoke                 // an operator took it back
	EndExpire                 // nobody said anything until the deadline
	EndUse                    // used, and nothing will be said of it
)

var endNames = [...]string{"reported", "released", "revoked", "expired", "used"}

// String gives the wire name.
func (k EndKind) String() string { return endNames[k] }

// ParseEndKind reads a wire name.
func ParseEndKind(s string) (EndKind, error) {
	for i, name := range endNames {
		if s == name {
			return EndKind(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not a way for a lease to end", s)
}

// Ended leases are kept this long and this many (docs/architecture.md).
const (
	tombAge = 120 * time.Second
	tombMax = 1_000_000
)

// Outcome is a report after classification: what the mechanics and the judge need of it.
type Outcome struct {
	Class      Class
	Status     int
	Phase      string
	Error      string
	Timeout    bool
	RetryAfter time.Duration // 0 = the answer named none
	Elapsed    time.Duration
	Connect    time.Duration
	FirstByte  time.Duration
	Bytes      int64
	Valid      Verity
	Items      int64
	Request    Request // overrides the lease's where it says more
	Final      bool
}

// Verity is a caller's word on the data: unknown, valid or invalid. It never
// charges anything.
type Verity int8

// The values of Verity.
const (
	Unknown Verity = 0
	Valid   Verity = 1
	Invalid Verity = -1
)

// Failure is the record of one failed attempt, or of the final failure of a request.
type Failure struct {
	At       Time
	Worker   string
	Target   string
	Proxy    string // proxy id, or "" where none was involved
	Lease    string // first eight characters
	Class    Class
	Fault    Fault
	Phase    string
	Error    string
	Status   int
	Elapsed  time.Duration
	Request  Request
	Final    bool
	Reason   string
	Attempts []string
	Waited   time.Duration
}
