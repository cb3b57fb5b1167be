package client

import (
	"context"
	"net/http"
	"strconv"
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

// LeasedProxy is the proxy of a lease, with its credentials. It prints and logs
// without them; only its JSON holds them.
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

// Timeouts are the budgets of the request; who gives up earlier is not believed
// when it blames the proxy.
type Timeouts struct {
	ConnectMS   int64 `json:"connect_ms"`
	FirstByteMS int64 `json:"first_byte_ms"`
	TotalMS     int64 `json:"total_ms"`
}

// Rules say which body rules hold for a lease's target; empty = none.
type Rules struct {
	ETag string `json:"etag"`
	URL  string `json:"url"`
}

// Lease is the right to use a proxy until ExpiresAt. It prints and logs without
// its id and the proxy's credentials; only its JSON holds them.
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
	GrantedAt     time.Time   `json:"granted_at"` // both by the server's clock:
	ExpiresAt     time.Time   `json:"expires_at"` // count TTLMS from the call by your own
	TTLMS         int64       `json:"ttl_ms"`
	Timeouts      Timeouts    `json:"timeouts"`
	Rules         Rules       `json:"rules"`
	Relaxed       []string    `json:"relaxed"` // what LeastBad set aside
}

// Advice is a worker's fair share.
type Advice struct {
	Target      string `json:"target,omitempty"`
	Concurrency int    `json:"concurrency"`
	StartGapMS  int64  `json:"start_gap_ms"`
}

// Acquired is what an acquire got: one lease at least.
type Acquired struct {
	Leases []Lease `json:"leases"`
	Advice *Advice `json:"advice"`
}

// Acquire lends proxies. When none is free the error is a *Problem "no-proxy"
// with reasons and RetryAfterMS.
func (c *Client) Acquire(ctx context.Context, r AcquireRequest) (*Acquired, error) {
	var out Acquired
	return &out, c.do(ctx, call{
		name: "acquire", method: http.MethodPost, path: []string{"v1", "leases"}, body: r, wait: millis(r.WaitMS),
	}, &out)
}

