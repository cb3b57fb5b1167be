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
//
// What the fields mean, with units and ranges, is written in api/openapi.yaml,
// which a daemon serves as /openapi.yaml. Readers pass over what they do not
// know, so a client can be older or newer than its daemon.
package client

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ErrUnreachable is that nobody answers at the server's address, or the answer broke
// off. Whether the server did what was asked is then not known.
var ErrUnreachable = errors.New("the server is not reachable")

// Client speaks to one daemon. It is safe for concurrent use.
type Client struct {
	base    *url.URL
	token   string
	http    *http.Client
	timeout time.Duration
	rules   keptRules
}

// Option changes how a client speaks.
type Option func(*Client)

// WithToken sends a bearer token.
func WithToken(token string) Option { return func(c *Client) { c.token = token } }

// WithHTTPClient replaces the HTTP client. Its redirects are not followed: the
// API redirects nowhere, and a token must not follow.
func WithHTTPClient(h *http.Client) Option {
	return func(c *Client) {
		if h != nil {
			own := *h
			c.http = &own
		}
	}
}

// WithTimeout bounds every call, beside its context; 30 s unless set, 0 = no
// bound. A wait for a proxy comes on top of it, and an import is not bounded.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.timeout = d } }

const usualTimeout = 30 * time.Second

// New makes a client for a base URL such as http://127.0.0.1:7070. It speaks to
// the server directly, whatever proxy the environment names: that may well be
// one of those that the server lends.
func New(baseURL string, opts ...Option) (*Client, error) {
	u, err := url.Parse(strings.TrimSpace(baseURL))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the server's URL must look like http://127.0.0.1:7070")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the server's URL holds more than an address: credentials are given as a token")
	}
	c := &Client{base: u, timeout: usualTimeout, http: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true},
	}}
	for _, o := range opts {
		o(c)
	}
	if strings.ContainsFunc(c.token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the token holds characters that no token has")
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// BaseURL is the server's URL.
func (c *Client) BaseURL() string { return c.base.String() }
