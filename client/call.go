package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// call is one call of the API.
type call struct {
	name   string // in errors: paths hold lease ids, which are secrets
	method string
	path   []string // segments, not escaped
	query  url.Values
	header http.Header
	body   any // nil, an io.Reader that goes out as it is, or what becomes JSON
	// wait is how long the server may take on top of the timeout; negative = for ever.
	wait time.Duration
	// list says that the answer may be long.
	list bool
}

// Bounds of answers in memory.
const (
	maxAnswer = 16 << 20
	maxList   = 256 << 20
)

// do sends a call and decodes its answer: JSON into a struct, text into a
// *string, nothing into nil.
func (c *Client) do(ctx context.Context, r call, into any) error {
	bounded := ctx
	if c.timeout > 0 && r.wait >= 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, c.timeout+r.wait)
		defer cancel()
	}
	src := &source{}
	req, err := c.request(bounded, r, src)
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		if cause := src.failed(); cause != nil {
			return fmt.Errorf("%s: read what is to be sent: %w", r.name, cause)
		}
		return c.unreachable(ctx, err)
	}
	defer res.Body.Close() //nolint:errcheck // read to its end or its bound below
	return c.answer(ctx, r, res, into)
}

func (c *Client) answer(ctx context.Context, r call, res *http.Response, into any) error {
	bound := int64(maxAnswer)
	if r.list {
		bound = maxList
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, bound+1))
	switch {
	case err != nil:
		return c.unreachable(ctx, err)
	case int64(len(raw)) > bound:
		return fmt.Errorf("%s: the answer is larger than %d bytes", r.name, bound)
	case res.StatusCode >= 300:
		return c.problem(res, raw)
	}
	switch to := into.(type) {
	case nil:
		return nil
	case *string:
		*to = string(raw)
		return nil
	}
	if kind := mediaOf(res); kind != "application/json" {
		return fmt.Errorf("%s: the answer is %q and not JSON: is this a Hostler server?", r.name, kind)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: the answer is not what this client expects: %w", r.name, err)
	}
	return nil
}

func mediaOf(res *http.Response) string {
	media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	return strings.TrimSpace(media)
}

// request builds the HTTP request; src takes the place of a body that is read.
func (c *Client) request(ctx context.Context, r call, src *source) (*http.Request, error) {
	u, err := c.address(r)
	if err != nil {
		return nil, err
	}
	var body io.Reader
	kind := ""
	switch b := r.body.(type) {
	case nil:
	case *bytes.Reader, *strings.Reader:
		body, kind = b.(io.Reader), "text/plain; charset=utf-8" // their length is known
	case io.Reader:
		src.r = b
		body, kind = src, "text/plain; charset=utf-8"
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		body, kind = bytes.NewReader(raw), "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, r.method, u, body)
	if err != nil {
		return nil, errors.New("the request cannot be built")
	}
	maps.Copy(req.Header, r.header)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// address joins the base URL and the call's path. Each segment stays one,
// whatever it holds; those that servers take for directions are refused.
func (c *Client) address(r call) (string, error) {
	u := *c.base
	plain, escaped := strings.TrimRight(u.Path, "/"), strings.TrimRight(u.EscapedPath(), "/")
	for _, s := range r.path {
		if s == "" || s == "." || s == ".." {
			return "", fmt.Errorf("%q cannot be a name", s)
		}
		plain += "/" + s
		escaped += "/" + url.PathEscape(s)
	}
	u.Path, u.RawPath, u.RawQuery = plain, escaped, r.query.Encode()
	return u.String(), nil
}

// unreachable keeps the cause, without the URL that net/http puts before it. An
// end of the caller's own context is given as such.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w at %s: no answer in time: %w", ErrUnreachable, c.base.Host, context.DeadlineExceeded)
	}
	return fmt.Errorf("%w at %s: %w", ErrUnreachable, c.base.Host, &cleaned{c.clean(err.Error()), err})
}

// source reads a body and remembers why it could not be read, so that this is
// not taken for a server that cannot be reached.
type source struct {
	r   io.Reader
	mu  sync.Mutex // the transport reads in a goroutine of its own
	err error
}

// Read reads on.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
	}
	return n, err
}

func (s *source) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// params collects the query of a call; empty values are left out.
func params(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// timeFormat is how the contract writes times.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeFormat)
}

func millis(n int64) time.Duration { return time.Duration(max(0, n)) * time.Millisecond }
