package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Acquire lends proxies. When none is free the error is a *Problem "no-proxy"
// with reasons and RetryAfterMS.
func (c *Client) Acquire(ctx context.Context, r AcquireRequest) (*Acquired, error) {
	var out Acquired
	return &out, c.call(ctx, http.MethodPost, "/v1/leases", nil, r, &out)
}

func leasePath(id, what string) string { return "/v1/leases/" + url.PathEscape(id) + what }

// Report ends a lease with what was seen. It may be repeated: it counts once.
func (c *Client) Report(ctx context.Context, lease string, f Facts) (*Reported, error) {
	var out Reported
	return &out, c.call(ctx, http.MethodPost, leasePath(lease, "/report"), nil, f, &out)
}

// Reports ends many leases; the answers are in order.
func (c *Client) Reports(ctx context.Context, list []LeaseReport) ([]Reported, error) {
	var out struct{ Results []Reported }
	err := c.call(ctx, http.MethodPost, "/v1/reports", nil, map[string]any{"reports": list}, &out)
	return out.Results, err
}

// Release gives a lease back unused.
func (c *Client) Release(ctx context.Context, lease string) error {
	return c.call(ctx, http.MethodPost, leasePath(lease, "/release"), nil, nil, nil)
}

// Revoke takes a lease back, as an operator.
func (c *Client) Revoke(ctx context.Context, lease string) error {
	return c.call(ctx, http.MethodDelete, leasePath(lease, ""), nil, nil, nil)
}

// Note says what was learnt of a lease's data, up to 15 minutes after its end.
func (c *Client) Note(ctx context.Context, n Note) error {
	id := n.Lease
	body := map[string]any{"items": n.Items, "ban": n.Ban}
	if n.Valid != nil {
		body["valid"] = *n.Valid
	}
	return c.call(ctx, http.MethodPost, leasePath(id, "/note"), nil, body, nil)
}

// Notes sends a batch; the worker numbers its batches so that none counts twice.
func (c *Client) Notes(ctx context.Context, worker string, seq int64, notes []Note) error {
	return c.call(ctx, http.MethodPost, "/v1/notes", nil, map[string]any{"worker": worker, "seq": seq, "notes": notes}, nil)
}

// Heartbeat extends a worker's leases and gives its fair share.
func (c *Client) Heartbeat(ctx context.Context, worker string, concurrency int, leases []string) (*Heartbeat, error) {
	var out Heartbeat
	body := map[string]any{"leases": leases, "worker_concurrency": concurrency}
	return &out, c.call(ctx, http.MethodPost, "/v1/workers/"+url.PathEscape(worker)+"/heartbeat", nil, body, &out)
}

// ProxyFilter selects proxies; empty fields take all.
type ProxyFilter struct {
	Pool, State, View, Region, Label, Group, Source, Sort string
	Limit                                                 int
	Cursor                                                string
}

