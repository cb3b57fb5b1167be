package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/client"
)

type waitersCmd struct {
	Pool  string `help:"The pool." default:"default"`
	Limit int    `help:"At most that many lines." default:"50"`
}

// Run shows who waits.
func (c *waitersCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	list, err := api.Waiters(ctx, c.Pool, c.Limit)
	if err != nil {
		return err
	}
	if e.cli.JSON {
		return e.printJSON(list)
	}
	if list.Waiting == 0 {
		e.printf("nobody waits\n")
		return nil
	}
	t := newTable("TENANT", "TARGET", "SELECTOR", "WAITING", "OLDEST", "A NEWCOMER WAITS")
	for i := range list.Lines {
		l := &list.Lines[i]
		estimate := "-"
		if l.EstimateMS != nil {
			estimate = brief(time.Duration(*l.EstimateMS) * time.Millisecond)
		}
		t.add(l.Tenant, l.Target, selectorText(l), strconv.Itoa(l.Count), brief(time.Duration(l.OldestMS)*time.Millisecond), estimate)
	}
	if err := t.print(e.out); err != nil {
		return err
	}
	if shown := len(list.Lines); shown == c.Limit {
		e.printf("%d wait in all; --limit shows more lines\n", list.Waiting)
	}
	return nil
}

// brief prints a duration of less than a minute with a digit after the point.
func brief(d time.Duration) string {
	if d < time.Minute {
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	}
	return short(d)
}

// selectorText prints what is selected, in the words of an acquire.
func selectorText(l *client.WaiterLine) string {
	var parts []string
	for _, p := range [][2]string{{"region", l.Selector.Region}, {"scheme", l.Selector.Scheme}, {"group", l.Selector.Group}, {"session", l.Session}} {
		if p[1] != "" {
			parts = append(parts, p[0]+"="+p[1])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(l.Selector.Labels)) {
		parts = append(parts, k+"="+l.Selector.Labels[k])
	}
	if len(parts) == 0 {
		return "any"
	}
	return strings.Join(parts, " ")
}
