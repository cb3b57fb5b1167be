package client

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// WaiterSelector says which proxies will do; empty = any.
type WaiterSelector struct {
	Region string            `json:"region"`
	Scheme string            `json:"scheme"`
	Group  string            `json:"group"`
	Labels map[string]string `json:"labels"`
}

// WaiterLine is who of one tenant waits for the same proxies on a target.
type WaiterLine struct {
	Tenant     string         `json:"tenant"`
	Target     string         `json:"target"`
	Session    string         `json:"session"`
	Selector   WaiterSelector `json:"selector"`
	Count      int            `json:"count"`
	OldestMS   int64          `json:"oldest_ms"`
	EstimateMS *int64         `json:"estimate_ms"` // of who comes now; nil = not known
}

// Waiters is who waits in a pool, longest first.
type Waiters struct {
	Pool    string       `json:"pool"`
	Waiting int          `json:"waiting"`
	Lines   []WaiterLine `json:"lines"`
}

// Waiters tells who waits; limit 0 = 50 lines.
func (c *Client) Waiters(ctx context.Context, pool string, limit int) (*Waiters, error) {
	var out Waiters
	return &out, c.do(ctx, call{
		name: "list waiters", method: http.MethodGet, path: []string{"v1", "waiters"}, query: limited(params("pool", pool), limit), list: true,
	}, &out)
}

// CapacityFrom is what a capacity was reckoned from.
type CapacityFrom struct {
	Pool            string `json:"pool"`
	Target          string `json:"target"`
	ReuseIntervalMS int64  `json:"reuse_interval_ms"`
	LatencyMS       int64  `json:"latency_ms"`
	LatencyMeasured bool   `json:"latency_measured"`
}

// Capacity is what a pool can do for a target.
type Capacity struct {
	AvailableProxies    int          `json:"available_proxies"`
	TotalConcurrency    int          `json:"total_concurrency"`
	ConcurrencyPerProxy float64      `json:"concurrency_per_proxy"`
	RPS                 float64      `json:"rps"`
	Concurrency         int          `json:"concurrency"` // at once, at that rate
	Workers             int          `json:"workers"`     // at once that are worth offering
	LimitedBy           string       `json:"limited_by"`  // proxies, reuse, target or workers
	NextProxyInMS       *int64       `json:"next_proxy_in_ms"`
	From                CapacityFrom `json:"from"`
}

// WhatIf replaces what the server knows; nil = go by what it knows.
type WhatIf struct {
	Proxies        *int
	Reuse, Latency *time.Duration
}

// Capacity tells what a pool can do for a target.
func (c *Client) Capacity(ctx context.Context, pool, target string, what WhatIf) (*Capacity, error) {
	q := params("pool", pool, "target", target)
	if what.Proxies != nil {
		q.Set("proxies", strconv.Itoa(*what.Proxies))
	}
	if what.Reuse != nil {
		q.Set("reuse_ms", strconv.FormatInt(what.Reuse.Milliseconds(), 10))
	}
	if what.Latency != nil {
		q.Set("latency_ms", strconv.FormatInt(what.Latency.Milliseconds(), 10))
	}
	var out Capacity
	return &out, c.do(ctx, call{name: "get the capacity", method: http.MethodGet, path: []string{"v1", "capacity"}, query: q}, &out)
}
