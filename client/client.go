// Package client speaks Hostler's HTTP API.
//
//	c, err := client.New("http://127.0.0.1:7070")
//	got, err := c.Acquire(ctx, client.AcquireRequest{Target: "shop.example", WaitMS: 5000})
//	lease := got.Leases[0]
//	// ... send the request through lease.Proxy.URL ...
//	_, err = c.Report(ctx, lease.ID, client.Facts{Phase: "body", Status: 200})
//
// Errors that the server answered are *[Problem]; a server that cannot be
// reached gives an error that wraps [ErrUnreachable]. No error holds the token
// or a proxy's password.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ErrUnreachable: nobody answers at the server's address.
var ErrUnreachable = errors.New("the server is not reachable")

// Client speaks to one daemon. It is safe for concurrent use.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
}

// Option changes how a client speaks.
type Option func(*Client)

// WithToken sends a bearer token.
func WithToken(token string) Option { return func(c *Client) { c.token = token } }

// WithHTTPClient replaces the HTTP client.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// New makes a client for a base URL such as http://127.0.0.1:7070.
func New(baseURL string, opts ...Option) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the server's URL must look like http://127.0.0.1:7070")
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	transport := &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true}
	c := &Client{base: u, http: &http.Client{
		Transport: transport, // not the environment's proxy: the daemon is what we speak to
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the API redirects nowhere, and a token must not follow
		},
	}}
	for _, o := range opts {
		o(c)
	}
	return c, nil
}

// BaseURL is the server's URL.
func (c *Client) BaseURL() string { return c.base.String() }

// maxAnswer bounds an answer.
const maxAnswer = 16 << 20

// call sends a JSON body, or a reader as it is, and decodes the answer.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body, into any) error {
	req, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer res.Body.Close() //nolint:errcheck // read to its end below
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return c.unreachable(ctx, err)
	case len(raw) > maxAnswer:
		return fmt.Errorf("%s %s: the answer is larger than %d bytes", method, path, maxAnswer)
	case res.StatusCode >= 300:
		return problemFrom(res, raw)
	}
	switch to := into.(type) {
	case nil:
		return nil
	case *string:
		*to = string(raw)
		return nil
	default:
		if err := json.Unmarshal(raw, into); err != nil {
			return fmt.Errorf("%s %s: the answer is not what this client expects: %w", method, path, err)
		}
		return nil
	}
}

func (c *Client) request(ctx context.Context, method, path string, query url.Values, body any) (*http.Request, error) {
	u := c.base.JoinPath(path)
	u.RawQuery = query.Encode()
	var reader io.Reader
	kind := ""
	switch b := body.(type) {
	case nil:
	case io.Reader:
		reader, kind = b, "text/plain; charset=utf-8"
	default:
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader, kind = bytes.NewReader(raw), "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), reader)
	if err != nil {
		return nil, err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// unreachable keeps the cause without the URL that net/http puts before it.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fmt.Errorf("%w at %s: %w", ErrUnreachable, c.base.Host, err)
}

// Problem is an error that the server answered (RFC 9457).
type Problem struct {
	Type         string         `json:"type"` // "/problems/" and a stable slug
	Title        string         `json:"title"`
	Status       int            `json:"status"`
	Detail       string         `json:"detail"`
	Field        string         `json:"field"`
	Reasons      map[string]int `json:"reasons"` // of no-proxy: why, and how many
	Exact        *bool          `json:"exact"`
	RetryAfterMS int64          `json:"retry_after_ms"`
	Advice       *Advice        `json:"advice"`
}

// Error gives title and detail.
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

// IsProblem says whether an error is a problem of a slug.
func IsProblem(err error, slug string) bool {
	var p *Problem
	return errors.As(err, &p) && p.Slug() == slug
}

func problemFrom(res *http.Response, raw []byte) error {
	p := &Problem{}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") && json.Unmarshal(raw, p) == nil && p.Type != "" {
		return p
	}
	return &Problem{Type: "about:blank", Title: "The server answered " + res.Status, Status: res.StatusCode}
}
