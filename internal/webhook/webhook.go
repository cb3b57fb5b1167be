// Package webhook sends events to an operator's HTTP endpoint: signed, one after
// the other, tried again while the receiver is away. docs/events.md is its
// contract.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/pool"
)

// Options make a sender.
type Options struct {
	// URL is where events go. Its path and query may be secrets: neither is ever
	// logged, nor quoted in an error.
	URL string
	// Secret signs what is sent; "" = unsigned. It is never logged.
	Secret string
	// Events are the names to send; none = all.
	Events []string
	// Cooldown is how long further events of one name, pool and subject are left
	// out after one was sent, by the events' own times.
	Cooldown time.Duration
	// Tries is how often one event is tried; 8 if 0. Backoff is the wait after the
	// first failure, which doubles to five minutes; 1 s if 0.
	Tries   int
	Backoff time.Duration
	// Timeout bounds one try; 10 s if 0.
	Timeout time.Duration
	Log     *slog.Logger
	// Now is the clock of signatures.
	Now func() time.Time
}

// maxBackoff bounds the wait between two tries.
const maxBackoff = 5 * time.Minute

// Sender sends events. Its queue is the keeper's memory of the newest events:
// what falls out of that while the receiver is away is lost, and said so.
type Sender struct {
	o      Options
	host   string
	client *http.Client
	sent   map[[3]string]pool.Time // when the last one was sent, by its own time
}

// New checks the options. Its errors never quote the URL or the secret.
func New(o Options) (*Sender, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("must be a URL such as https://hooks.example/hostler")
	}
	for _, name := range o.Events {
		if !slices.Contains(keeper.EventNames(), name) {
			return nil, fmt.Errorf("%q is no event; there are: %s", name, strings.Join(keeper.EventNames(), ", "))
		}
	}
	if o.Cooldown < 0 || o.Cooldown > 7*24*time.Hour {
		return nil, errors.New("the cooldown must be 0 to 7 days")
	}
	setDefault(&o.Tries, 8)
	setDefault(&o.Backoff, time.Second)
	setDefault(&o.Timeout, 10*time.Second)
	return &Sender{
		o: o, host: u.Host, sent: map[[3]string]pool.Time{},
		client: &http.Client{
			// Straight to the receiver, whatever proxy the environment names: it may be one of those that are lent.
			Transport:     &http.Transport{MaxIdleConns: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // signature and body go nowhere else
		},
	}, nil
}

func setDefault[T comparable](to *T, v T) {
	var zero T
	if *to == zero {
		*to = v
	}
}

// Source gives the kept events with a number above n, oldest first, and a channel
// that is closed when there are more.
type Source interface {
	EventsAfter(n int64) ([]keeper.Event, <-chan struct{})
}

// Run sends events as they come until ctx ends. What is not sent by then is lost.
func (s *Sender) Run(ctx context.Context, from Source) {
	defer s.client.CloseIdleConnections()
	last := int64(0)
	for {
		list, more := from.EventsAfter(last)
		for i := range list {
			e := &list[i]
			if lost := e.N - last - 1; lost > 0 {
				s.o.Log.WarnContext(ctx, "events were lost: the webhook's receiver is too slow or away", "receiver", s.host, "events", lost)
			}
			last = e.N
			if s.wanted(e) && s.deliver(ctx, e) {
				s.sent[subjectOf(e)] = e.At
			}
			if ctx.Err() != nil {
				return
			}
			if i%100 == 99 {
				break // a long delivery may have let others fall out: look again
			}
		}
		if len(list) > 0 {
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

// wanted says whether an event is to be sent, by its name and the cooldown.
func (s *Sender) wanted(e *keeper.Event) bool {
	if len(s.o.Events) > 0 && !slices.Contains(s.o.Events, e.Name) {
		return false
	}
	for key, at := range s.sent {
		if e.At.Sub(at) >= s.o.Cooldown {
			delete(s.sent, key)
		}
	}
	_, resting := s.sent[subjectOf(e)]
	return !resting
}

func subjectOf(e *keeper.Event) [3]string { return [3]string{e.Name, e.Pool, e.Subject} }

// deliver tries until the receiver takes the event, refuses it for good, or the
// tries are used up; it says whether it was taken.
func (s *Sender) deliver(ctx context.Context, e *keeper.Event) bool {
	body, err := json.Marshal(e)
	if err != nil {
		s.o.Log.ErrorContext(ctx, "an event cannot be written", "event", e.Name, "error", err)
		return false
	}
	id := rand.Text()
	wait := s.o.Backoff
	for try := 1; ; try++ {
		again, err := s.try(ctx, id, e.Name, body)
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		case !again || try >= s.o.Tries:
			s.o.Log.ErrorContext(ctx, "the webhook was given up for an event", "event", e.Name, "receiver", s.host, "tries", try, "error", err)
			return false
		}
		s.o.Log.WarnContext(ctx, "the webhook failed; it is tried again", "event", e.Name, "receiver", s.host, "try", try, "wait", wait, "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		wait = min(2*wait, maxBackoff)
	}
}

// try sends once; again says whether another try may do better.
func (s *Sender) try(ctx context.Context, id, event string, body []byte) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.o.URL, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("the request cannot be built") // the cause quotes the URL
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "hostler")
	req.Header.Set("Hostler-Event", event)
	req.Header.Set("Hostler-Delivery", id)
	if s.o.Secret != "" {
		at := strconv.FormatInt(s.o.Now().Unix(), 10)
		req.Header.Set("Hostler-Timestamp", at)
		req.Header.Set("Hostler-Signature", "v1="+Sign(s.o.Secret, at, body))
	}
	res, err := s.client.Do(req)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the URL
		}
		return true, err
	}
	defer res.Body.Close()                                       //nolint:errcheck // only read
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection can be used again
	switch {
	case res.StatusCode < 300:
		return false, nil
	case res.StatusCode >= 500, slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}, res.StatusCode):
		return true, fmt.Errorf("the receiver answered %d", res.StatusCode)
	case res.StatusCode < 400:
		return false, fmt.Errorf("the receiver answered %d: redirects are not followed, name the final URL", res.StatusCode)
	default:
		return false, fmt.Errorf("the receiver refused the event with %d", res.StatusCode)
	}
}

// Sign is the signature of a body sent at a time (seconds since 1970, as text):
// the hexadecimal HMAC-SHA256 of "TIME.BODY".
func Sign(secret, at string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, at+".") // a hash takes everything
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
