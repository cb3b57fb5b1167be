package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/webhook"
)

// feed is a list of events that grows.
type feed struct {
	mu   sync.Mutex
	list []keeper.Event
	more chan struct{}
}

func newFeed() *feed { return &feed{more: make(chan struct{})} }

func (f *feed) EventsAfter(n int64) ([]keeper.Event, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []keeper.Event
	for _, e := range f.list {
		if e.N > n {
			list = append(list, e)
		}
	}
	return list, f.more
}

func (f *feed) add(n int64, at pool.Time, name, subject string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, keeper.Event{N: n, At: at, Name: name, Pool: "default", Subject: subject, Text: "<what> happened"})
	close(f.more)
	f.more = make(chan struct{})
}

// got is what the receiver got.
type got struct {
	header http.Header
	body   string
}

func (g *got) subject(t *testing.T) string {
	t.Helper()
	var e struct{ Subject string }
	if err := json.Unmarshal([]byte(g.body), &e); err != nil {
		t.Fatal(err)
	}
	return e.Subject
}

// bench is a sender at work with a receiver.
type bench struct {
	t    *testing.T
	feed *feed
	got  chan got
	log  *syncLog
	stop func() // ends the sender and waits for it
}

// syncLog is a log that can be read while it is written.
type syncLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *syncLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *syncLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const secret = "s3cret-of-the-hook"

// start runs a sender against a receiver that answers what answer says.
func start(t *testing.T, change func(*webhook.Options), answer func(w http.ResponseWriter, try int)) *bench {
	t.Helper()
	b := &bench{t: t, feed: newFeed(), got: make(chan got, 100), log: &syncLog{}}
	try := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		try++
		answer(w, try)
		b.got <- got{r.Header, string(body)}
	}))
	t.Cleanup(server.Close)
	o := webhook.Options{
		URL: server.URL + "/hidden-path?token=hidden", Secret: secret, Backoff: time.Millisecond, Log: slog.New(slog.NewTextHandler(b.log, nil)),
		Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
	}
	if change != nil {
		change(&o)
	}
	s, err := webhook.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		s.Run(ctx, b.feed)
		close(done)
	}()
	b.stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(func() {
		b.stop()
		for _, hidden := range []string{"hidden", secret} {
			if strings.Contains(b.log.String(), hidden) {
				t.Errorf("the log holds %q:\n%s", hidden, b.log.String())
			}
		}
	})
	return b
}

func (b *bench) next() *got {
	b.t.Helper()
	select {
	case g := <-b.got:
		return &g
	case <-time.After(20 * time.Second):
		b.t.Fatal("nothing came in 20 s")
		return nil
	}
}

func takes(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusNoContent) }

func TestEventIsSignedAndSent(t *testing.T) {
	b := start(t, nil, takes)
	b.feed.add(1, 1_764_590_400_123, "budget_spent", "acme")
	g := b.next()
	want := `{"at":"2025-12-01T12:00:00.123Z","event":"budget_spent","pool":"default","subject":"acme","text":"\u003cwhat\u003e happened"}`
	if g.body != want {
		t.Errorf("got  %s\nwant %s", g.body, want)
	}
	h := g.header
	if h.Get("Hostler-Signature") != "v1="+webhook.Sign(secret, "1800000000", []byte(g.body)) || h.Get("Hostler-Timestamp") != "1800000000" {
		t.Errorf("signature %v", h)
	}
	if h.Get("Hostler-Event") != "budget_spent" || len(h.Get("Hostler-Delivery")) < 20 || h.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", h)
	}
}

