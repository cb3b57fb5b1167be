package client

import (
	"context"
	"maps"
	"net/http"
	"strconv"
	"time"
)

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

// Workers lists workers, last seen first.
func (c *Client) Workers(ctx context.Context, pool string) ([]Worker, error) {
	var out struct{ Workers []Worker }
	err := c.do(ctx, call{
		name: "list workers", method: http.MethodGet, path: []string{"v1", "workers"}, query: params("pool", pool), list: true,
	}, &out)
	return out.Workers, err
}

// Votes are what the voters of the current epoch saw of a target.
type Votes struct {
	OK     int `json:"ok"`
	Failed int `json:"failed"`
}

// Target is a site's record.
type Target struct {
	Target          string           `json:"target"`
	Pool            string           `json:"pool"`
	Verdict         string           `json:"verdict"`
	Votes           Votes            `json:"votes"`
	InFlight        int              `json:"in_flight"`
	ReuseIntervalMS int64            `json:"reuse_interval_ms"`
	Resting         map[string]int   `json:"resting"` // proxies that rest for it: reuse_interval, pair_cooling
	Holds           []Hold           `json:"holds"`
	Requests        int64            `json:"requests"`
	Bytes           int64            `json:"bytes"`
	Money           Money            `json:"money"`
	Windows         Windows          `json:"windows"`
	Classes         map[string]int64 `json:"classes"`
	LastUsedAt      *time.Time       `json:"last_used_at"`
}

// Targets lists targets, last used first.
func (c *Client) Targets(ctx context.Context, pool string) ([]Target, error) {
	var out struct{ Targets []Target }
	err := c.do(ctx, call{
		name: "list targets", method: http.MethodGet, path: []string{"v1", "targets"}, query: params("pool", pool), list: true,
	}, &out)
	return out.Targets, err
}

// Target gives one target.
func (c *Client) Target(ctx context.Context, pool, name string) (*Target, error) {
	var out Target
	return &out, c.do(ctx, call{
		name: "get a target", method: http.MethodGet, path: []string{"v1", "targets", name}, query: params("pool", pool),
	}, &out)
}

// TargetPolicy is what differs for a target; nil = the pool's value.
type TargetPolicy struct {
	ReuseIntervalMS *int64 `json:"reuse_interval_ms"`
	MaxConcurrency  *int   `json:"max_concurrency"`
}

// PutTarget sets what differs for a target.
func (c *Client) PutTarget(ctx context.Context, pool, name string, p TargetPolicy) (*Applied, error) {
	var out Applied
	return &out, c.do(ctx, call{
		name: "edit a target", method: http.MethodPut, path: []string{"v1", "targets", name}, query: params("pool", pool), body: p,
	}, &out)
}

// Session is a key that keeps getting the same proxy.
type Session struct {
	Session    string     `json:"session"`
	Proxy      string     `json:"proxy"`
	Leases     int        `json:"leases"`
	LastUsedAt *time.Time `json:"last_used_at"`
	Moving     bool       `json:"moving"` // its next lease gets another proxy
}

// Session gives one session.
func (c *Client) Session(ctx context.Context, pool, key string) (*Session, error) {
	var out Session
	return &out, c.do(ctx, call{
		name: "get a session", method: http.MethodGet, path: []string{"v1", "sessions", key}, query: params("pool", pool),
	}, &out)
}

// EndSession forgets a session; its live leases go on.
func (c *Client) EndSession(ctx context.Context, pool, key string) error {
	return c.do(ctx, call{
		name: "end a session", method: http.MethodDelete, path: []string{"v1", "sessions", key}, query: params("pool", pool),
	}, nil)
}

// Failure is the record of a failed attempt, or of a request given up.
type Failure struct {
	ID        int64     `json:"id"`
	At        time.Time `json:"at"`
	Pool      string    `json:"pool"`
	Worker    string    `json:"worker"`
	Target    string    `json:"target"`
	Proxy     string    `json:"proxy"`
	Lease     string    `json:"lease"` // eight characters
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

// FailureFilter selects failure records; empty fields take all.
type FailureFilter struct {
	Pool, Worker, Proxy, Target, Class string
	Final                              *bool
	Since                              time.Time
	Limit                              int
	Cursor                             string
}

// Failures lists failure records, newest first, one page; the cursor is "" on
// the last. A page can be empty and have a cursor: the server stops looking
// after very many records.
func (c *Client) Failures(ctx context.Context, f FailureFilter) (list []Failure, cursor string, err error) {
	q := limited(params("pool", f.Pool, "worker", f.Worker, "proxy", f.Proxy, "target", f.Target, "class", f.Class), f.Limit)
	maps.Copy(q, params("since", timeText(f.Since), "cursor", f.Cursor))
	if f.Final != nil {
		q.Set("final", strconv.FormatBool(*f.Final))
	}
	var out struct {
		Failures []Failure
		Cursor   string
	}
	err = c.do(ctx, call{name: "list failures", method: http.MethodGet, path: []string{"v1", "failures"}, query: q, list: true}, &out)
	return out.Failures, out.Cursor, err
}

// FinalFailure is a request that its caller gives up.
type FinalFailure struct {
	Pool     string   `json:"pool,omitempty"`
	Target   string   `json:"target"`
	Worker   string   `json:"worker,omitempty"`
	Lease    string   `json:"lease,omitempty"` // of the last attempt
	Request  *Request `json:"request,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Class    string   `json:"class,omitempty"`
	Attempts []string `json:"attempts,omitempty"`
	WaitedMS int64    `json:"waited_ms,omitempty"`
	Final    bool     `json:"final"` // set by PostFailure
}

// PostFailure records a request that its caller gives up.
func (c *Client) PostFailure(ctx context.Context, f FinalFailure) error {
	f.Final = true
	return c.do(ctx, call{name: "record a failure", method: http.MethodPost, path: []string{"v1", "failures"}, body: f}, nil)
}
