package httpapi

import (
	"encoding/json"
	"time"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/pool"
)

// timestamp prints as RFC 3339 with exactly three digits of a second, null when zero.
type timestamp time.Time

const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// MarshalJSON prints the moment in UTC.
func (t timestamp) MarshalJSON() ([]byte, error) {
	if time.Time(t).IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(time.Time(t).UTC().Format(timeFormat))
}

// UnmarshalJSON reads RFC 3339 with any number of digits.
func (t *timestamp) UnmarshalJSON(b []byte) error {
	var std time.Time
	if err := json.Unmarshal(b, &std); err != nil {
		return err
	}
	*t = timestamp(std)
	return nil
}

func stamp(t pool.Time) timestamp {
	if t == 0 {
		return timestamp{}
	}
	return timestamp(t.Std())
}

type selectBody struct {
	Region  string            `json:"region"`
	Scheme  string            `json:"scheme"`
	Group   string            `json:"group"`
	Labels  map[string]string `json:"labels"`
	Exclude []string          `json:"exclude"`
}

type requestBody struct {
	Fingerprint string `json:"fingerprint,omitempty"`
	URL         string `json:"url,omitempty"`
	Method      string `json:"method,omitempty"`
	Attempt     int    `json:"attempt,omitempty"`
}

func (b requestBody) request() pool.Request {
	return pool.Request{Fingerprint: b.Fingerprint, URL: b.URL, Method: b.Method, Attempt: b.Attempt}
}

func requestOf(r pool.Request) requestBody {
	return requestBody{Fingerprint: r.Fingerprint, URL: r.URL, Method: r.Method, Attempt: r.Attempt}
}

type acquireBody struct {
	Pool              string      `json:"pool"`
	Target            string      `json:"target"`
	Worker            string      `json:"worker"`
	WorkerConcurrency int         `json:"worker_concurrency"`
	RequestID         string      `json:"request_id"`
	Count             *int        `json:"count"`
	TTLMS             *int64      `json:"ttl_ms"`
	WaitMS            int64       `json:"wait_ms"`
	Session           string      `json:"session"`
	Select            selectBody  `json:"select"`
	LeastBad          bool        `json:"least_bad"`
	Request           requestBody `json:"request"`
}

