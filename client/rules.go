package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/hostler-proxy/hostler/internal/rules"
)

// TargetRules are the body rules of a target: what its answers mean.
type TargetRules struct {
	Target string          `json:"target"`
	Pool   string          `json:"pool"`
	ETag   string          `json:"etag"` // "" = there are no rules
	Rules  json.RawMessage `json:"rules"`

	set *rules.Set
}

// Rule is a body rule; see the API's description of its fields.
type Rule = rules.Rule

// RuleWhen is what a rule asks of an answer.
type RuleWhen = rules.When

// RuleHeader is a header that an answer must have for a rule.
type RuleHeader = rules.Header

// RulePattern is what a rule looks for.
type RulePattern = rules.Pattern

// Page is an answer as rules see it.
type Page struct {
	Status int
	Header http.Header
	// Body is the body or its beginning (16 KiB will do for most rules, a MiB for
	// all) after the content encoding was taken off.
	Body []byte
	// Size is the length of the whole body; -1 = not known.
	Size int64
	// RedirectHost is the host that a redirect leads to, or that redirects were
	// followed to; "" = none.
	RedirectHost string
}

// Match gives the names of the rules that a page hits, for [Facts].Matched.
func (r *TargetRules) Match(p Page) []string {
	return r.set.Evaluate(&rules.Response{
		Status: p.Status, Header: p.Header, Body: p.Body, Size: p.Size, RedirectHost: p.RedirectHost,
	}).Matched
}

// maxKeptRules bounds the targets whose rules a client keeps.
const maxKeptRules = 1000

// keptRules are the rules that a client has fetched, by pool and target.
type keptRules struct {
	mu   sync.Mutex
	kept map[[2]string]*TargetRules
}

func (k *keptRules) get(key [2]string) *TargetRules {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept[key]
}

func (k *keptRules) put(key [2]string, r *TargetRules) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil || len(k.kept) >= maxKeptRules {
		k.kept = map[[2]string]*TargetRules{} // simply begin anew: each is one small call
	}
	k.kept[key] = r
}

// LeaseRules gives the body rules of a lease's target. It asks the server only
// when the lease names a version that the client does not have.
func (c *Client) LeaseRules(ctx context.Context, l *Lease) (*TargetRules, error) {
	if l.Rules.ETag == "" {
		return &TargetRules{Target: l.Target, Pool: l.Pool, Rules: json.RawMessage("[]")}, nil
	}
	if kept := c.rules.get([2]string{l.Pool, l.Target}); kept != nil && kept.ETag == l.Rules.ETag {
		return kept, nil
	}
	return c.TargetRules(ctx, l.Pool, l.Target)
}

// TargetRules gives the body rules of a target. What the client has already is
// not sent again.
func (c *Client) TargetRules(ctx context.Context, pool, target string) (*TargetRules, error) {
	key := [2]string{pool, target}
	kept := c.rules.get(key)
	r := call{
		name: "get the rules of a target", method: http.MethodGet, path: []string{"v1", "targets", target, "rules"},
		query: params("pool", pool), header: http.Header{},
	}
	if kept != nil && kept.ETag != "" {
		r.header.Set("If-None-Match", `"`+kept.ETag+`"`)
	}
	var got TargetRules
	err := c.do(ctx, r, &got)
	if p, ok := err.(*Problem); ok && p.Status == http.StatusNotModified && kept != nil { //nolint:errorlint // as answer made it
		return kept, nil
	}
	if err != nil {
		return nil, err
	}
	if got.set, err = rules.ParseSet(got.Rules); err != nil {
		return nil, fmt.Errorf("%s: the answer holds no list of rules: is this a Hostler server?", r.name)
	}
	c.rules.put(key, &got)
	return &got, nil
}
