package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
)

type leasesCmd struct {
	List   leasesListCmd   `cmd:"" default:"withargs" help:"Show the live leases."`
	Revoke leasesRevokeCmd `cmd:"" help:"Take leases back; the next heartbeat of a holder says lost."`
}

type leasesRevokeCmd struct {
	askFlags
	Pool    string   `help:"The pool." default:"default"`
	Lease   []string `arg:"" optional:"" help:"Ids of leases, or their first eight characters, as the list shows them; behind -- if one begins with -."`
	Worker  string   `help:"All of a worker." placeholder:"NAME"`
	Proxy   string   `help:"All of a proxy: its id, or its first characters." placeholder:"ID"`
	Target  string   `help:"All for a target." placeholder:"NAME"`
	Session string   `help:"All of a session." placeholder:"KEY"`
}

// Run revokes leases.
func (c *leasesRevokeCmd) Run(ctx context.Context, e *env) error {
	filtered := c.Worker+c.Proxy+c.Target+c.Session != ""
	switch {
	case len(c.Lease) > 0 && (filtered || c.All), filtered && c.All:
		return &app.UsageError{Text: "name leases, a filter, or --all: one of them"}
	case len(c.Lease) == 0 && !filtered && !c.All:
		return &app.UsageError{Text: "nothing is named to revoke: give leases, a filter such as --worker NAME, or --all"}
	}
	api, err := e.client()
	if err != nil {
		return err
	}
	f := client.LeaseFilter{Pool: c.Pool, Worker: c.Worker, Target: c.Target, Session: c.Session}
	if c.Proxy != "" {
		ids, err := e.resolve(ctx, api, c.Pool, []string{c.Proxy})
		if err != nil {
			return err
		}
		f.Proxy = ids[0]
	}
	if len(c.Lease) > 0 {
		return c.named(ctx, e, api, f)
	}
	return c.filtered(ctx, e, api, f)
}

// named revokes leases by id.
func (c *leasesRevokeCmd) named(ctx context.Context, e *env, api *client.Client, f client.LeaseFilter) error {
	all := &client.Revoked{DryRun: c.DryRun, First: []client.LiveLease{}}
	var gone []string
	for _, id := range c.Lease {
		if len(id) < 8 {
			return &app.UsageError{Text: fmt.Sprintf("%q is not a lease: give at least the eight characters that the list shows", id)}
		}
		f.Lease = id[:8]
		res, err := api.RevokeLeases(ctx, f, client.Bulk{DryRun: c.DryRun})
		if err != nil {
			return err
		}
		if res.Matched == 0 {
			gone = append(gone, f.Lease)
		}
		all.Matched += res.Matched
		all.First = append(all.First, res.First...)
	}
	if err := e.printRevoked(all); err != nil {
		return err
	}
	if len(gone) > 0 {
		return fmt.Errorf("not live in pool %s: %s", printable(c.Pool), printable(strings.Join(gone, ", ")))
	}
	return nil
}

// filtered revokes all leases that the filter takes.
func (c *leasesRevokeCmd) filtered(ctx context.Context, e *env, api *client.Client, f client.LeaseFilter) error {
	would, err := api.RevokeLeases(ctx, f, client.Bulk{DryRun: true, All: c.All})
	if err != nil {
		return err
	}
	if would.Matched == 0 {
		if e.cli.JSON {
			if err := e.printJSON(would); err != nil {
				return err
			}
			return errNotMet
		}
		return fmt.Errorf("nothing matches: pool %s has no such live lease", printable(c.Pool))
	}
	if c.DryRun {
		return e.printRevoked(would)
	}
	if err := e.sure(fmt.Sprintf("revoke %d leases of pool %s?", would.Matched, printable(c.Pool)), c.Yes, c.All); err != nil {
		return err
	}
	did, err := api.RevokeLeases(ctx, f, client.Bulk{All: c.All})
	if err != nil {
		return err
	}
	return e.printRevoked(did)
}

func (e *env) printRevoked(r *client.Revoked) error {
	switch {
	case e.cli.JSON:
		return e.printJSON(r)
	case !r.DryRun:
		e.printf("%d revoked\n", r.Matched)
		return nil
	}
	e.printf("%d would be revoked\n", r.Matched)
	if err := leaseTable(r.First).print(e.out); err != nil {
		return err
	}
	if more := r.Matched - len(r.First); more > 0 {
		e.printf("... and %d more\n", more)
	}
	return nil
}

type groupsCmd struct {
	List    groupsListCmd    `cmd:"" default:"withargs" help:"Show the groups: proxies that share an account."`
	Release groupsReleaseCmd `cmd:"" help:"End the rest of groups whose account was out of quota."`
}

type groupsListCmd struct {
	Pool string `help:"The pool." default:"default"`
}

// Run shows the groups.
func (c *groupsListCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	list, err := api.Groups(ctx, c.Pool)
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"groups": list})
	}
	t := newTable("GROUP", "PROXIES", "HELD", "10 MIN", "HOUR", "DAY", "QUOTA", "AUTH", "MB", "BUDGET")
	for _, g := range list {
		budget := "-"
		if g.Budget != nil {
			budget = percent(&g.Budget.Used)
		}
		t.add(g.Group, strconv.Itoa(g.Proxies), left(g.HoldUntil), percent(g.Windows.Ten.Rate), percent(g.Windows.Hour.Rate),
			percent(g.Windows.Day.Rate), fmt.Sprint(g.Classes["PROXY_QUOTA"]), fmt.Sprint(g.Classes["PROXY_AUTH"]),
			fmt.Sprintf("%.1f", float64(g.Bytes)/1e6), budget)
	}
	return t.print(e.out)
}

