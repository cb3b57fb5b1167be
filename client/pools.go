package client

import (
	"context"
	"io"
	"net/http"
	"time"
)

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
	Name          string         `json:"name"`
	Proxies       int            `json:"proxies"`
	New           int            `json:"new"`
	Probation     int            `json:"probation"`
	Active        int            `json:"active"`
	Cooling       int            `json:"cooling"`
	Suspended     int            `json:"suspended"`
	Draining      int            `json:"draining"`
	Disabled      int            `json:"disabled"`
	Expired       int            `json:"expired"`
	Ready         int            `json:"ready"`
	Leased        int            `json:"leased"`
	Full          int            `json:"full"`
	Leases        LeaseTotals    `json:"leases"`
	PolicyVersion int64          `json:"policy_version"`
	Policy        map[string]any `json:"policy"`    // the names of the API's Policy
	Overrides     []string       `json:"overrides"` // settings edited over the policy file
}

func poolPath(name string) []string { return []string{"v1", "pools", name} }

// Pools lists all pools.
func (c *Client) Pools(ctx context.Context) ([]Pool, error) {
	var out struct{ Pools []Pool }
	err := c.do(ctx, call{name: "list pools", method: http.MethodGet, path: []string{"v1", "pools"}, list: true}, &out)
	return out.Pools, err
}

// Pool gives one pool.
func (c *Client) Pool(ctx context.Context, name string) (*Pool, error) {
	var out Pool
	return &out, c.do(ctx, call{name: "get a pool", method: http.MethodGet, path: poolPath(name)}, &out)
}

// PutPool makes a pool, or edits settings of its policy, which go by the names
// of the API's Policy; nil takes an edit back.
func (c *Client) PutPool(ctx context.Context, name string, policy map[string]any) (*Pool, error) {
	body := struct {
		Policy map[string]any `json:"policy,omitempty"`
	}{policy}
	var out Pool
	return &out, c.do(ctx, call{name: "edit a pool", method: http.MethodPut, path: poolPath(name), body: body}, &out)
}

// DeletePool removes an empty pool.
func (c *Client) DeletePool(ctx context.Context, name string) error {
	return c.do(ctx, call{name: "delete a pool", method: http.MethodDelete, path: poolPath(name)}, nil)
}

// Group is what is known of proxies that share a provider's account.
type Group struct {
	Group     string           `json:"group"`
	Proxies   int              `json:"proxies"`
	HoldUntil *time.Time       `json:"hold_until"` // the whole group rests
	Requests  int64            `json:"requests"`
	Bytes     int64            `json:"bytes"`
	Money     Money            `json:"money"`
	Budget    *Budget          `json:"budget"` // nil = none was set
	Windows   Windows          `json:"windows"`
	Classes   map[string]int64 `json:"classes"`
}

// Groups lists groups by name.
func (c *Client) Groups(ctx context.Context, pool string) ([]Group, error) {
	var out struct{ Groups []Group }
	err := c.do(ctx, call{
		name: "list groups", method: http.MethodGet, path: []string{"v1", "groups"}, query: params("pool", pool), list: true,
	}, &out)
	return out.Groups, err
}

// PoolConfig is a pool's policy as settings.
type PoolConfig struct {
	Version   int64             `json:"version"`
	Settings  map[string]string `json:"settings"`
	File      map[string]string `json:"file"`
	Overrides map[string]string `json:"overrides"`
}

// Config gives every pool's settings.
func (c *Client) Config(ctx context.Context) (map[string]PoolConfig, error) {
	var out struct{ Pools map[string]PoolConfig }
	err := c.do(ctx, call{name: "get the policy", method: http.MethodGet, path: []string{"v1", "config"}, list: true}, &out)
	return out.Pools, err
}

// Change is a setting that differs.
type Change struct {
	Path string `json:"path"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Applied is what applying a policy file changed, or would.
type Applied struct {
	Version       int64    `json:"version"`
	Changes       []Change `json:"changes"`
	KeptOverrides []string `json:"kept_overrides"` // edits that stand over the file
	DryRun        bool     `json:"dry_run"`
}

// ApplyConfig puts a policy file in force; with dry it only tells what would change.
func (c *Client) ApplyConfig(ctx context.Context, file io.Reader, dry bool) (*Applied, error) {
	q := params()
	if dry {
		q.Set("dry_run", "true")
	}
	var out Applied
	return &out, c.do(ctx, call{name: "apply the policy", method: http.MethodPut, path: []string{"v1", "config"}, query: q, body: file}, &out)
}
