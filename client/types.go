package client

import (
	"log/slog"
	"maps"
	"slices"
	"time"
)

// Select narrows an acquire; empty fields take any proxy.
type Select struct {
	Region  string            `json:"region,omitempty"`
	Scheme  string            `json:"scheme,omitempty"`
	Group   string            `json:"group,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Exclude []string          `json:"exclude,omitempty"` // proxy ids
}

// Request describes the request that a lease is for; it is kept with failures.
type Request struct {
	Fingerprint string `json:"fingerprint,omitempty"`
	URL         string `json:"url,omitempty"`
	Method      string `json:"method,omitempty"`
	Attempt     int    `json:"attempt,omitempty"` // 1 = the first
}

// AcquireRequest asks for leases.
type AcquireRequest struct {
	Pool              string   `json:"pool,omitempty"` // "default"
	Target            string   `json:"target"`         // required
	Worker            string   `json:"worker,omitempty"`
	WorkerConcurrency int      `json:"worker_concurrency,omitempty"`
	RequestID         string   `json:"request_id,omitempty"` // the same id gets the same live lease
	Count             int      `json:"count,omitempty"`      // 1 to 100; 0 = 1
	TTLMS             int64    `json:"ttl_ms,omitempty"`     // 1,000 to 600,000; 0 = the pool's
	WaitMS            int64    `json:"wait_ms,omitempty"`    // 0 to 60,000
	Session           string   `json:"session,omitempty"`
	Select            *Select  `json:"select,omitempty"`
	LeastBad          bool     `json:"least_bad,omitempty"`
	Request           *Request `json:"request,omitempty"`
}

// LeasedProxy is the proxy of a lease, with its credentials. It prints without them.
type LeasedProxy struct {
	ID       string            `json:"id"`
	URL      string            `json:"url"`
	Scheme   string            `json:"scheme"`
	Host     string            `json:"host"`
	Port     uint16            `json:"port"`
	Username string            `json:"username"`
	Password string            `json:"password"`
	Region   string            `json:"region"`
	Labels   map[string]string `json:"labels"`
}

// String names the proxy without its credentials.
func (p LeasedProxy) String() string { return p.Scheme + " proxy " + p.ID }

// GoString names the proxy without its credentials.
func (p LeasedProxy) GoString() string { return p.String() }

// LogValue names the proxy without its credentials.
func (p LeasedProxy) LogValue() slog.Value { return slog.StringValue(p.String()) }

// Timeouts are the budgets of the request; who gives up earlier is not believed
// when it blames the proxy.
type Timeouts struct {
	ConnectMS   int64 `json:"connect_ms"`
	FirstByteMS int64 `json:"first_byte_ms"`
	TotalMS     int64 `json:"total_ms"`
}

// Lease is the right to use a proxy until ExpiresAt.
type Lease struct {
	ID            string      `json:"id"`
	Proxy         LeasedProxy `json:"proxy"`
	Pool          string      `json:"pool"`
	Target        string      `json:"target"`
	Worker        string      `json:"worker"`
	Session       string      `json:"session"`
	SessionMoved  bool        `json:"session_moved"`
	PreviousProxy string      `json:"previous_proxy"`
	Fence         int64       `json:"fence"`
	GrantedAt     time.Time   `json:"granted_at"`
	ExpiresAt     time.Time   `json:"expires_at"`
	TTLMS         int64       `json:"ttl_ms"`
	Timeouts      Timeouts    `json:"timeouts"`
	Relaxed       []string    `json:"relaxed"`
}

// Advice is a worker's fair share.
type Advice struct {
	Target      string `json:"target"`
	Concurrency int    `json:"concurrency"`
	StartGapMS  int64  `json:"start_gap_ms"`
}

// Acquired is what an acquire got: one lease at least.
type Acquired struct {
	Leases []Lease `json:"leases"`
	Advice *Advice `json:"advice"`
}

// Facts are what a worker saw of a request; see the API's description of each.
type Facts struct {
	Phase       string   `json:"phase,omitempty"`
	Status      int      `json:"status,omitempty"`
	Error       string   `json:"error,omitempty"`
	Class       string   `json:"class,omitempty"`
	ElapsedMS   int64    `json:"elapsed_ms,omitempty"`
	ConnectMS   int64    `json:"connect_ms,omitempty"`
	FirstByteMS int64    `json:"first_byte_ms,omitempty"`
	Bytes       int64    `json:"bytes,omitempty"`
	RetryAfter  string   `json:"retry_after,omitempty"`
	ProxyStatus string   `json:"proxy_status,omitempty"`
	VendorError string   `json:"vendor_error,omitempty"`
	HTTPS       bool     `json:"https,omitempty"`
	Valid       *bool    `json:"valid,omitempty"`
	Items       int64    `json:"items,omitempty"`
	Method      string   `json:"method,omitempty"`
	Request     *Request `json:"request,omitempty"`
	Fence       int64    `json:"fence,omitempty"`
}

// LeaseReport is a report in a batch.
type LeaseReport struct {
	Lease string `json:"lease"`
	Facts
}

// Retry says whether another try is worth it.
type Retry struct {
	Allowed bool   `json:"allowed"`
	AfterMS int64  `json:"after_ms"`
	Reason  string `json:"reason"`
}

// Reported is what became of a report: applied, duplicate, stale or invalid.
type Reported struct {
	Lease  string `json:"lease"`
	Result string `json:"result"`
	Class  string `json:"class"`
	Retry  Retry  `json:"retry"`
	Detail string `json:"detail"`
}

// Note is what was learnt of a lease's data afterwards.
type Note struct {
	Lease string `json:"lease"`
	Valid *bool  `json:"valid,omitempty"`
	Items int64  `json:"items,omitempty"`
	Ban   bool   `json:"ban,omitempty"`
}

// Beaten is what a heartbeat did for a lease: ok, lost, max_lifetime or stop.
type Beaten struct {
	ID        string     `json:"id"`
	Result    string     `json:"result"`
	ExpiresAt *time.Time `json:"expires_at"`
}

// Heartbeat is the answer to a heartbeat.
type Heartbeat struct {
	Leases []Beaten `json:"leases"`
	Advice []Advice `json:"advice"`
}

// Window is what was seen in a window; rates are nil when nothing was.
type Window struct {
	OK             int64    `json:"ok"`
	Total          int64    `json:"total"`
	Rate           *float64 `json:"rate"`
	AttributedRate *float64 `json:"attributed_rate"`
	Valid          int64    `json:"valid"`
	Invalid        int64    `json:"invalid"`
	ValidRate      *float64 `json:"valid_rate"`
	Timeouts       int64    `json:"timeouts"`
	S403           int64    `json:"s403"`
	S429           int64    `json:"s429"`
	P50MS          *int64   `json:"p50_ms"`
}

// Windows are the last ten minutes, the last hour and the day.
type Windows struct {
	Ten  Window `json:"10m"`
	Hour Window `json:"1h"`
	Day  Window `json:"day"`
}

// Proxy is a proxy's record, without its password.
type Proxy struct {
	ID         string            `json:"id"`
	Scheme     string            `json:"scheme"`
	Host       string            `json:"host"`
	Port       uint16            `json:"port"`
	Username   string            `json:"username"`
	Region     string            `json:"region"`
	Labels     map[string]string `json:"labels"`
	Group      string            `json:"group"`
	Source     string            `json:"source"`
	Exit       string            `json:"exit"`
	Cap        int               `json:"cap"`
	EarnedCap  int               `json:"earned_cap"`
	State      string            `json:"state"`
	Reason     string            `json:"reason"`
	Until      *time.Time        `json:"until"`
	Streak     int               `json:"streak"`
	InUse      int               `json:"in_use"`
	Uses       int64             `json:"uses"`
	ExpiresAt  *time.Time        `json:"expires_at"`
	Score      float64           `json:"score"`
	Windows    Windows           `json:"windows"`
	LastClass  string            `json:"last_class"`
	LastUsedAt *time.Time        `json:"last_used_at"`
}

// Hold is a rest that runs.
type Hold struct {
	Cause string    `json:"cause"`
	Until time.Time `json:"until"`
}

// Pair is what is known of a proxy on one target.
type Pair struct {
	Target      string     `json:"target"`
	NextOKAt    *time.Time `json:"next_ok_at"`
	Holds       []Hold     `json:"holds"`
	Streak      int        `json:"streak"`
	Provisional int        `json:"provisional"`
}

// Why says what keeps a proxy where it is.
type Why struct {
	Proxy    Proxy     `json:"proxy"`
	Because  string    `json:"because"`
	Holds    []Hold    `json:"holds"`
	Pairs    []Pair    `json:"pairs"`
	Failures []Failure `json:"failures"`
}

// LeaseTotals count a pool's leases since it was made.
type LeaseTotals struct {
	Open     int   `json:"open"`
	Granted  int64 `json:"granted"`
	Reported int64 `json:"reported"`
	Released int64 `json:"released"`
	Revoked  int64 `json:"revoked"`
	Expired  int64 `json:"expired"`
}

// Pool is a pool's numbers; the states add up to Proxies.
type Pool struct {
	Name      string         `json:"name"`
	Proxies   int            `json:"proxies"`
	New       int            `json:"new"`
	Probation int            `json:"probation"`
	Active    int            `json:"active"`
	Cooling   int            `json:"cooling"`
	Suspended int            `json:"suspended"`
	Draining  int            `json:"draining"`
	Disabled  int            `json:"disabled"`
	Expired   int            `json:"expired"`
	Ready     int            `json:"ready"`
	Leased    int            `json:"leased"`
	Full      int            `json:"full"`
	Leases    LeaseTotals    `json:"leases"`
	Policy    map[string]any `json:"policy"`
	Overrides []string       `json:"overrides"`
}

// LiveLease is a lease as views show it.
type LiveLease struct {
	Lease     string    `json:"lease"` // eight characters
	Proxy     string    `json:"proxy"`
	Target    string    `json:"target"`
	Worker    string    `json:"worker"`
	Session   string    `json:"session"`
	GrantedAt time.Time `json:"granted_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Request   Request   `json:"request"`
}

