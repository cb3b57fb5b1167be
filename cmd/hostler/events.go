package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/hostler-proxy/hostler/client"
)

type eventsCmd struct {
	Follow bool  `help:"Stay, and show events as they come." short:"f"`
	After  int64 `help:"Only events with a larger number." placeholder:"N"`
}

// Run shows events: those that the daemon still has, and with --follow those that come.
func (c *eventsCmd) Run(ctx context.Context, e *env) error {
	api, err := e.client()
	if err != nil {
		return err
	}
	if c.Follow {
		return c.follow(ctx, e, api)
	}
	list, err := api.KeptEvents(ctx, c.After)
	if err != nil {
		return err
	}
	if e.cli.JSON {
		out := []numbered{}
		for _, x := range list {
			out = append(out, numbered{x.ID, x})
		}
		return e.printJSON(map[string]any{"events": out})
	}
	t := newTable("N", "AT", "EVENT", "POOL", "SUBJECT", "TEXT")
	for _, x := range list {
		t.add(eventCells(&x)...)
	}
	return t.print(e.out)
}

// follow prints a line for each event, with --json an object, until it is interrupted.
func (c *eventsCmd) follow(ctx context.Context, e *env, api *client.Client) error {
	lines := json.NewEncoder(e.out)
	for x, err := range api.Events(ctx, c.After) {
		switch {
		case errors.Is(err, context.Canceled):
			return nil
		case err != nil:
			return err
		case e.cli.JSON:
			err = lines.Encode(numbered{x.ID, x})
		default:
			cells := eventCells(&x)
			for i := range cells {
				cells[i] = printable(cells[i])
			}
			e.printf("%s  %s  %s  %s/%s  %s\n", cells[0], cells[1], cells[2], cells[3], cells[4], cells[5])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// numbered is an event with its number, which --after takes.
type numbered struct {
	N int64 `json:"n"`
	client.Event
}

func eventCells(x *client.Event) []string {
	return []string{strconv.FormatInt(x.ID, 10), x.At.Local().Format("2006-01-02 15:04:05"), x.Event, x.Pool, x.Subject, x.Text}
}