type leaseProxy struct {
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

type timeoutsBody struct {
	ConnectMS   int64 `json:"connect_ms"`
	FirstByteMS int64 `json:"first_byte_ms"`
	TotalMS     int64 `json:"total_ms"`
}

type rulesBody struct {
	ETag string `json:"etag"`
	URL  string `json:"url"`
}

type leaseBody struct {
	ID            string       `json:"id"`
	Proxy         leaseProxy   `json:"proxy"`
	Pool          string       `json:"pool"`
	Target        string       `json:"target"`
	Worker        string       `json:"worker"`
	Session       string       `json:"session"`
	SessionMoved  bool         `json:"session_moved"`
	PreviousProxy string       `json:"previous_proxy"`
	Fence         int64        `json:"fence"`
	GrantedAt     timestamp    `json:"granted_at"`
	ExpiresAt     timestamp    `json:"expires_at"`
	TTLMS         int64        `json:"ttl_ms"`
	Timeouts      timeoutsBody `json:"timeouts"`
	Rules         rulesBody    `json:"rules"`
	Relaxed       []string     `json:"relaxed"`
}

type adviceBody struct {
	Target      string `json:"target,omitempty"`
	Concurrency int    `json:"concurrency"`
	StartGapMS  int64  `json:"start_gap_ms"`
}

func adviceOf(a keeper.Advice) *adviceBody {
	return &adviceBody{Concurrency: a.Concurrency, StartGapMS: a.StartGap.Milliseconds()}
}

type acquiredBody struct {
	Leases []leaseBody `json:"leases"`
	Advice *adviceBody `json:"advice"`
}

func leaseOf(l *keeper.Lease) leaseBody {
	b := leaseBody{
		ID: l.ID, Pool: l.Pool, Target: l.Target, Worker: l.Worker, Session: l.Session, SessionMoved: l.Moved, Fence: l.Fence,
		GrantedAt: stamp(l.Granted), ExpiresAt: stamp(l.Expires), TTLMS: l.TTL.Milliseconds(),
		Timeouts: timeoutsBody{l.Timeouts.Connect.Milliseconds(), l.Timeouts.FirstByte.Milliseconds(), l.Timeouts.Total.Milliseconds()},
		Relaxed:  l.Relaxed,
		Rules:    rulesOf(l),
		Proxy: leaseProxy{
			ID: l.ProxyID.String(), URL: l.Proxy.URL().String(), Scheme: string(l.Proxy.Scheme), Host: l.Proxy.Host,
			Port: l.Proxy.Port, Username: l.Proxy.Username, Password: l.Proxy.Password.Reveal(), Region: l.Region, Labels: l.Labels.Map(),
		},
	}
	if !l.Previous.IsZero() {
		b.PreviousProxy = l.Previous.String()
	}
	if b.Relaxed == nil {
		b.Relaxed = []string{}
	}
	return b
}

type factsBody struct {
	Phase        judge.Phase     `json:"phase"`
	Status       int             `json:"status"`
	Error        judge.ErrorKind `json:"error"`
	Class        string          `json:"class"`
	ElapsedMS    int64           `json:"elapsed_ms"`
	ConnectMS    int64           `json:"connect_ms"`
	FirstByteMS  int64           `json:"first_byte_ms"`
	Bytes        int64           `json:"bytes"`
	BodyBytes    int64           `json:"body_bytes"`
	BodyHash     string          `json:"body_hash"`
	RedirectHost string          `json:"redirect_host"`
	Matched      []string        `json:"matched"`
	RetryAfter   string          `json:"retry_after"`
	ProxyStatus  string          `json:"proxy_status"`
	VendorError  string          `json:"vendor_error"`
	HTTPS        bool            `json:"https"`
	Valid        *bool           `json:"valid"`
	Items        int64           `json:"items"`
	Method       string          `json:"method"`
	Request      requestBody     `json:"request"`
	Fence        int64           `json:"fence"`
}

func (b *factsBody) facts() (judge.Facts, error) {
	f := judge.Facts{
		Phase: b.Phase, Status: b.Status, Error: b.Error, ElapsedMS: b.ElapsedMS, ConnectMS: b.ConnectMS, FirstByteMS: b.FirstByteMS,
		Bytes: b.Bytes, BodyBytes: b.BodyBytes, BodyHash: b.BodyHash, RedirectHost: b.RedirectHost, Matched: b.Matched,
		RetryAfter: b.RetryAfter, ProxyStatus: b.ProxyStatus, VendorError: b.VendorError, HTTPS: b.HTTPS, Valid: b.Valid,
		Items: b.Items, Method: b.Method, Request: b.Request.request(),
	}
	if b.Class != "" {
		class, err := pool.ParseClass(b.Class)
		if err != nil {
			return f, invalid("class", err.Error())
		}
		f.Class = class
	}
	return f, nil
}

type retryBody struct {
	Allowed bool   `json:"allowed"`
	AfterMS int64  `json:"after_ms"`
	Reason  string `json:"reason"`
}

type reportedBody struct {
	Lease  string     `json:"lease,omitempty"`
	Result string     `json:"result"`
	Class  string     `json:"class,omitempty"`
	Retry  *retryBody `json:"retry,omitempty"`
	Detail string     `json:"detail,omitempty"`
	// UnknownRules are matched names that the target's rules do not have.
	UnknownRules []string `json:"unknown_rules,omitempty"`
}

func reportedOf(r *keeper.Reported) reportedBody {
	b := reportedBody{Lease: r.Lease}
	if r.Err != nil {
		b.Result, b.Detail = "invalid", toProblem(r.Err).Detail
		return b
	}
	b.Result = r.Result.String()
	if r.Class != pool.ClassNone {
		b.Class = r.Class.String()
	}
	b.UnknownRules = r.UnknownRules
	b.Retry = &retryBody{r.Retry.Allowed, r.Retry.After.Milliseconds(), r.Retry.Reason}
	return b
}

type leaseReport struct {
	Lease string `json:"lease"`
	factsBody
}

type noteBody struct {
	Lease string `json:"lease"`
	noteFacts
}

type noteFacts struct {
	Fence int64 `json:"fence"`
	Valid *bool `json:"valid"`
	Items int64 `json:"items"`
	Ban   bool  `json:"ban"`
}

func (b *noteBody) note() keeper.Note {
	return keeper.Note{Lease: b.Lease, Fence: b.Fence, Valid: b.Valid, Items: b.Items, Ban: b.Ban}
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
