package client

import (
	"context"
	"net/http"
	"time"
)

// HeldSet is a list that was too small to be believed at once.
type HeldSet struct {
	Count int       `json:"count"` // of its proxies
	Seen  int       `json:"seen"`  // equal fetches in a row
	At    time.Time `json:"at"`
}

// SourceCounts are a source's numbers.
type SourceCounts struct {
	Proxies  int `json:"proxies"`  // in the pool now
	Listed   int `json:"listed"`   // by the last good fetch
	Rejected int `json:"rejected"` // lines of it that gave none
	Failures int `json:"failures"` // fetches in a row
}

// Source is where proxies come from by themselves.
type Source struct {
	Name          string            `json:"name"`
	Kind          string            `json:"kind"`
	Pool          string            `json:"pool"`
	From          string            `json:"from"`
	State         string            `json:"state"` // ok, held, failing, never
	Reason        string            `json:"reason"`
	Stale         bool              `json:"stale"`
	IntervalMS    int64             `json:"interval_ms"`
	Counts        SourceCounts      `json:"counts"`
	LastSuccessAt *time.Time        `json:"last_success_at"`
	LastAttemptAt *time.Time        `json:"last_attempt_at"`
	NextAt        *time.Time        `json:"next_at"`
	Held          *HeldSet          `json:"held"`
	Settings      map[string]string `json:"settings"`
}

// SourceRefreshed is what a refresh did, or would do.
type SourceRefreshed struct {
	Name       string      `json:"name"`
	Result     string      `json:"result"` // taken, unchanged, held, failed
	Reason     string      `json:"reason"`
	DryRun     bool        `json:"dry_run"`
	Listed     int         `json:"listed"`
	Duplicates int         `json:"duplicates"`
	Added      int         `json:"added"`
	Updated    int         `json:"updated"`
	Renewed    int         `json:"renewed"` // took over a record: only the password changed
	Unchanged  int         `json:"unchanged"`
	Removed    int         `json:"removed"`
	Left       int         `json:"left"` // no longer listed, and kept for others
	Rejects    int         `json:"rejects"`
	Rejected   []Rejection `json:"rejected"`
	Held       *HeldSet    `json:"held"`
}

// Sources lists the sources by name.
func (c *Client) Sources(ctx context.Context) ([]Source, error) {
	var out struct{ Sources []Source }
	err := c.do(ctx, call{name: "list sources", method: http.MethodGet, path: []string{"v1", "sources"}, list: true}, &out)
	return out.Sources, err
}

// maxFetch is the longest that a source's fetch may take.
const maxFetch = 15 * time.Minute

// RefreshSource fetches a source now; with dry it only tells the difference. A
// list that is not taken is no error: see Result and Reason.
func (c *Client) RefreshSource(ctx context.Context, name string, dry bool) (*SourceRefreshed, error) {
	q := params()
	if dry {
		q.Set("dry_run", "true")
	}
	var out SourceRefreshed
	return &out, c.do(ctx, call{
		name: "refresh a source", method: http.MethodPost, path: []string{"v1", "sources", name, "refresh"}, query: q, wait: maxFetch,
	}, &out)
}

// AcceptSource puts the set in force that a source holds back.
func (c *Client) AcceptSource(ctx context.Context, name string) (*SourceRefreshed, error) {
	var out SourceRefreshed
	return &out, c.do(ctx, call{
		name: "accept a source's set", method: http.MethodPost, path: []string{"v1", "sources", name, "accept"}, wait: maxFetch,
	}, &out)
}
