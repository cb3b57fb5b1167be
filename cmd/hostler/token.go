package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
)

type tokenCmd struct {
	New    tokenNewCmd    `cmd:"" help:"Make a token; its text is shown once."`
	List   tokenListCmd   `cmd:"" help:"List the tokens."`
	Revoke tokenRevokeCmd `cmd:"" help:"End a token at once."`
}

type tokenNewCmd struct {
	Name  string `arg:"" help:"Who will use it; leases are counted under this name."`
	Role  string `help:"What it may do: worker, viewer or operator." enum:"worker,viewer,operator" required:""`
	Store string `help:"Make it in a store file of a daemon that does not run." placeholder:"FILE"`
}

// Run makes a token.
func (c *tokenNewCmd) Run(ctx context.Context, e *env) error {
	var t *client.Token
	if c.Store != "" {
		text, err := app.NewToken(ctx, c.Store, c.Name, c.Role, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		t = &client.Token{Name: c.Name, Role: c.Role, CreatedAt: time.Now(), Token: text}
	} else {
		api, err := e.client()
		if err != nil {
			return err
		}
		if t, err = api.NewToken(ctx, c.Name, c.Role); err != nil {
			return err
		}
	}
	if e.cli.JSON {
		return e.printJSON(t)
	}
	e.printf("%s\n", t.Token)
	return nil
}

type tokenListCmd struct{}

// Run lists the tokens.
func (c *tokenListCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	list, err := api.Tokens(ctx)
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"tokens": list})
	}
	t := newTable("NAME", "ROLE", "MADE", "USED")
	for _, x := range list {
		used := "not since the start"
		if x.LastUsedAt != nil {
			used = ago(x.LastUsedAt) + " ago"
		}
		t.add(x.Name, x.Role, ago(&x.CreatedAt)+" ago", used)
	}
	return t.print(e.out)
}

type tokenRevokeCmd struct {
	Name  string `arg:"" help:"The token's name."`
	Force bool   `help:"Even if no operator's token is left."`
}

// Run revokes a token.
func (c *tokenRevokeCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	revoke := api.RevokeToken
	if c.Force {
		revoke = api.RevokeTokenAnyway
	}
	if err := revoke(ctx, c.Name); err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(map[string]string{"revoked": c.Name})
	}
	e.printf("%s is revoked\n", printable(c.Name))
	return nil
}