// TestSignature is what docs/events.md tells receivers to compute.
func TestSignature(t *testing.T) {
	// printf '1800000000.{}' | openssl dgst -sha256 -hmac key
	const want = "7321475872b03ff21bdc2dfd86ea2d99ec29c479fbe4a77aa6acf4509505493f"
	if got := webhook.Sign("key", "1800000000", []byte("{}")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestEventIsTriedAgain(t *testing.T) {
	b := start(t, nil, func(w http.ResponseWriter, try int) {
		switch try {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			w.WriteHeader(http.StatusTooManyRequests)
		case 3:
			panic(http.ErrAbortHandler)
		}
	})
	b.feed.add(1, 1, "budget_spent", "acme")
	first := b.next()
	for try := 2; try <= 3; try++ {
		if g := b.next(); try != 3 && (g.body != first.body || g.header.Get("Hostler-Delivery") != first.header.Get("Hostler-Delivery")) {
			t.Errorf("try %d is another delivery: %v", try, g)
		}
	}
	b.feed.add(2, 2, "budget_spent", "other")
	if g := b.next(); g.subject(t) != "other" || g.header.Get("Hostler-Delivery") == first.header.Get("Hostler-Delivery") {
		t.Errorf("the next event: %v", g)
	}
}

func TestSenderGivesUp(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		tries  int
		log    string
	}{
		{"after so many tries", 500, 3, "given up"},
		{"at once when it is refused", 403, 1, "refused the event with 403"},
		{"at once at a redirect", 307, 1, "redirects are not followed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
			defer elsewhere.Close()
			b := start(t, func(o *webhook.Options) { o.Tries = 3 }, func(w http.ResponseWriter, try int) {
				w.Header().Set("Location", elsewhere.URL)
				if try <= tt.tries {
					w.WriteHeader(tt.status)
				}
			})
			b.feed.add(1, 1, "budget_spent", "acme")
			for range tt.tries {
				b.next()
			}
			b.feed.add(2, 2, "budget_spent", "acme") // no cooldown after what was not taken
			if g := b.next(); !strings.Contains(g.body, ".002Z") {
				t.Errorf("the next event: %s", g.body)
			}
			b.stop()
			if !strings.Contains(b.log.String(), tt.log) {
				t.Errorf("the log:\n%s", b.log.String())
			}
		})
	}
}

func TestFilterAndCooldown(t *testing.T) {
	const minute = 60_000
	b := start(t, func(o *webhook.Options) {
		o.Cooldown, o.Events = 10*time.Minute, []string{"budget_spent", "parser_suspect"}
	}, takes)
	b.feed.add(1, 1, "budget_warning", "acme")          // not wanted
	b.feed.add(2, 1, "budget_spent", "acme")            // a
	b.feed.add(3, 9*minute, "budget_spent", "acme")     // rests
	b.feed.add(4, 9*minute, "budget_spent", "other")    // b
	b.feed.add(5, 9*minute, "parser_suspect", "acme")   // c
	b.feed.add(6, 10*minute+1, "budget_spent", "acme")  // d
	b.feed.add(7, 10*minute+2, "budget_spent", "acme")  // rests
	b.feed.add(8, 100*minute, "parser_suspect", "last") // e
	var all []string
	for range 5 {
		g := b.next()
		all = append(all, g.header.Get("Hostler-Event")+" "+g.subject(t))
	}
	want := "[budget_spent acme budget_spent other parser_suspect acme budget_spent acme parser_suspect last]"
	if fmt.Sprint(all) != want {
		t.Errorf("got  %v\nwant %s", all, want)
	}
}

// TestLostEventsAreTold: numbers that were never seen.
func TestLostEventsAreTold(t *testing.T) {
	b := start(t, nil, takes)
	b.feed.add(1, 1, "budget_spent", "a")
	b.next()
	b.feed.add(42, 2, "budget_spent", "b")
	b.next()
	b.stop()
	if !strings.Contains(b.log.String(), "events=40") {
		t.Errorf("the log:\n%s", b.log.String())
	}
}

// TestStopEndsAWait: a receiver that is away does not hold the daemon.
func TestStopEndsAWait(t *testing.T) {
	b := start(t, func(o *webhook.Options) { o.Backoff = time.Hour }, func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusBadGateway) })
	b.feed.add(1, 1, "budget_spent", "a")
	b.next()
	b.stop() // hangs if the wait does not end
}

// TestUnreachableIsNotQuoted: the URL of a receiver that is away stays out of the log.
func TestUnreachableIsNotQuoted(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	address := closed.URL
	closed.Close()
	b := start(t, func(o *webhook.Options) { o.URL, o.Tries = address+"/hidden-path", 1 }, takes)
	b.feed.add(1, 1, "budget_spent", "a")
	deadline := time.Now().Add(20 * time.Second)
	for !strings.Contains(b.log.String(), "given up") {
		if time.Now().After(deadline) {
			t.Fatalf("not given up in 20 s; the log:\n%s", b.log.String())
		}
		time.Sleep(time.Millisecond) // a poll with a deadline
	}
}

func TestNewRefuses(t *testing.T) {
	for _, o := range []webhook.Options{
		{URL: "hooks.example/hidden"},
		{URL: "ftp://hidden.example"},
		{URL: "http://[hidden"},
		{URL: "https://u:hidden@%zz/"},
		{URL: "https://a.example", Events: []string{"no_such"}},
		{URL: "https://a.example", Cooldown: -1},
	} {
		if _, err := webhook.New(o); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
