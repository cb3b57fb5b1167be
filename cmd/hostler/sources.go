package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/hostler-proxy/hostler/client"
)

type sourcesCmd struct {
	List    sourcesListCmd    `cmd:"" default:"1" help:"Show the sources and how they fare."`
	Refresh sourcesRefreshCmd `cmd:"" help:"Fetch a source now."`
	Accept  sourcesAcceptCmd  `cmd:"" help:"Take the set that a source holds back because it is suddenly small."`
}

type sourcesListCmd struct{}

// Run lists the sources.
func (c *sourcesListCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	list, err := api.Sources(ctx)
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"sources": list})
	}
	t := newTable("SOURCE", "KIND", "POOL", "STATE", "PROXIES", "LISTED", "REFUSED", "SUCCESS", "NEXT", "FROM", "REASON")
	for _, s := range list {
		state := s.State
		if s.Stale {
			state += " stale"
		}
		t.add(s.Name, s.Kind, s.Pool, state, strconv.Itoa(s.Counts.Proxies), strconv.Itoa(s.Counts.Listed), strconv.Itoa(s.Counts.Rejected),
			ago(s.LastSuccessAt), left(s.NextAt), s.From, s.Reason)
	}
	return t.print(e.out)
}

type sourcesRefreshCmd struct {
	Name   string `arg:"" help:"The source."`
	DryRun bool   `help:"Only show what would change."`
}

// Run fetches a source. A list that is not taken is exit code 1.
func (c *sourcesRefreshCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	res, err := api.RefreshSource(ctx, c.Name, c.DryRun)
	if err != nil {
		return err
	}
	return e.printRefreshed(res)
}

type sourcesAcceptCmd struct {
	Name string `arg:"" help:"The source."`
}

// Run accepts the set that waits.
func (c *sourcesAcceptCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	res, err := api.AcceptSource(ctx, c.Name)
	if err != nil {
		return err
	}
	return e.printRefreshed(res)
}

func (e *env) printRefreshed(r *client.SourceRefreshed) error {
	if e.cli.JSON {
		if err := e.printJSON(r); err != nil {
			return err
		}
	} else {
		e.tellRefreshed(r)
	}
	if r.Result == "held" || r.Result == "failed" {
		return errNotMet
	}
	return nil
}

func (e *env) tellRefreshed(r *client.SourceRefreshed) {
	would := ""
	if r.DryRun {
		would = " (dry run: nothing was changed)"
	}
	e.printf("%s: %s%s\n", printable(r.Name), r.Result, would)
	if r.Reason != "" {
		e.printf("  %s\n", printable(r.Reason))
	}
	if r.Result != "failed" {
		e.printf("  %d listed: %d new, %d changed, %d with a new password, %d as before; %d gone, %d left to others\n",
			r.Listed, r.Added, r.Updated, r.Renewed, r.Unchanged, r.Removed, r.Left)
	}
	if r.Result == "held" {
		e.printf("  hostler sources accept %s takes it; it came first %s ago\n", printable(r.Name), short(time.Since(r.Held.At)))
	}
	for i, line := range r.Rejected {
		if i == 20 {
			e.printf("  ... and %d more\n", r.Rejects-i)
			break
		}
		e.printf("  %s\n", printable(fmt.Sprintf("line %d: %s", line.Line, line.Reason)))
	}
}