type groupsReleaseCmd struct {
	Pool  string   `help:"The pool." default:"default"`
	Group []string `arg:"" help:"The groups."`
}

// Run releases groups.
func (c *groupsReleaseCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	list := []client.GroupReleased{}
	for _, name := range c.Group {
		res, err := api.ReleaseGroup(ctx, c.Pool, name)
		if err != nil {
			return err
		}
		list = append(list, *res)
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"groups": list})
	}
	for _, g := range list {
		if g.Released {
			e.printf("%s is released, %s early\n", printable(g.Group), left(g.HeldUntil))
		} else {
			e.printf("%s was not held\n", printable(g.Group))
		}
	}
	return nil
}

type sessionsCmd struct {
	List sessionsListCmd `cmd:"" default:"withargs" help:"Show the sessions and their proxies."`
	Show sessionsShowCmd `cmd:"" help:"Show one session."`
	Move sessionsMoveCmd `cmd:"" help:"Send sessions to another proxy with their next lease."`
	End  sessionsEndCmd  `cmd:"" help:"Forget sessions; their live leases go on."`
}

type sessionsListCmd struct {
	Pool  string `help:"The pool." default:"default"`
	Proxy string `help:"Only those of a proxy: its id, or its first characters." placeholder:"ID"`
	Limit int    `help:"At most that many; 0 = all." default:"100"`
}

// Run lists sessions.
func (c *sessionsListCmd) Run(ctx context.Context, e *env) error {
	if c.Limit < 0 {
		return &app.UsageError{Text: "--limit must not be below 0"}
	}
	api, err := e.client()
	if err != nil {
		return err
	}
	f := client.SessionFilter{Pool: c.Pool}
	if c.Proxy != "" {
		ids, err := e.resolve(ctx, api, c.Pool, []string{c.Proxy})
		if err != nil {
			return err
		}
		f.Proxy = ids[0]
	}
	list := []client.Session{}
	for more := true; more && (c.Limit == 0 || len(list) < c.Limit); {
		f.Limit = 1000
		if c.Limit > 0 {
			f.Limit = min(1000, c.Limit-len(list))
		}
		page, cursor, err := api.Sessions(ctx, f)
		if err != nil {
			return err
		}
		list = append(list, page...)
		f.Cursor, more = cursor, cursor != ""
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"sessions": list, "cursor": f.Cursor})
	}
	if err := sessionTable(list).print(e.out); err != nil {
		return err
	}
	if f.Cursor != "" {
		e.printf("there are more: --limit 0 lists all\n")
	}
	return nil
}

func sessionTable(list []client.Session) *table {
	t := newTable("SESSION", "PROXY", "LEASES", "USED", "NEXT LEASE")
	for _, s := range list {
		next := "the same proxy"
		if s.Moving {
			next = "another proxy"
		}
		t.add(s.Session, s.Proxy[:min(8, len(s.Proxy))], strconv.Itoa(s.Leases), ago(s.LastUsedAt), next)
	}
	return t
}

type sessionsShowCmd struct {
	Pool string `help:"The pool." default:"default"`
	Key  string `arg:"" help:"The session's key."`
}

// Run shows a session.
func (c *sessionsShowCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	s, err := api.Session(ctx, c.Pool, c.Key)
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(s)
	}
	return sessionTable([]client.Session{*s}).print(e.out)
}

type sessionsMoveCmd struct {
	Pool string   `help:"The pool." default:"default"`
	Key  []string `arg:"" help:"The sessions' keys."`
}

// Run moves sessions.
func (c *sessionsMoveCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	list := []client.Session{}
	for _, key := range c.Key {
		s, err := api.MoveSession(ctx, c.Pool, key)
		if err != nil {
			return err
		}
		list = append(list, *s)
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"sessions": list})
	}
	for _, s := range list {
		e.printf("%s leaves proxy %s with its next lease\n", printable(s.Session), s.Proxy[:min(8, len(s.Proxy))])
	}
	return nil
}

type sessionsEndCmd struct {
	Pool string   `help:"The pool." default:"default"`
	Key  []string `arg:"" help:"The sessions' keys."`
}

// Run ends sessions.
func (c *sessionsEndCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	for _, key := range c.Key {
		if err := api.EndSession(ctx, c.Pool, key); err != nil {
			return err
		}
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"ended": c.Key})
	}
	e.printf("%d ended\n", len(c.Key))
	return nil
}

type auditCmd struct {
	Since time.Duration `help:"Only acts of the last time." placeholder:"DURATION"`
	Act   string        `help:"Only acts of a kind, such as proxies.patch." placeholder:"ACT"`
	Who   string        `help:"Only acts with the token of a name." placeholder:"NAME"`
	Limit int           `help:"At most that many." default:"50"`
}

// Run shows what operators did.
func (c *auditCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	f := client.AuditFilter{Act: c.Act, Who: c.Who, Limit: c.Limit}
	if c.Since > 0 {
		f.Since = time.Now().Add(-c.Since)
	}
	list, more, err := api.Audit(ctx, f)
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"audit": list, "cursor": more})
	}
	t := newTable("AT", "WHO", "FROM", "ACT", "POOL", "WHAT", "COUNT", "RESULT")
	for _, a := range list {
		who := a.Who
		if who == "" {
			who = "-"
		}
		t.add(a.At.Local().Format("2006-01-02 15:04:05"), who, a.Peer, a.Act, a.Pool, a.What, strconv.Itoa(a.Count), a.Result)
	}
	if err := t.print(e.out); err != nil {
		return err
	}
	if more != "" {
		e.printf("there are more: --limit or a filter shows them\n")
	}
	return nil
}