// Facts are what a worker saw of a request; see the API's description of each.
type Facts struct {
	Phase        string   `json:"phase,omitempty"`
	Status       int      `json:"status,omitempty"`
	Error        string   `json:"error,omitempty"`
	Class        string   `json:"class,omitempty"` // the worker's own word, where only it can know
	ElapsedMS    int64    `json:"elapsed_ms,omitempty"`
	ConnectMS    int64    `json:"connect_ms,omitempty"`
	FirstByteMS  int64    `json:"first_byte_ms,omitempty"`
	Bytes        int64    `json:"bytes,omitempty"`
	BodyBytes    int64    `json:"body_bytes,omitempty"`
	BodyHash     string   `json:"body_hash,omitempty"`
	RedirectHost string   `json:"redirect_host,omitempty"`
	Matched      []string `json:"matched,omitempty"` // names of body rules
	RetryAfter   string   `json:"retry_after,omitempty"`
	ProxyStatus  string   `json:"proxy_status,omitempty"`
	VendorError  string   `json:"vendor_error,omitempty"`
	HTTPS        bool     `json:"https,omitempty"`
	Valid        *bool    `json:"valid,omitempty"`
	Items        int64    `json:"items,omitempty"`
	Method       string   `json:"method,omitempty"`
	Request      *Request `json:"request,omitempty"`
	Fence        int64    `json:"fence,omitempty"` // checked unless 0
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

// Reported is what became of a report: applied, duplicate, stale or, in a
// batch, invalid. Lease is set in a batch.
type Reported struct {
	Lease  string `json:"lease"`
	Result string `json:"result"`
	Class  string `json:"class"`
	Retry  Retry  `json:"retry"`
	Detail string `json:"detail"`
	// UnknownRules are matched names that the target's rules do not have.
	UnknownRules []string `json:"unknown_rules,omitempty"`
}

func leasePath(id string, what ...string) []string {
	return append([]string{"v1", "leases", id}, what...)
}

// Report ends a lease with what was seen. It may be repeated: it counts once.
func (c *Client) Report(ctx context.Context, lease string, f Facts) (*Reported, error) {
	var out Reported
	return &out, c.do(ctx, call{name: "report", method: http.MethodPost, path: leasePath(lease, "report"), body: f}, &out)
}

// Reports ends many leases, 1,000 at the most; the answers are in order, and a
// bad entry spoils no other.
func (c *Client) Reports(ctx context.Context, list []LeaseReport) ([]Reported, error) {
	body := struct {
		Reports []LeaseReport `json:"reports"`
	}{append([]LeaseReport{}, list...)}
	var out struct{ Results []Reported }
	err := c.do(ctx, call{name: "report", method: http.MethodPost, path: []string{"v1", "reports"}, body: body}, &out)
	return out.Results, err
}

// Release gives a lease back unused.
func (c *Client) Release(ctx context.Context, lease string) error {
	return c.do(ctx, call{name: "release", method: http.MethodPost, path: leasePath(lease, "release")}, nil)
}

// Revoke takes a lease back, as an operator.
func (c *Client) Revoke(ctx context.Context, lease string) error {
	return c.do(ctx, call{name: "revoke", method: http.MethodDelete, path: leasePath(lease)}, nil)
}

// Note is what was learnt of a lease's data afterwards.
type Note struct {
	Lease string `json:"lease,omitempty"`
	Valid *bool  `json:"valid,omitempty"`
	Items int64  `json:"items,omitempty"`
	Ban   bool   `json:"ban,omitempty"`
	Fence int64  `json:"fence,omitempty"` // checked unless 0
}

// NotesTaken is what became of notes.
type NotesTaken struct {
	Taken     int  `json:"taken"`
	Unknown   int  `json:"unknown"`   // foreign, or too late
	Duplicate bool `json:"duplicate"` // the batch was taken before
}

// Note says what was learnt of a lease's data, up to 15 minutes after its end.
func (c *Client) Note(ctx context.Context, n Note) error {
	path := leasePath(n.Lease, "note")
	n.Lease = ""
	return c.do(ctx, call{name: "note", method: http.MethodPost, path: path, body: n}, nil)
}

// Notes sends a batch, 1,000 at the most; the worker numbers its batches
// upwards so that none counts twice, 0 = not numbered.
func (c *Client) Notes(ctx context.Context, worker string, seq int64, notes []Note) (*NotesTaken, error) {
	body := struct {
		Worker string `json:"worker,omitempty"`
		Seq    int64  `json:"seq,omitempty"`
		Notes  []Note `json:"notes"`
	}{worker, seq, append([]Note{}, notes...)}
	var out NotesTaken
	return &out, c.do(ctx, call{name: "note", method: http.MethodPost, path: []string{"v1", "notes"}, body: body}, &out)
}

// ExchangeRequest is reports, notes and a wish for leases in one call; each may
// be left out.
type ExchangeRequest struct {
	Reports []LeaseReport   `json:"reports,omitempty"`
	Notes   []Note          `json:"notes,omitempty"`
	Worker  string          `json:"worker,omitempty"` // whose notes; Acquire's if empty
	Seq     int64           `json:"seq,omitempty"`    // number of the notes' batch
	Acquire *AcquireRequest `json:"acquire,omitempty"`
}

// Exchanged is what became of the parts of an exchange. When nothing was lent
// NoProxy says why.
type Exchanged struct {
	Results []Reported  `json:"results"`
	Notes   *NotesTaken `json:"notes"`
	Leases  []Lease     `json:"leases"`
	NoProxy *Problem    `json:"no_proxy"`
	Advice  *Advice     `json:"advice"`
}

// Exchange reports, notes and acquires in one call. That no proxy is free is no
// error here.
func (c *Client) Exchange(ctx context.Context, r ExchangeRequest) (*Exchanged, error) {
	x := call{name: "exchange", method: http.MethodPost, path: []string{"v1", "exchange"}, body: r}
	if r.Acquire != nil {
		x.wait = millis(r.Acquire.WaitMS)
	}
	var out Exchanged
	return &out, c.do(ctx, x, &out)
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

// Heartbeat extends a worker's leases and gives its fair share.
func (c *Client) Heartbeat(ctx context.Context, worker string, concurrency int, leases []string) (*Heartbeat, error) {
	body := struct {
		Leases            []string `json:"leases,omitempty"`
		WorkerConcurrency int      `json:"worker_concurrency,omitempty"`
	}{leases, concurrency}
	var out Heartbeat
	return &out, c.do(ctx, call{
		name: "heartbeat", method: http.MethodPost, path: []string{"v1", "workers", worker, "heartbeat"}, body: body,
	}, &out)
}

// TakeProxy gives one proxy URL with its credentials, without a lease. It holds
// the proxy's slot for hold, and the server learns nothing of the outcome.
func (c *Client) TakeProxy(ctx context.Context, pool, target string, hold time.Duration) (string, error) {
	q := params("pool", pool, "target", target)
	if hold > 0 {
		q.Set("hold_ms", strconv.FormatInt(hold.Milliseconds(), 10))
	}
	var out string
	err := c.do(ctx, call{name: "take a proxy", method: http.MethodGet, path: []string{"v1", "proxy"}, query: q}, &out)
	return trimLine(out), err
}

func trimLine(s string) string {
	for len(s) > 0 && (s[len(s)-1] == '\n' || s[len(s)-1] == '\r') {
		s = s[:len(s)-1]
	}
	return s
}

// LiveLease is a lease as views show it.
type LiveLease struct {
	Lease     string    `json:"lease"` // eight characters
	Proxy     string    `json:"proxy"`
	Target    string    `json:"target"`
	Worker    string    `json:"worker"`
	Session   string    `json:"session"`
	Fence     int64     `json:"fence"`
	GrantedAt time.Time `json:"granted_at"`
	ExpiresAt time.Time `json:"expires_at"`
	TTLMS     int64     `json:"ttl_ms"`
	Request   Request   `json:"request"`
}

// Leases lists live leases, newest first; limit 0 = 100.
func (c *Client) Leases(ctx context.Context, pool string, limit int) ([]LiveLease, error) {
	var out struct{ Leases []LiveLease }
	err := c.do(ctx, call{
		name: "list leases", method: http.MethodGet, path: []string{"v1", "leases"}, query: limited(params("pool", pool), limit), list: true,
	}, &out)
	return out.Leases, err
}