// Worker is a process that leases.
type Worker struct {
	Name        string    `json:"name"`
	Tenant      string    `json:"tenant"`
	Concurrency int       `json:"concurrency"`
	Leases      int       `json:"leases"`
	LastSeenAt  time.Time `json:"last_seen_at"`
	Granted     int64     `json:"granted"`
	Reported    int64     `json:"reported"`
	Released    int64     `json:"released"`
	Expired     int64     `json:"expired"`
	Windows     Windows   `json:"windows"`
}

// Target is a site's record.
type Target struct {
	Target          string           `json:"target"`
	Pool            string           `json:"pool"`
	Verdict         string           `json:"verdict"`
	InFlight        int              `json:"in_flight"`
	ReuseIntervalMS int64            `json:"reuse_interval_ms"`
	Resting         map[string]int   `json:"resting"`
	Windows         Windows          `json:"windows"`
	Classes         map[string]int64 `json:"classes"`
}

// Failure is the record of a failed attempt, or of a request given up.
type Failure struct {
	ID        int64     `json:"id"`
	At        time.Time `json:"at"`
	Worker    string    `json:"worker"`
	Target    string    `json:"target"`
	Proxy     string    `json:"proxy"`
	Lease     string    `json:"lease"`
	Class     string    `json:"class"`
	Fault     string    `json:"fault"`
	Phase     string    `json:"phase"`
	Error     string    `json:"error"`
	Status    int       `json:"status"`
	ElapsedMS int64     `json:"elapsed_ms"`
	Attempt   int       `json:"attempt"`
	Request   Request   `json:"request"`
	Final     bool      `json:"final"`
	Reason    string    `json:"reason"`
	Attempts  []string  `json:"attempts"`
	WaitedMS  int64     `json:"waited_ms"`
}

