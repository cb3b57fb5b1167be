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
	res, err := c.open(ctx, call{name: name, method: http.MethodGet, path: proxyPath("export"), query: q}, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end or given up below
	out := &sink{w: to}
	if _, err := io.Copy(out, res.Body); err != nil {
		if out.err != nil {
			return fmt.Errorf("%s: write the list: %w", name, out.err)
		}
		return c.unreachable(ctx, err)
	}
	return nil
}
