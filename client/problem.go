package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The kinds of problems: what [Problem.Slug] gives and [IsProblem] takes.
const (
	NoProxy              = "no-proxy"               // none is free: see Reasons and RetryAfterMS
	StoreUnavailable     = "store-unavailable"      // nothing is known to have been kept: send it again
	RequestEnded         = "request-ended"          // the leases of this request_id have ended
	RequestConflict      = "request-conflict"       // the request_id was used with another body
	Conflict             = "conflict"               // in use, exists, or changed meanwhile
	InvalidRequest       = "invalid-request"        // see Field
	UnknownLease         = "unknown-lease"          // not a lease id of this server
	UnknownProxy         = "unknown-proxy"          // the pool has no such proxy
	UnknownPool          = "unknown-pool"           // no such pool
	UnknownTarget        = "unknown-target"         // nothing was sent to it yet
	UnknownSession       = "unknown-session"        // no such session
	UnknownToken         = "unknown-token"          // no such token
	UnknownGroup         = "unknown-group"          // the pool has no such group
	UnknownSource        = "unknown-source"         // no such source
	Unauthorized         = "unauthorized"           // no token, or not a known one
	Forbidden            = "forbidden"              // the token's role is not enough
	MisdirectedHost      = "misdirected-host"       // without a token, only loopback names will do
	CrossOrigin          = "cross-origin"           // a page of another site asks
	NotFound             = "not-found"              // no such path
	MethodNotAllowed     = "method-not-allowed"     // the path has no such method
	TooLarge             = "too-large"              // the body is larger than the call takes
	UnsupportedMediaType = "unsupported-media-type" // the body must be JSON
	Timeout              = "timeout"                // the request took too long
	Internal             = "internal"               // a fault of the server: see its log
)

// Problem is an error that the server answered (RFC 9457).
type Problem struct { //nolint:errname // RFC 9457 calls it so
	Type         string         `json:"type"` // "/problems/" and a stable slug
	Title        string         `json:"title"`
	Status       int            `json:"status"`
	Detail       string         `json:"detail,omitempty"`
	Field        string         `json:"field,omitempty"`
	Reasons      map[string]int `json:"reasons,omitempty"` // of no-proxy: why, and how many
	Exact        *bool          `json:"exact,omitempty"`   // of no-proxy: every proxy was looked at
	RetryAfterMS int64          `json:"retry_after_ms,omitempty"`
	Advice       *Advice        `json:"advice,omitempty"`
}

// Error gives title, detail and reasons.
func (p *Problem) Error() string {
	text := p.Title
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	var parts []string
	for _, name := range reasonOrder(p.Reasons) {
		parts = append(parts, fmt.Sprintf("%s %d", name, p.Reasons[name]))
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return text
}

// Slug is the last part of the type, such as "no-proxy".
func (p *Problem) Slug() string { return strings.TrimPrefix(p.Type, "/problems/") }

// RetryAfter is when to come back; 0 = the server did not say.
func (p *Problem) RetryAfter() time.Duration { return millis(p.RetryAfterMS) }

// IsProblem says whether an error is a problem of a slug.
func IsProblem(err error, slug string) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && p.Slug() == slug
}

// reasonOrder lists the reasons that are not 0, largest first.
func reasonOrder(reasons map[string]int) []string {
	names := slices.Sorted(maps.Keys(reasons))
	names = slices.DeleteFunc(names, func(n string) bool { return reasons[n] == 0 })
	slices.SortStableFunc(names, func(a, b string) int { return reasons[b] - reasons[a] })
	return names
}

// problem reads an error answer. One that is not ours, such as a page of some
// proxy between, is named by its status alone: its text may hold anything.
func (c *Client) problem(res *http.Response, raw []byte) error {
	p := &Problem{}
	if mediaOf(res) == "application/problem+json" && json.Unmarshal(raw, p) == nil && p.Type != "" {
		p.Title, p.Detail, p.Field = c.clean(p.Title), c.clean(p.Detail), c.clean(p.Field)
		return p
	}
	return &Problem{
		Type: "about:blank", Title: fmt.Sprintf("The server answered %d %s", res.StatusCode, http.StatusText(res.StatusCode)),
		Status: res.StatusCode,
	}
}
