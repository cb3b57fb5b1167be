package lab

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"
)

// patience is how long tests wait for what must happen.
const patience = 10 * time.Second

// clock is a lab's clock that stands still until it is moved.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	return c.at
}

func start(t *testing.T, o Options) *Lab {
	t.Helper()
	l, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// get fetches a page of a target through a proxy under an attempt's name.
func get(ctx context.Context, l *Lab, p *Proxy, target, attempt string, total time.Duration) Outcome {
	return Fetch(ctx, FetchRequest{
		Proxy: p.URL(), URL: l.target(target).URL + "/" + attempt, RootCAs: l.CertPool(),
		Header: http.Header{AttemptHeader: {attempt}}, Connect: total, First: total, Total: total,
	})
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(limit) {
			t.Fatalf("not within %s: %s", patience, what)
		}
		pause(t.Context(), 2*time.Millisecond)
	}
}

// expect fails the test if an outcome is not of a phase, a status and one of the
// errors.
func expect(t *testing.T, name string, o Outcome, phase string, status int, errs ...string) {
	t.Helper()
	for _, e := range errs {
		if o.Phase == phase && o.Status == status && o.Error == e {
			return
		}
	}
	t.Errorf("%s: phase %q, status %d, error %q; want %q, %d, one of %q", name, o.Phase, o.Status, o.Error, phase, status, errs)
}
