package fetch

import (
	"bytes"
	"context"
	"net/url"
	"strconv"

	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/source"
)

// pages reads a JSON API to its last page. Half a set is none: what breaks off
// fails whole.
func (v *visit) pages(ctx context.Context, last Mark) (*Result, error) {
	m := &v.source.Mapping
	if m.Paged() {
		last = Mark{} // one page unchanged says nothing of the others
	}
	out := &Result{}
	at, records := v.firstPage(), 0
	var before []byte
	for n := 0; ; n++ {
		if n == m.MaxPages {
			return nil, faultf("there are more than %d pages: raise json.paging.max_pages", m.MaxPages)
		}
		body, mark, unchanged, err := v.get(ctx, at, last)
		switch {
		case err != nil:
			return nil, err
		case unchanged:
			return &Result{Unchanged: true, Mark: mark}, nil
		case page(body):
			return nil, faultf("the answer is a web page and not JSON")
		case n > 0 && bytes.Equal(body, before):
			return nil, faultf("two pages are the same: is json.paging right for this API?")
		}
		p, err := m.Read(body, records, proxy.ListOptions{Scheme: v.source.Scheme, AllowSpecial: v.source.AllowSpecial})
		if err != nil {
			return nil, faultf("%v", err)
		}
		out.add(p)
		records += p.Records
		before = body
		if at, err = v.nextPage(at, n, p); err != nil || at == nil {
			if !m.Paged() {
				out.Mark = mark
			}
			return out, err
		}
	}
}

// maxRejections bounds the reasons that are kept; all are counted.
const maxRejections = 1000

func (r *Result) add(p *source.Page) {
	r.Entries = append(r.Entries, p.Entries...)
	r.Rejects += len(p.Rejected)
	r.Rejected = append(r.Rejected, p.Rejected[:min(len(p.Rejected), maxRejections-len(r.Rejected))]...)
}

func (v *visit) firstPage() *url.URL {
	if m := &v.source.Mapping; m.PageParam != "" {
		return withParam(v.req.URL, m.PageParam, strconv.Itoa(m.First()))
	}
	return v.req.URL
}

// nextPage says where the next page is; nil = this one was the last.
func (v *visit) nextPage(at *url.URL, n int, p *source.Page) (*url.URL, error) {
	m := &v.source.Mapping
	switch {
	case m.PageParam != "" && p.Records > 0:
		return withParam(v.req.URL, m.PageParam, strconv.Itoa(m.First()+n+1)), nil
	case p.Cursor != "":
		next := withParam(v.req.URL, m.CursorName(), p.Cursor)
		if *next == *at {
			return nil, faultf("the cursor of the next page is that of this one")
		}
		return next, nil
	case p.Next != "":
		next, err := at.Parse(p.Next)
		if err != nil || !sameOrigin(next, v.req.URL) || next.User != nil {
			return nil, faultf("the next page is not on the same host")
		}
		return v.withQuery(next), nil
	}
	return nil, nil //nolint:nilnil // there is no next page
}

// withQuery adds the source's own parameters where a link of the API left them out.
func (v *visit) withQuery(u *url.URL) *url.URL {
	ours, q := v.req.URL.Query(), u.Query()
	for name := range v.source.Query {
		if !q.Has(name) {
			u = withParam(u, name, ours.Get(name))
		}
	}
	return u
}

func withParam(u *url.URL, name, value string) *url.URL {
	next := *u
	q := next.Query()
	q.Set(name, value)
	next.RawQuery = q.Encode()
	return &next
}
