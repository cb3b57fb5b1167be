package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"
)

// Bulk says how a change of many is meant.
type Bulk struct {
	DryRun bool // only tell
	All    bool // everything in the pool: goes without a filter
}

func (b Bulk) query(q url.Values) url.Values {
	if b.DryRun {
		q.Set("dry_run", "true")
	}
	if b.All {
		q.Set("all", "true")
	}
	return q
}

// ProxyBrief is a proxy in short.
type ProxyBrief struct {
	ID     string `json:"id"`
	Scheme string `json:"scheme"`
	Host   string `json:"host"`
	Port   uint16 `json:"port"`
	Group  string `json:"group"`
	State  string `json:"state"`
}

// Matched is how many proxies a change was for, and of a dry run the first 20.
type Matched struct {
	Matched int          `json:"matched"`
	DryRun  bool         `json:"dry_run"`
	First   []ProxyBrief `json:"first"`
}

// PatchProxies changes all that the filter takes. Sort, Limit and Cursor of the
// filter mean nothing here.
func (c *Client) PatchProxies(ctx context.Context, f ProxyFilter, p ProxyPatch, b Bulk) (*Matched, error) {
	var out Matched
	return &out, c.do(ctx, call{
		name: "change proxies", method: http.MethodPatch, path: []string{"v1", "proxies"}, query: b.query(f.query()), body: p,
	}, &out)
}

// DeleteProxies drains all that the filter takes; each is gone when its last
// lease ends.
func (c *Client) DeleteProxies(ctx context.Context, f ProxyFilter, b Bulk) (*Matched, error) {
	var out Matched
	return &out, c.do(ctx, call{
		name: "remove proxies", method: http.MethodDelete, path: []string{"v1", "proxies"}, query: b.query(f.query()),
	}, &out)
}

// LeaseFilter selects live leases; empty fields take all.
type LeaseFilter struct {
	Pool    string
	Lease   string // the first eight characters of its id
	Worker  string
	Proxy   string
	Target  string
	Session string
}

// Revoked is how many leases were taken back, and the first 20, as they were.
type Revoked struct {
	Matched int         `json:"matched"`
	DryRun  bool        `json:"dry_run"`
	First   []LiveLease `json:"first"`
}

// RevokeLeases takes all live leases back that the filter takes.
func (c *Client) RevokeLeases(ctx context.Context, f LeaseFilter, b Bulk) (*Revoked, error) {
	q := params("pool", f.Pool, "lease", f.Lease, "worker", f.Worker, "proxy", f.Proxy, "target", f.Target, "session", f.Session)
	var out Revoked
	return &out, c.do(ctx, call{name: "revoke leases", method: http.MethodDelete, path: []string{"v1", "leases"}, query: b.query(q)}, &out)
}

// GroupReleased is what releasing a group did.
type GroupReleased struct {
	Group     string     `json:"group"`
	Released  bool       `json:"released"` // it was held
	HeldUntil *time.Time `json:"held_until"`
}

// ReleaseGroup ends a group's hold.
func (c *Client) ReleaseGroup(ctx context.Context, pool, group string) (*GroupReleased, error) {
	var out GroupReleased
	return &out, c.do(ctx, call{
		name: "release a group", method: http.MethodPost, path: []string{"v1", "groups", group, "release"}, query: params("pool", pool),
	}, &out)
}

// SessionFilter selects sessions; empty fields take all.
type SessionFilter struct {
	Pool, Proxy string
	Limit       int
	Cursor      string
}

// Sessions lists sessions by key, one page; the cursor is "" on the last.
func (c *Client) Sessions(ctx context.Context, f SessionFilter) (list []Session, cursor string, err error) {
	q := limited(params("pool", f.Pool, "proxy", f.Proxy, "cursor", f.Cursor), f.Limit)
	var out struct {
		Sessions []Session
		Cursor   string
	}
	err = c.do(ctx, call{name: "list sessions", method: http.MethodGet, path: []string{"v1", "sessions"}, query: q, list: true}, &out)
	return out.Sessions, out.Cursor, err
}

// MoveSession has a session's next lease go to another proxy.
func (c *Client) MoveSession(ctx context.Context, pool, key string) (*Session, error) {
	var out Session
	return &out, c.do(ctx, call{
		name: "move a session", method: http.MethodPost, path: []string{"v1", "sessions", key, "move"}, query: params("pool", pool),
	}, &out)
}

// AuditRecord is one act of an operator.
type AuditRecord struct {
	ID     int64     `json:"id"`
	At     time.Time `json:"at"`
	Who    string    `json:"who"` // the token's name
	Peer   string    `json:"peer"`
	Act    string    `json:"act"`
	Pool   string    `json:"pool"`
	What   string    `json:"what"`
	Count  int       `json:"count"`
	Result string    `json:"result"`
}

// AuditFilter selects audit records; empty fields take all.
type AuditFilter struct {
	Act, Who string
	Since    time.Time
	Limit    int
	Cursor   string
}

// Audit lists what operators did, newest first, one page; the cursor is "" on the last.
func (c *Client) Audit(ctx context.Context, f AuditFilter) (list []AuditRecord, cursor string, err error) {
	q := limited(params("act", f.Act, "who", f.Who), f.Limit)
	maps.Copy(q, params("since", timeText(f.Since), "cursor", f.Cursor))
	var out struct {
		Audit  []AuditRecord
		Cursor string
	}
	err = c.do(ctx, call{name: "list the audit log", method: http.MethodGet, path: []string{"v1", "audit"}, query: q, list: true}, &out)
	return out.Audit, out.Cursor, err
}

// Check is one thing that the daemon looked at.
type Check struct {
	Name   string `json:"name"`
	Status string `json:"status"` // ok, warn or fail
	Text   string `json:"text"`
	Hint   string `json:"hint"` // what to do
}

// Doctor is what the daemon found on itself.
type Doctor struct {
	At      time.Time `json:"at"` // the daemon's clock
	Version string    `json:"version"`
	Checks  []Check   `json:"checks"`
}

// Doctor asks the daemon what is wrong with it.
func (c *Client) Doctor(ctx context.Context) (*Doctor, error) {
	var out Doctor
	return &out, c.do(ctx, call{name: "ask the doctor", method: http.MethodGet, path: []string{"v1", "doctor"}}, &out)
}

// Backup writes the store's file, as it is while it is in use, and tells its
// size. It holds all secrets. Only the context bounds it. After an error what
// was written is not whole.
func (c *Client) Backup(ctx context.Context, to io.Writer) (int64, error) {
	const name = "back the store up"
	res, err := c.open(ctx, call{name: name, method: http.MethodPost, path: []string{"v1", "store", "backup"}}, nil)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end below
	if kind := mediaOf(res); kind != "application/vnd.sqlite3" {
		return 0, fmt.Errorf("%s: the answer is %q and not a store: is this a Hostler server?", name, kind)
	}
	out := &sink{w: to}
	n, err := io.Copy(out, res.Body)
	switch {
	case out.err != nil:
		return n, fmt.Errorf("%s: write what came: %w", name, out.err)
	case err != nil:
		return n, c.unreachable(ctx, err)
	case res.ContentLength >= 0 && n != res.ContentLength:
		return n, c.unreachable(ctx, errors.New("the answer broke off"))
	}
	return n, nil
}

// sink writes an answer away and remembers why it could not, so that this is not
// taken for a server that cannot be reached.
type sink struct {
	w   io.Writer
	err error
}

// Write writes on.
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.err = err
	return n, err
}
