package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
	"github.com/hostler-proxy/hostler/internal/ramp"
)

type rampCmd struct {
	Target        string        `help:"The page to ask for, http or https." required:"" placeholder:"URL"`
	Pool          string        `help:"The pool." default:"default"`
	Start         int           `help:"Requests at once in the first step." default:"1"`
	Max           int           `help:"The most requests at once." default:"100" placeholder:"N"`
	Step          time.Duration `help:"Length of a step." default:"30s"`
	Stop429       portion       `help:"Stop when more than this share is answered with 429." name:"stop-429" default:"1%"`
	StopTimeout   portion       `help:"Stop when more than this share times out." default:"5%"`
	StopValidDrop portion       `help:"Stop when this much of the first step's share of valid pages is lost." default:"10%"`
	MustContain   string        `help:"Text that a valid page holds." placeholder:"TEXT"`
	Plot          string        `help:"Draw the curve into an SVG file." type:"path" placeholder:"FILE.svg"`
	Apply         bool          `help:"Write the last good concurrency as the target's max_concurrency."`
}

// portion is a share as people write it: 5% or 0.05.
type portion float64

// UnmarshalText reads a share.
func (p *portion) UnmarshalText(b []byte) error {
	text, ok := strings.CutSuffix(strings.TrimSpace(string(b)), "%")
	x, err := strconv.ParseFloat(text, 64)
	if ok {
		x /= 100
	}
	if err != nil || !(x >= 0 && x <= 1) {
		return fmt.Errorf("%q is not a share such as 5%%", string(b))
	}
	*p = portion(x)
	return nil
}

// Run finds out how many requests at once a target bears.
func (c *rampCmd) Run(ctx context.Context, e *env) error {
	if err := c.check(); err != nil {
		return err
	}
	api, err := e.client()
	if err != nil {
		return err
	}
	o := ramp.Options{
		API: api, Pool: c.Pool, URL: c.Target, Start: c.Start, Max: c.Max, Step: c.Step, MustContain: c.MustContain, Worker: "ramp",
		Bounds: ramp.Bounds{S429: float64(c.Stop429), Timeouts: float64(c.StopTimeout), ValidDrop: float64(c.StopValidDrop)},
	}
	if !e.cli.JSON {
		e.showRamp(&o)
	}
	res, err := ramp.Run(ctx, o)
	if err != nil {
		return err
	}
	return c.finish(context.WithoutCancel(ctx), e, api, &res)
}

func (c *rampCmd) check() error {
	u, err := url.Parse(c.Target)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return &app.UsageError{Text: "--target must be the URL of a page, such as https://shop.example/item/1"}
	case u.User != nil:
		return &app.UsageError{Text: "--target holds credentials; they would be sent through every proxy"}
	case c.Start < 1 || c.Max < c.Start || c.Max > 100_000:
		return &app.UsageError{Text: "--start must be at least 1 and --max at least that, 100000 at the most"}
	case c.Step < 100*time.Millisecond || c.Step > time.Hour:
		return &app.UsageError{Text: "--step must be 100ms to 1h"}
	}
	return nil
}

// showRamp prints each step, and on a terminal the one under way.
func (e *env) showRamp(o *ramp.Options) {
	row := func(cells ...any) string {
		return fmt.Sprintf("%8v %8v %8v %8v %8v %8v %8v %8v", cells...)
	}
	e.printf("%s\n", row("AT ONCE", "RPS", "OK", "429", "TIMEOUT", "VALID", "P50 MS", "P95 MS"))
	text := func(s *ramp.Step) string {
		of := func(n, all int) string {
			if all == 0 {
				return "-"
			}
			return decimal(100*float64(n)/float64(all)) + "%"
		}
		return row(s.Concurrency, decimal(s.RPS), of(s.OK, s.Requests), of(s.S429, s.Requests), of(s.Timeouts, s.Requests),
			of(s.Valid, s.Answers), s.P50MS, s.P95MS)
	}
	live := terminal(e.out)
	if live {
		o.Live = func(s ramp.Step, left time.Duration) { e.printf("\r%s  %s left\x1b[K", text(&s), brief(left)) }
	}
	o.Done = func(s ramp.Step) {
		if live {
			e.printf("\r\x1b[K")
		}
		note := ""
		if s.Stop != ramp.Good {
			note = "  stop: " + string(s.Stop)
		}
		e.printf("%s%s\n", text(&s), note)
	}
}

// finish applies, draws and prints the result.
func (c *rampCmd) finish(ctx context.Context, e *env, api *client.Client, res *ramp.Result) error {
	if c.Plot != "" {
		if err := os.WriteFile(c.Plot, []byte(ramp.Plot(res)), 0o644); err != nil { //nolint:gosec // a picture for others to see
			return fmt.Errorf("draw the curve: %w", err)
		}
	}
	if c.Apply && res.LastGood != nil {
		_, err := api.PutPool(ctx, c.Pool, map[string]any{
			"targets": map[string]any{res.Target: map[string]any{"max_concurrency": res.LastGood.Concurrency}},
		})
		if err != nil {
			return fmt.Errorf("apply: %w", err)
		}
		res.Applied = true
	}
	if e.cli.JSON {
		if err := e.printJSON(res); err != nil {
			return err
		}
	} else {
		e.printf("\n%s\n", rampText(res, c.Apply))
	}
	if res.LastGood == nil {
		return errNotMet
	}
	return nil
}

var rampStops = map[ramp.Stop]string{
	ramp.Stop429:      "too many requests were answered with 429",
	ramp.StopTimeouts: "too many requests timed out",
	ramp.StopValid:    "too few pages were valid",
	ramp.StopFailures: "more than half of the requests failed",
	ramp.StopPool:     "the pool lent no more proxies at once: more of them, higher caps or a shorter reuse interval would show more of the target",
	ramp.StopMax:      "--max was reached and was good: the target may bear more",
	ramp.StopEnded:    "it was interrupted",
}

// rampText says what was found.
func rampText(r *ramp.Result, apply bool) string {
	if r.LastGood == nil {
		return "No step was good: " + rampStops[r.StoppedBy] + "."
	}
	text := fmt.Sprintf("Last good: %d at once on %s, %s a proxy, %s requests a second. The ramp ended because %s.",
		r.LastGood.Concurrency, r.Target, decimal(r.LastGood.PerProxy), decimal(r.LastGood.RPS), rampStops[r.StoppedBy])
	switch {
	case r.Applied:
		text += fmt.Sprintf("\nWritten: targets.%s.max_concurrency = %d.", r.Target, r.LastGood.Concurrency)
	case !apply:
		text += "\nNothing was written; --apply sets it as the target's max_concurrency."
	}
	return text
}
