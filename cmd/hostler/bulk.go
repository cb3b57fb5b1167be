package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
)

// selection names proxies by id, or by a filter.
type selection struct {
	filterFlags
	askFlags
	ID []string `arg:"" optional:"" help:"Ids, or their first characters; without any a filter is needed."`
}

// bulkAct is what is done to the proxies that a selection names.
type bulkAct struct {
	verb, done string // pause, paused
	grave      bool   // asks for --yes where nobody can be asked
	one        func(ctx context.Context, api *client.Client, id string) error
	many       func(ctx context.Context, api *client.Client, b client.Bulk) (*client.Matched, error)
}

// run does it to what was selected.
func (s *selection) run(ctx context.Context, e *env, act bulkAct) error {
	if err := s.check(act.verb); err != nil {
		return err
	}
	api, err := e.client()
	if err != nil {
		return err
	}
	if len(s.ID) > 0 {
		return s.each(ctx, e, api, act)
	}
	would, err := act.many(ctx, api, client.Bulk{DryRun: true, All: s.All})
	if err != nil {
		return err
	}
	if would.Matched == 0 {
		return s.none(e, would)
	}
	if s.DryRun {
		return e.printMatched(would, act.done)
	}
	if e.person && !s.Yes { // show what is asked about
		shown := *e
		shown.out = e.errs
		if err := shown.printMatched(would, act.done); err != nil {
			return err
		}
	}
	question := fmt.Sprintf("%s %d proxies of pool %s (%s)?", act.verb, would.Matched, printable(s.Pool), printable(s.words()))
	if err := e.sure(question, s.Yes, act.grave || s.All); err != nil {
		return err
	}
	did, err := act.many(ctx, api, client.Bulk{All: s.All})
	if err != nil {
		return err
	}
	return e.printMatched(did, act.done)
}

// check refuses a selection that names nothing, or two things.
func (s *selection) check(verb string) error {
	filtered := s.words() != "all"
	switch {
	case len(s.ID) > 0 && (filtered || s.All):
		return &app.UsageError{Text: "name ids or a filter, not both"}
	case filtered && s.All:
		return &app.UsageError{Text: "--all goes without a filter"}
	case len(s.ID) == 0 && !filtered && !s.All:
		return &app.UsageError{Text: fmt.Sprintf("nothing is named to %s: give ids, a filter such as --group NAME, or --all", verb)}
	}
	return nil
}

// words is the filter in words.
func (s *selection) words() string {
	var parts []string
	for _, p := range [][2]string{{"state", s.State}, {"group", s.Group}, {"region", s.Region}, {"source", s.Source}, {"label", s.Label}} {
		if p[1] != "" {
			parts = append(parts, p[0]+" "+p[1])
		}
	}
	if len(parts) == 0 {
		return "all"
	}
	return strings.Join(parts, ", ")
}

func (s *selection) none(e *env, m *client.Matched) error {
	if e.cli.JSON {
		if err := e.printJSON(m); err != nil {
			return err
		}
		return errNotMet
	}
	return fmt.Errorf("nothing matches: pool %s has no proxy with %s", printable(s.Pool), printable(s.words()))
}

func (s *selection) each(ctx context.Context, e *env, api *client.Client, act bulkAct) error {
	ids, err := e.resolve(ctx, api, s.Pool, s.ID)
	if err != nil {
		return err
	}
	m := &client.Matched{Matched: len(ids), DryRun: s.DryRun, First: []client.ProxyBrief{}}
	for _, id := range ids {
		if s.DryRun {
			p, err := api.Proxy(ctx, s.Pool, id)
			if err != nil {
				return err
			}
			m.First = append(m.First, client.ProxyBrief{ID: p.ID, Scheme: p.Scheme, Host: p.Host, Port: p.Port, Group: p.Group, State: p.State})
			continue
		}
		if err := act.one(ctx, api, id); err != nil {
			return err
		}
	}
	return e.printMatched(m, act.done)
}

// printMatched tells how many it was, and of a dry run the first ones.
func (e *env) printMatched(m *client.Matched, done string) error {
	switch {
	case e.cli.JSON:
		return e.printJSON(m)
	case !m.DryRun:
		e.printf("%d %s\n", m.Matched, done)
		return nil
	}
	e.printf("%d would be %s\n", m.Matched, done)
	t := newTable("ID", "PROXY", "GROUP", "STATE")
	for _, p := range m.First {
		t.add(p.ID[:min(8, len(p.ID))], fmt.Sprintf("%s://%s:%d", p.Scheme, p.Host, p.Port), p.Group, p.State)
	}
	if err := t.print(e.out); err != nil {
		return err
	}
	if more := m.Matched - len(m.First); more > 0 {
		e.printf("... and %d more\n", more)
	}
	return nil
}

// change applies a change to what was selected.
func (s *selection) change(ctx context.Context, e *env, patch client.ProxyPatch, verb, done string) error {
	return s.run(ctx, e, bulkAct{
		verb: verb, done: done,
		one: func(ctx context.Context, api *client.Client, id string) error {
			return api.PatchProxy(ctx, s.Pool, id, patch)
		},
		many: func(ctx context.Context, api *client.Client, b client.Bulk) (*client.Matched, error) {
			return api.PatchProxies(ctx, s.filter(), patch, b)
		},
	})
}

type orderFlags struct {
	Reason string        `help:"Why; it is shown beside the state." placeholder:"TEXT"`
	For    time.Duration `help:"For how long; until further notice without it." placeholder:"DURATION" xor:"end"`
	Until  time.Time     `help:"Until when, such as 2026-01-31T12:00:00Z." placeholder:"TIME" xor:"end"`
}

func (f *orderFlags) patch(state string) (client.ProxyPatch, error) {
	p := client.ProxyPatch{State: &state, Reason: f.Reason}
	if f.For < 0 {
		return p, &app.UsageError{Text: "--for must be more than 0"}
	}
	until := f.Until
	if f.For > 0 {
		until = time.Now().Add(f.For)
	}
	if !until.IsZero() {
		p.Until = &until
	}
	return p, nil
}

type proxiesPauseCmd struct {
	selection
	orderFlags
}

// Run pauses proxies.
func (c *proxiesPauseCmd) Run(ctx context.Context, e *env) error {
	patch, err := c.patch("disabled")
	if err != nil {
		return err
	}
	return c.change(ctx, e, patch, "pause", "paused")
}

type proxiesDrainCmd struct {
	selection
	orderFlags
}

// Run drains proxies.
func (c *proxiesDrainCmd) Run(ctx context.Context, e *env) error {
	patch, err := c.patch("draining")
	if err != nil {
		return err
	}
	return c.change(ctx, e, patch, "drain", "draining")
}

type proxiesResumeCmd struct{ selection }

// Run resumes proxies.
func (c *proxiesResumeCmd) Run(ctx context.Context, e *env) error {
	state := "active"
	return c.change(ctx, e, client.ProxyPatch{State: &state}, "resume", "resumed, through probation")
}

type proxiesRmCmd struct{ selection }

// Run removes proxies.
func (c *proxiesRmCmd) Run(ctx context.Context, e *env) error {
	return c.run(ctx, e, bulkAct{
		verb: "remove", done: "removed", grave: true,
		one: func(ctx context.Context, api *client.Client, id string) error {
			return api.DeleteProxy(ctx, c.Pool, id)
		},
		many: func(ctx context.Context, api *client.Client, b client.Bulk) (*client.Matched, error) {
			return api.DeleteProxies(ctx, c.filter(), b)
		},
	})
}