// FinalFailure is a request that its caller gives up.
type FinalFailure struct {
	Pool     string   `json:"pool,omitempty"`
	Target   string   `json:"target"`
	Worker   string   `json:"worker,omitempty"`
	Request  *Request `json:"request,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Class    string   `json:"class,omitempty"`
	Attempts []string `json:"attempts,omitempty"`
	WaitedMS int64    `json:"waited_ms,omitempty"`
	Final    bool     `json:"final"`
}

// Rejection is a line of a list that gave no proxy.
type Rejection struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// Imported counts what became of a list.
type Imported struct {
	Accepted   int         `json:"accepted"`
	Updated    int         `json:"updated"`
	Duplicates int         `json:"duplicates"`
	Rejected   []Rejection `json:"rejected"`
	Ignored    []Rejection `json:"ignored"`
}

// ProxyPatch is an operator's change; nil fields leave things as they are.
type ProxyPatch struct {
	State  *string            `json:"state,omitempty"` // active, draining, disabled
	Reason string             `json:"reason,omitempty"`
	Until  *time.Time         `json:"until,omitempty"`
	Cap    *int               `json:"cap,omitempty"`
	Labels *map[string]string `json:"labels,omitempty"`
	Region *string            `json:"region,omitempty"`
}

// Token is an API token; its text is there only in the answer that makes it.
type Token struct {
	Name      string    `json:"name"`
	Role      string    `json:"role"`
	CreatedAt time.Time `json:"created_at"`
	Token     string    `json:"token,omitempty"`
}

// Change is a setting that differs.
type Change struct {
	Path string `json:"path"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Applied is what applying a policy file changed, or would.
type Applied struct {
	Changes       []Change `json:"changes"`
	KeptOverrides []string `json:"kept_overrides"`
	DryRun        bool     `json:"dry_run"`
}

// PoolConfig is a pool's policy as settings.
type PoolConfig struct {
	Version   int64             `json:"version"`
	Settings  map[string]string `json:"settings"`
	File      map[string]string `json:"file"`
	Overrides map[string]string `json:"overrides"`
}

// reasonOrder lists the reasons that are not 0, largest first.
func reasonOrder(reasons map[string]int) []string {
	names := slices.Sorted(maps.Keys(reasons))
	names = slices.DeleteFunc(names, func(n string) bool { return reasons[n] == 0 })
	slices.SortStableFunc(names, func(a, b string) int { return reasons[b] - reasons[a] })
	return names
}
