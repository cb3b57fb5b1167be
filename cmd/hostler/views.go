package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/hostler-proxy/hostler/client"
)

type poolsCmd struct{}

// Run shows the pools.
func (c *poolsCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	list, err := api.Pools(ctx)
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"pools": list})
	}
	t := newTable("POOL", "PROXIES", "READY", "LEASED", "FULL", "NEW", "PROBATION", "ACTIVE", "COOLING", "SUSPENDED", "DRAINING", "DISABLED", "EXPIRED")
	for _, p := range list {
		cells := []string{p.Name}
		for _, n := range []int{p.Proxies, p.Ready, p.Leased, p.Full, p.New, p.Probation, p.Active, p.Cooling, p.Suspended, p.Draining, p.Disabled, p.Expired} {
			cells = append(cells, strconv.Itoa(n))
		}
		t.add(cells...)
	}
	return t.print(e.out)
}

type leasesListCmd struct {
	Pool  string `help:"The pool." default:"default"`
	Limit int    `help:"At most that many." default:"100"`
}

// Run shows the live leases.
func (c *leasesListCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	list, err := api.Leases(ctx, c.Pool, c.Limit)
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"leases": list})
	}
	return leaseTable(list).print(e.out)
}

func leaseTable(list []client.LiveLease) *table {
	t := newTable("LEASE", "WORKER", "TARGET", "PROXY", "HELD", "LEFT", "REQUEST")
	for _, l := range list {
		t.add(l.Lease, l.Worker, l.Target, l.Proxy[:8], ago(&l.GrantedAt), left(&l.ExpiresAt), l.Request.URL)
	}
	return t
}

type workersCmd struct {
	Pool string `help:"The pool." default:"default"`
}

// Run shows the workers.
func (c *workersCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	list, err := api.Workers(ctx, c.Pool)
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"workers": list})
	}
	t := newTable("WORKER", "TENANT", "SEEN", "LEASES", "GRANTED", "REPORTED", "RELEASED", "EXPIRED", "10 MIN", "HOUR")
	for _, w := range list {
		t.add(w.Name, w.Tenant, ago(&w.LastSeenAt), strconv.Itoa(w.Leases), fmt.Sprint(w.Granted), fmt.Sprint(w.Reported),
			fmt.Sprint(w.Released), fmt.Sprint(w.Expired), percent(w.Windows.Ten.Rate), percent(w.Windows.Hour.Rate))
	}
	return t.print(e.out)
}

type targetsCmd struct {
	Pool string `help:"The pool." default:"default"`
}

// Run shows the targets.
func (c *targetsCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	list, err := api.Targets(ctx, c.Pool)
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"targets": list})
	}
	t := newTable("TARGET", "VERDICT", "IN FLIGHT", "10 MIN", "OF", "HOUR", "429", "403", "TIMEOUTS", "REUSE", "RESTING")
	for _, x := range list {
		w := x.Windows
		t.add(x.Target, x.Verdict, strconv.Itoa(x.InFlight), percent(w.Ten.Rate), fmt.Sprint(w.Ten.Total), percent(w.Hour.Rate),
			fmt.Sprint(w.Ten.S429), fmt.Sprint(w.Ten.S403), fmt.Sprint(w.Ten.Timeouts),
			(time.Duration(x.ReuseIntervalMS) * time.Millisecond).String(), strconv.Itoa(x.Resting["pair_cooling"]))
	}
	return t.print(e.out)
}

type failuresCmd struct {
	Pool   string        `help:"The pool." default:"default"`
	Worker string        `help:"Only those of a worker." placeholder:"NAME"`
	Proxy  string        `help:"Only those through a proxy (whole id)." placeholder:"ID"`
	Target string        `help:"Only those on a target." placeholder:"NAME"`
	Class  string        `help:"Only those of a class." placeholder:"CLASS"`
	Final  bool          `help:"Only requests that were given up."`
	Since  time.Duration `help:"Only those of the last time." placeholder:"DURATION"`
	Limit  int           `help:"At most that many." default:"50"`
}

// Run shows failure records.
func (c *failuresCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	f := client.FailureFilter{Pool: c.Pool, Worker: c.Worker, Proxy: c.Proxy, Target: c.Target, Class: c.Class, Limit: c.Limit}
	if c.Final {
		f.Final = &c.Final
	}
	if c.Since > 0 {
		f.Since = time.Now().Add(-c.Since)
	}
	list, more, err := api.Failures(ctx, f)
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(map[string]any{"failures": list, "cursor": more})
	}
	if err := failureTable(list).print(e.out); err != nil {
		return err
	}
	if more != "" {
		e.printf("there are more: --limit or a filter shows them\n")
	}
	return nil
}

func failureTable(list []client.Failure) *table {
	t := newTable("AT", "CLASS", "FAULT", "TARGET", "PROXY", "WORKER", "PHASE", "ERROR", "STATUS", "TRY", "REQUEST")
	for _, f := range list {
		proxy := f.Proxy
		if len(proxy) > 8 {
			proxy = proxy[:8]
		}
		request := f.Request.URL
		if f.Final {
			request = "given up: " + f.Reason
		}
		status := ""
		if f.Status != 0 {
			status = strconv.Itoa(f.Status)
		}
		t.add(f.At.Local().Format("15:04:05"), f.Class, f.Fault, f.Target, proxy, f.Worker, f.Phase, f.Error, status, strconv.Itoa(f.Attempt), request)
	}
	return t
}
