package client

import (
	"context"
	"net/http"
	"time"
)

// Token is an API token; its text is there only in the answer that makes it. It
// prints and logs without the text; only its JSON holds it.
type Token struct {
	Name       string     `json:"name"`
	Role       string     `json:"role"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at"` // nil = not since the daemon started
	Token      string     `json:"token,omitempty"`
}

// Tokens lists the tokens, without their texts.
func (c *Client) Tokens(ctx context.Context) ([]Token, error) {
	var out struct{ Tokens []Token }
	err := c.do(ctx, call{name: "list tokens", method: http.MethodGet, path: []string{"v1", "tokens"}, list: true}, &out)
	return out.Tokens, err
}

// NewToken makes a token; its text is in this answer only. The role is worker,
// viewer or operator.
func (c *Client) NewToken(ctx context.Context, name, role string) (*Token, error) {
	body := map[string]string{"name": name, "role": role}
	var out Token
	return &out, c.do(ctx, call{name: "make a token", method: http.MethodPost, path: []string{"v1", "tokens"}, body: body}, &out)
}

// RevokeToken ends a token at once.
func (c *Client) RevokeToken(ctx context.Context, name string) error {
	return c.do(ctx, call{name: "revoke a token", method: http.MethodDelete, path: []string{"v1", "tokens", name}}, nil)
}

// RevokeTokenAnyway ends a token at once even if no operator's token is left.
func (c *Client) RevokeTokenAnyway(ctx context.Context, name string) error {
	return c.do(ctx, call{
		name: "revoke a token", method: http.MethodDelete, path: []string{"v1", "tokens", name}, query: params("force", "true"),
	}, nil)
}

// Health says whether the daemon lives.
func (c *Client) Health(ctx context.Context) error {
	return c.do(ctx, call{name: "ask for health", method: http.MethodGet, path: []string{"healthz"}}, nil)
}

// Ready says whether the daemon can serve.
func (c *Client) Ready(ctx context.Context) error {
	return c.do(ctx, call{name: "ask for readiness", method: http.MethodGet, path: []string{"readyz"}}, nil)
}

// OpenAPI gives the contract that the daemon serves, as YAML.
func (c *Client) OpenAPI(ctx context.Context) (string, error) {
	var out string
	err := c.do(ctx, call{name: "get the contract", method: http.MethodGet, path: []string{"openapi.yaml"}}, &out)
	return out, err
}
