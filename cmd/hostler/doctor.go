package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
)

type doctorCmd struct{}

// How far the clocks of daemon and client may be apart.
const (
	someSkew = 5 * time.Second
	muchSkew = time.Minute
)

// Run looks for what is wrong; it succeeds unless a check failed.
func (c *doctorCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	asked := time.Now()
	found, err := api.Doctor(ctx)
	took := time.Since(asked)
	if err != nil {
		server := client.Check{Name: "server", Status: "fail", Text: err.Error(), Hint: "start it with hostler serve, or name another with --server"}
		if !errors.Is(err, client.ErrUnreachable) {
			server.Hint = "see whether the token is an operator's or a viewer's, and whether this is a Hostler server of this version"
		}
		return errors.Join(e.printChecks([]client.Check{server}), err)
	}
	checks := []client.Check{
		{Name: "server", Status: "ok", Text: fmt.Sprintf("%s answered in %s", api.BaseURL(), took.Round(time.Millisecond))},
		versionCheck(found.Version, app.Version()), skewCheck(found.At.Sub(asked.Add(took)), took),
	}
	sources, err := api.SourceChecks(ctx)
	if err != nil {
		sources = []client.Check{{Name: "sources", Status: "fail", Text: err.Error(), Hint: "see the daemon's log"}}
	}
	checks = append(append(checks, found.Checks...), sources...)
	if err := e.printChecks(checks); err != nil {
		return err
	}
	for _, check := range checks {
		if check.Status == "fail" {
			return errNotMet
		}
	}
	return nil
}

func versionCheck(server, own string) client.Check {
	if server == own {
		return client.Check{Name: "version", Status: "ok", Text: "daemon and client are " + own}
	}
	return client.Check{
		Name: "version", Status: "warn", Text: fmt.Sprintf("the daemon is %s, this client is %s", server, own), Hint: "use the same version of both",
	}
}

// skewCheck judges how far the daemon's clock is from ours; the way of the
// answer makes it uncertain.
func skewCheck(skew, uncertain time.Duration) client.Check {
	c := client.Check{Name: "clocks", Status: "ok", Text: "the daemon's and this machine's agree"}
	off := max(skew.Abs()-uncertain, 0)
	if off <= someSkew {
		return c
	}
	where := "behind"
	if skew > 0 {
		where = "ahead of"
	}
	c.Status, c.Text = "warn", fmt.Sprintf("the daemon's is %s %s this machine's", off.Round(time.Millisecond), where)
	c.Hint = "let both be set by NTP: times that the daemon shows are not this machine's"
	if off > muchSkew {
		c.Status = "fail"
	}
	return c
}

func (e *env) printChecks(checks []client.Check) error {
	if e.cli.JSON {
		return e.printJSON(map[string]any{"checks": checks})
	}
	count := map[string]int{}
	for _, c := range checks {
		count[c.Status]++
		e.printf("%-4s  %s: %s\n", printable(c.Status), printable(c.Name), printable(c.Text))
		if c.Hint != "" {
			e.printf("      -> %s\n", printable(c.Hint))
		}
	}
	e.printf("%d ok, %d to look at, %d failed\n", count["ok"], count["warn"], count["fail"])
	return nil
}