func (f ProxyFilter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{
		"pool": f.Pool, "state": f.State, "view": f.View, "region": f.Region, "label": f.Label, "group": f.Group,
		"source": f.Source, "sort": f.Sort, "cursor": f.Cursor,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return q
}

// Proxies lists proxies, one page; the cursor is "" on the last.
func (c *Client) Proxies(ctx context.Context, f ProxyFilter) (list []Proxy, cursor string, err error) {
	var out struct {
		Proxies []Proxy
		Cursor  string
	}
	err = c.call(ctx, http.MethodGet, "/v1/proxies", f.query(), nil, &out)
	return out.Proxies, out.Cursor, err
}

// AllProxies lists all proxies that the filter takes.
func (c *Client) AllProxies(ctx context.Context, f ProxyFilter) ([]Proxy, error) {
	f.Limit = 1000
	var all []Proxy
	for {
		list, cursor, err := c.Proxies(ctx, f)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
		if f.Cursor = cursor; cursor == "" {
			return all, nil
		}
	}
}

// ImportOptions hold for all lines that do not say otherwise.
type ImportOptions struct {
	Pool, Scheme, Exit, Region, Group, Source string
	Labels                                    map[string]string
	Cap                                       int
	ExpiresAt                                 time.Time
	TTL                                       time.Duration
	AllowSpecial                              bool
}

// Import brings a list in, in any form that the server knows.
func (c *Client) Import(ctx context.Context, list io.Reader, o ImportOptions) (*Imported, error) {
	q := url.Values{}
	for name, value := range map[string]string{
		"pool": o.Pool, "scheme": o.Scheme, "exit": o.Exit, "region": o.Region, "group": o.Group, "source": o.Source,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	var labels []string
	for key, value := range o.Labels {
		labels = append(labels, key+"="+value)
	}
	if len(labels) > 0 {
		q.Set("labels", strings.Join(labels, ","))
	}
	if o.Cap > 0 {
		q.Set("cap", strconv.Itoa(o.Cap))
	}
	if !o.ExpiresAt.IsZero() {
		q.Set("expires_at", o.ExpiresAt.UTC().Format(time.RFC3339))
	}
	if o.TTL > 0 {
		q.Set("ttl", o.TTL.String())
	}
	if o.AllowSpecial {
		q.Set("allow_special", "true")
	}
	var out Imported
	return &out, c.call(ctx, http.MethodPost, "/v1/proxies/import", q, list, &out)
}

func poolQuery(pool string) url.Values {
	if pool == "" {
		return nil
	}
	return url.Values{"pool": {pool}}
}

// Why says what keeps a proxy where it is.
func (c *Client) Why(ctx context.Context, pool, id string) (*Why, error) {
	var out Why
	return &out, c.call(ctx, http.MethodGet, "/v1/proxies/"+url.PathEscape(id)+"/why", poolQuery(pool), nil, &out)
}

// PatchProxy changes one proxy.
func (c *Client) PatchProxy(ctx context.Context, pool, id string, p ProxyPatch) error {
	return c.call(ctx, http.MethodPatch, "/v1/proxies/"+url.PathEscape(id), poolQuery(pool), p, nil)
}

// PatchProxies changes all that the filter takes, and tells how many; with dry it only counts.
func (c *Client) PatchProxies(ctx context.Context, f ProxyFilter, p ProxyPatch, dry bool) (int, error) {
	q := f.query()
	if dry {
		q.Set("dry_run", "true")
	}
	var out struct{ Matched int }
	err := c.call(ctx, http.MethodPatch, "/v1/proxies", q, p, &out)
	return out.Matched, err
}

// DeleteProxy drains a proxy; it is gone when its last lease ends.
func (c *Client) DeleteProxy(ctx context.Context, pool, id string) error {
	return c.call(ctx, http.MethodDelete, "/v1/proxies/"+url.PathEscape(id), poolQuery(pool), nil, nil)
}

// Pools lists all pools.
func (c *Client) Pools(ctx context.Context) ([]Pool, error) {
	var out struct{ Pools []Pool }
	err := c.call(ctx, http.MethodGet, "/v1/pools", nil, nil, &out)
	return out.Pools, err
}

// Pool gives one pool.
func (c *Client) Pool(ctx context.Context, name string) (*Pool, error) {
	var out Pool
	return &out, c.call(ctx, http.MethodGet, "/v1/pools/"+url.PathEscape(name), nil, nil, &out)
}

// PutPool makes a pool, or edits its policy.
func (c *Client) PutPool(ctx context.Context, name string, policy map[string]any) (*Pool, error) {
	var out Pool
	return &out, c.call(ctx, http.MethodPut, "/v1/pools/"+url.PathEscape(name), nil, map[string]any{"policy": policy}, &out)
}

// DeletePool removes an empty pool.
func (c *Client) DeletePool(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, "/v1/pools/"+url.PathEscape(name), nil, nil, nil)
}

// Leases lists live leases, newest first.
func (c *Client) Leases(ctx context.Context, pool string, limit int) ([]LiveLease, error) {
	q := url.Values{}
	if pool != "" {
		q.Set("pool", pool)
	}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	var out struct{ Leases []LiveLease }
	err := c.call(ctx, http.MethodGet, "/v1/leases", q, nil, &out)
	return out.Leases, err
}

// Workers lists workers, last seen first.
func (c *Client) Workers(ctx context.Context, pool string) ([]Worker, error) {
	var out struct{ Workers []Worker }
	err := c.call(ctx, http.MethodGet, "/v1/workers", poolQuery(pool), nil, &out)
	return out.Workers, err
}

// Targets lists targets, last used first.
func (c *Client) Targets(ctx context.Context, pool string) ([]Target, error) {
	var out struct{ Targets []Target }
	err := c.call(ctx, http.MethodGet, "/v1/targets", poolQuery(pool), nil, &out)
	return out.Targets, err
}

// FailureFilter selects failure records; empty fields take all.
type FailureFilter struct {
	Pool, Worker, Proxy, Target, Class string
	Final                              *bool
	Since                              time.Time
	Limit                              int
	Cursor                             string
}

// Failures lists failure records, newest first, one page.
func (c *Client) Failures(ctx context.Context, f FailureFilter) (list []Failure, cursor string, err error) {
	q := url.Values{}
	for name, value := range map[string]string{
		"pool": f.Pool, "worker": f.Worker, "proxy": f.Proxy, "target": f.Target, "class": f.Class, "cursor": f.Cursor,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Final != nil {
		q.Set("final", strconv.FormatBool(*f.Final))
	}
	if !f.Since.IsZero() {
		q.Set("since", f.Since.UTC().Format(time.RFC3339))
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	var out struct {
		Failures []Failure
		Cursor   string
	}
	err = c.call(ctx, http.MethodGet, "/v1/failures", q, nil, &out)
	return out.Failures, out.Cursor, err
}

// PostFailure records a request that its caller gives up.
func (c *Client) PostFailure(ctx context.Context, f FinalFailure) error {
	f.Final = true
	return c.call(ctx, http.MethodPost, "/v1/failures", nil, f, nil)
}

// Tokens lists the tokens, without their texts.
func (c *Client) Tokens(ctx context.Context) ([]Token, error) {
	var out struct{ Tokens []Token }
	err := c.call(ctx, http.MethodGet, "/v1/tokens", nil, nil, &out)
	return out.Tokens, err
}

// NewToken makes a token; its text is in this answer only.
func (c *Client) NewToken(ctx context.Context, name, role string) (*Token, error) {
	var out Token
	return &out, c.call(ctx, http.MethodPost, "/v1/tokens", nil, map[string]string{"name": name, "role": role}, &out)
}

// RevokeToken ends a token at once.
func (c *Client) RevokeToken(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, "/v1/tokens/"+url.PathEscape(name), nil, nil, nil)
}

// Config gives every pool's settings.
func (c *Client) Config(ctx context.Context) (map[string]PoolConfig, error) {
	var out struct{ Pools map[string]PoolConfig }
	err := c.call(ctx, http.MethodGet, "/v1/config", nil, nil, &out)
	return out.Pools, err
}

// ApplyConfig puts a policy file in force; with dry it only tells what would change.
func (c *Client) ApplyConfig(ctx context.Context, file io.Reader, dry bool) (*Applied, error) {
	q := url.Values{}
	if dry {
		q.Set("dry_run", "true")
	}
	var out Applied
	return &out, c.call(ctx, http.MethodPut, "/v1/config", q, file, &out)
}

// Ready says whether the daemon can serve.
func (c *Client) Ready(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, "/readyz", nil, nil, nil)
}
