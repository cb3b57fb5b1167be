package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Event is something that an operator may want to act on; the names are listed
// in the contract under GET /v1/events.
type Event struct {
	ID      int64     `json:"-"`
	At      time.Time `json:"at"`
	Event   string    `json:"event"`
	Pool    string    `json:"pool"`
	Subject string    `json:"subject"` // the group, source, target or worker that it is about
	Text    string    `json:"text"`
}

// maxEvent bounds a line of the stream.
const maxEvent = 1 << 20

// Events gives the events with an id above after, and then those that come,
// until the context ends or the stream breaks off, which is its last error.
func (c *Client) Events(ctx context.Context, after int64) iter.Seq2[Event, error] {
	return c.events(ctx, after, true)
}

// KeptEvents gives the events with an id above after that the daemon still has,
// oldest first.
func (c *Client) KeptEvents(ctx context.Context, after int64) ([]Event, error) {
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	list := []Event{}
	for e, err := range c.events(ctx, after, false) {
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

func (c *Client) events(ctx context.Context, after int64, follow bool) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		header := http.Header{}
		if after > 0 {
			header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
		}
		query := url.Values{}
		if !follow {
			query.Set("follow", "false")
		}
		res, err := c.open(ctx, call{name: "listen for events", method: http.MethodGet, path: []string{"v1", "events"}, query: query}, header)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer res.Body.Close() //nolint:errcheck // a stream that is left
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, maxEvent)
		e := Event{}
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "id":
				e.ID, err = strconv.ParseInt(value, 10, 64)
			case "data":
				err = json.Unmarshal([]byte(value), &e)
			case "": // the end of an event, or of a comment
				if e.ID > 0 && !yield(e, nil) {
					return
				}
				e = Event{}
			}
			if err != nil {
				yield(Event{}, fmt.Errorf("listen for events: the stream is not what this client expects: %w", err))
				return
			}
		}
		err = lines.Err()
		if err == nil && !follow {
			return // all were told
		}
		if err == nil {
			err = io.ErrUnexpectedEOF // the server stopped
		}
		yield(Event{}, c.unreachable(ctx, err))
	}
}

// open sends a call whose answer is a stream; the caller closes its body.
func (c *Client) open(ctx context.Context, r call, header http.Header) (*http.Response, error) {
	src := &source{}
	req, err := c.request(ctx, r, src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	maps.Copy(req.Header, header)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if res.StatusCode >= 300 {
		defer res.Body.Close() //nolint:errcheck // read by answer
		return nil, c.answer(ctx, r, res, nil)
	}
	return res, nil
}
