package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/app"
)

// TestEventsCommand spends a budget and looks at the event.
func TestEventsCommand(t *testing.T) {
	a, err := app.New(t.Context(), app.Options{
		Listen: "127.0.0.1:0", Store: filepath.Join(t.TempDir(), "h.db"), Log: slog.New(slog.DiscardHandler), RecoverEvery: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	a.Start(t.Context())
	t.Cleanup(func() { _ = a.Stop(context.Background()) })
	hostler := func(args ...string) string {
		var out, errs bytes.Buffer
		if code := run(append([]string{"--server", a.URL()}, args...), nil, &out, &errs); code != exitDone {
			t.Fatalf("%v: exit %d: %s", args, code, &errs)
		}
		return out.String()
	}
	if out := hostler("events"); !strings.Contains(out, "nothing to show") {
		t.Errorf("before anything happened: %s", out)
	}
	spendBudget(t, a.URL())
	deadline := time.Now().Add(20 * time.Second)
	for !strings.Contains(hostler("events"), "budget_spent") {
		if time.Now().After(deadline) {
			t.Fatal("no event in 20 s")
		}
	}
	var list struct {
		Events []struct {
			N int64
			client.Event
		}
	}
	if err := json.Unmarshal([]byte(hostler("events", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Events) == 0 || list.Events[0].N != 1 || list.Events[0].Subject != "ac?me" {
		t.Errorf("events %+v", list.Events)
	}
	if out := hostler("events", "--after", "1000000"); strings.Contains(out, "nothing") {
		t.Errorf("a number of a daemon that ran before shows nothing: %s", out)
	}
}

func spendBudget(t *testing.T, url string) {
	t.Helper()
	ctx := t.Context()
	api, err := client.New(url)
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = api.PutPool(ctx, "default", map[string]any{"groups": map[string]any{"ac?me": map[string]any{"price_per_request": 1, "budget_day": 1}}})
	must(err)
	_, err = api.Import(ctx, strings.NewReader("10.0.0.1:80"), client.ImportOptions{Group: "ac?me", AllowSpecial: true})
	must(err)
	got, err := api.Acquire(ctx, client.AcquireRequest{Target: "shop.example"})
	must(err)
	_, err = api.Report(ctx, got.Leases[0].ID, client.Facts{Phase: "body", Status: 200})
	must(err)
}

// TestEventsFollow ends when the daemon stops, with the code of a server that is away.
func TestEventsFollow(t *testing.T) {
	a, err := app.New(t.Context(), app.Options{
		Listen: "127.0.0.1:0", Store: filepath.Join(t.TempDir(), "h.db"), Log: slog.New(slog.DiscardHandler), RecoverEvery: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	a.Start(t.Context())
	t.Cleanup(func() { _ = a.Stop(context.Background()) })
	out, lines := newLines()
	code := make(chan int, 1)
	go func() {
		code <- run([]string{"--server", a.URL(), "--json", "events", "--follow"}, nil, out, &bytes.Buffer{})
	}()
	spendBudget(t, a.URL())
	select {
	case line := <-lines:
		if !strings.HasPrefix(line, `{"n":1,"at":"`) || !strings.Contains(line, `"event":"budget_`) {
			t.Errorf("line %s", line)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no line in 20 s")
	}
	_ = a.Stop(context.Background())
	if got := <-code; got != exitUnreachable {
		t.Errorf("exit %d", got)
	}
}

// newLines gives a writer, and what is written to it.
func newLines() (chanWriter, chan string) {
	lines := make(chan string, 100)
	return lines, lines
}

type chanWriter chan string

func (w chanWriter) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}
