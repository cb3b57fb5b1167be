package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// ExportOptions say what is written out and how.
type ExportOptions struct {
	// ProxyFilter selects; its Sort, Limit and Cursor mean nothing here.
	ProxyFilter
	Format    string // url, hostport, userpass, csv, json or jsonl; url if empty
	Passwords bool   // needs the role operator
}

// Export writes proxies out as a list. Only its context bounds it. After an
// error what was written is not the whole list.
func (c *Client) Export(ctx context.Context, o ExportOptions, to io.Writer) error {
	q := o.query()
	if o.Format != "" {
		q.Set("format", o.Format)
	}
	if o.Passwords {
		q.Set("passwords", "true")
	}
	const name = "export"
	req, err := c.request(ctx, call{name: name, method: http.MethodGet, path: proxyPath("export"), query: q}, &source{})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer res.Body.Close() //nolint:errcheck // read to its end or given up below
	if res.StatusCode != http.StatusOK {
		raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		if err != nil {
			return c.unreachable(ctx, err)
		}
		return c.problem(res, raw)
	}
	out := &sink{w: to}
	if _, err := io.Copy(out, res.Body); err != nil {
		if out.err != nil {
			return fmt.Errorf("%s: write the list: %w", name, out.err)
		}
		return c.unreachable(ctx, err)
	}
	return nil
}

// sink remembers why a list could not be written, so that this is not taken for
// a server that cannot be reached.
type sink struct {
	w   io.Writer
	err error
}

// Write writes on.
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.err = err
	return n, err
}
