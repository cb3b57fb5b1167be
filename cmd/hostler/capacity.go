package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/hostler-proxy/hostler/client"
)

type capacityCmd struct {
	Target  string         `help:"The site: a name, a host, or a URL." required:"" placeholder:"SITE"`
	Pool    string         `help:"The pool." default:"default"`
	Proxies *int           `help:"What if there were so many static proxies?" placeholder:"N"`
	Reuse   *time.Duration `help:"What if the reuse interval were this?" placeholder:"DURATION"`
	Latency *time.Duration `help:"What if a lease were held for this?" placeholder:"DURATION"`
}

// Run tells what a pool can do for a target.
func (c *capacityCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	got, err := api.Capacity(ctx, c.Pool, c.Target, client.WhatIf{Proxies: c.Proxies, Reuse: c.Reuse, Latency: c.Latency})
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(got)
	}
	e.printf("%s\n\n", capacityText(got))
	t := newTable("PROXIES", "LEASES AT ONCE", "PER PROXY", "RPS", "AT ONCE", "WORKERS", "LIMITED BY", "NEXT PROXY")
	t.add(strconv.Itoa(got.AvailableProxies), strconv.Itoa(got.TotalConcurrency), decimal(got.ConcurrencyPerProxy), decimal(got.RPS),
		strconv.Itoa(got.Concurrency), strconv.Itoa(got.Workers), got.LimitedBy, nextText(got.NextProxyInMS))
	return t.print(e.out)
}

// capacityText explains a capacity in a sentence or two.
func capacityText(c *client.Capacity) string {
	if c.AvailableProxies == 0 {
		return fmt.Sprintf("No proxy of the pool %s serves %s now.", c.From.Pool, c.From.Target)
	}
	latency := time.Duration(c.From.LatencyMS) * time.Millisecond
	text := plural(c.AvailableProxies, "proxy", "proxies") + " for " + c.From.Target
	if c.From.ReuseIntervalMS > 0 {
		text += ", each once in " + (time.Duration(c.From.ReuseIntervalMS) * time.Millisecond).String()
	}
	text += ", leases held " + latency.String()
	if !c.From.LatencyMeasured {
		text += " (a guess: none came back yet)"
	}
	text += fmt.Sprintf(": they carry %s requests a second, %d at once; more than %s would only wait. ",
		decimal(c.RPS), c.Concurrency, plural(c.Workers, "worker", "workers"))
	switch c.LimitedBy {
	case "reuse":
		text += "The reuse interval bounds it: more proxies or a shorter interval carry more."
	case "target":
		text += "What the target bears bounds it: more proxies carry no more."
	case "workers":
		text += "The workers bound it: they declared fewer requests at once than the proxies carry."
	default:
		text += "The proxies bound it: more of them, higher caps or shorter requests carry more."
	}
	return text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

func nextText(ms *int64) string {
	switch {
	case ms == nil:
		return "not known"
	case *ms == 0:
		return "now"
	default:
		return "in " + brief(time.Duration(*ms)*time.Millisecond)
	}
}
