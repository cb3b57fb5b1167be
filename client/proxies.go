package client

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

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

// Intervals are times between two starts, in milliseconds; nil = there were none.
type Intervals struct {
	Last *int64 `json:"last"`
	P50  *int64 `json:"p50"`
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
	Bytes      int64             `json:"bytes"`
	ExpiresAt  *time.Time        `json:"expires_at"`
	Score      float64           `json:"score"`
	GatedUntil *time.Time        `json:"gated_until"`
	Windows    Windows           `json:"windows"`
	LastClass  string            `json:"last_class"`
	LastUsedAt *time.Time        `json:"last_used_at"`
	IntervalMS Intervals         `json:"interval_ms"`
	HoldMSP50  *int64            `json:"hold_ms_p50"`
}

// ProxyFilter selects proxies; empty fields take all.
type ProxyFilter struct {
	Pool, State, View, Region, Label, Group, Source, Sort string
	Limit                                                 int
	Cursor                                                string
}

func (f *ProxyFilter) query() url.Values {
	return params("pool", f.Pool, "state", f.State, "view", f.View, "region", f.Region, "label", f.Label, "group", f.Group,
		"source", f.Source)
}

// limited adds a limit, if there is one.
func limited(q url.Values, limit int) url.Values {
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return q
}

// Proxies lists proxies, one page; the cursor is "" on the last.
func (c *Client) Proxies(ctx context.Context, f ProxyFilter) (list []Proxy, cursor string, err error) {
	q := limited(f.query(), f.Limit)
	maps.Copy(q, params("sort", f.Sort, "cursor", f.Cursor))
	var out struct {
		Proxies []Proxy
		Cursor  string
	}
	err = c.do(ctx, call{name: "list proxies", method: http.MethodGet, path: []string{"v1", "proxies"}, query: q, list: true}, &out)
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

// Proxy gives one proxy.
func (c *Client) Proxy(ctx context.Context, pool, id string) (*Proxy, error) {
	var out Proxy
	return &out, c.do(ctx, call{name: "get a proxy", method: http.MethodGet, path: proxyPath(id), query: params("pool", pool)}, &out)
}

func proxyPath(id string, what ...string) []string {
	return append([]string{"v1", "proxies", id}, what...)
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

// Why says what keeps a proxy where it is.
func (c *Client) Why(ctx context.Context, pool, id string) (*Why, error) {
	var out Why
	return &out, c.do(ctx, call{
		name: "ask why", method: http.MethodGet, path: proxyPath(id, "why"), query: params("pool", pool), list: true,
	}, &out)
}

// ImportOptions hold for all lines that do not say otherwise.
type ImportOptions struct {
	Pool, Scheme, Exit, Region, Group, Source string
	Labels                                    map[string]string
	Cap                                       int
	ExpiresAt                                 time.Time
	TTL                                       time.Duration
	AllowSpecial                              bool
	// Format is the list's form; auto if empty.
	Format string
	// MapScheme takes proxies of one scheme for those of another.
	MapScheme map[string]string
	// Columns are the header of a CSV list that has none.
	Columns []string
}

func (o *ImportOptions) query() url.Values {
	q := params("format", o.Format, "map_scheme", pairs(o.MapScheme), "columns", strings.Join(o.Columns, ","),
		"pool", o.Pool, "scheme", o.Scheme, "exit", o.Exit, "region", o.Region, "group", o.Group, "source", o.Source,
		"labels", pairs(o.Labels), "expires_at", timeText(o.ExpiresAt))
	if o.Cap > 0 {
		q.Set("cap", strconv.Itoa(o.Cap))
	}
	if o.TTL > 0 {
		q.Set("ttl", o.TTL.String())
	}
	if o.AllowSpecial {
		q.Set("allow_special", "true")
	}
	return q
}

// pairs writes a map as k=v,k=v.
func pairs(m map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, key+"="+m[key])
	}
	return strings.Join(list, ",")
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
	Rejected   []Rejection `json:"rejected"`       // the first thousand
	Rejections int         `json:"rejected_count"` // all of them
	Ignored    []Rejection `json:"ignored"`
}

// Import brings a list in, in any form that the server knows. Only its context
// bounds it: a list may be long.
func (c *Client) Import(ctx context.Context, list io.Reader, o ImportOptions) (*Imported, error) {
	var out Imported
	return &out, c.do(ctx, call{
		name: "import", method: http.MethodPost, path: proxyPath("import"), query: o.query(), body: list, wait: -1,
	}, &out)
}

// ProxyPatch is an operator's change; nil fields leave things as they are.
type ProxyPatch struct {
	State     *string            // active, draining, disabled
	Reason    string             // why, shown with the state
	Until     *time.Time         // when the ordered state ends by itself; the zero time = never
	Cap       *int               // 0 = the policy's
	Labels    *map[string]string // replace the old ones
	Region    *string
	ExpiresAt *time.Time // the zero time = never
}

// MarshalJSON leaves out what is nil; a zero time becomes null.
func (p ProxyPatch) MarshalJSON() ([]byte, error) {
	body := map[string]any{}
	set(body, "state", p.State)
	set(body, "cap", p.Cap)
	set(body, "labels", p.Labels)
	set(body, "region", p.Region)
	if p.Reason != "" {
		body["reason"] = p.Reason
	}
	for name, at := range map[string]*time.Time{"until": p.Until, "expires_at": p.ExpiresAt} {
		switch {
		case at == nil:
		case at.IsZero():
			body[name] = nil
		default:
			body[name] = timeText(*at)
		}
	}
	return json.Marshal(body)
}

func set[T any](body map[string]any, name string, v *T) {
	if v != nil {
		body[name] = *v
	}
}

// PatchProxy changes one proxy.
func (c *Client) PatchProxy(ctx context.Context, pool, id string, p ProxyPatch) error {
	return c.do(ctx, call{
		name: "change a proxy", method: http.MethodPatch, path: proxyPath(id), query: params("pool", pool), body: p,
	}, nil)
}

// DeleteProxy drains a proxy; it is gone when its last lease ends.
func (c *Client) DeleteProxy(ctx context.Context, pool, id string) error {
	return c.do(ctx, call{name: "remove a proxy", method: http.MethodDelete, path: proxyPath(id), query: params("pool", pool)}, nil)
}
