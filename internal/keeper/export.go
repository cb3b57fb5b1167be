package keeper

import (
	"context"
	"io"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/store"
)

// ExportRequest writes a pool's proxies out.
type ExportRequest struct {
	Pool      string
	Filter    pool.Filter
	Format    proxy.Format // url if empty
	Passwords bool
}

// exportPage is how many proxies are copied at once: a page holds up the pool
// for a moment only.
const exportPage = 1000

// Export writes the proxies that a filter takes as a list, page by page. Nothing
// is written if the first page cannot be had.
func (k *Keeper) Export(ctx context.Context, r ExportRequest, to io.Writer) error {
	setDefault(&r.Pool, DefaultPool)
	setDefault(&r.Format, proxy.FormatURL)
	out, err := proxy.WriteList(to, r.Format, r.Passwords)
	if err != nil {
		return &InputError{"format", err.Error()}
	}
	for from := uint32(0); ; {
		page, err := k.store.Specs(ctx, store.SpecsParams{Pool: r.Pool, Filter: r.Filter, From: from, Limit: exportPage})
		if err != nil {
			return err
		}
		for i := range page.Specs {
			if err := out.Write(entryOf(&page.Specs[i])); err != nil {
				return err
			}
		}
		if from = page.Next; from == 0 {
			return out.Close()
		}
	}
}

// entryOf is what a list says of a proxy.
func entryOf(s *pool.Spec) proxy.Entry {
	e := proxy.Entry{Proxy: s.Proxy, Region: s.Region, Group: s.Group, Labels: s.Labels.Map(), Cap: s.Cap}
	if s.Exit != usualExit(s.Proxy) {
		e.Exit = s.Exit.String()
	}
	if s.ExpiresAt != 0 {
		e.ExpiresAt = s.ExpiresAt.Std()
	}
	return e
}

// usualExit is the exit kind of a proxy of which nobody says one.
func usualExit(p proxy.Proxy) pool.Exit {
	if p.IsTemplate() {
		return pool.ExitTemplate
	}
	return pool.ExitStatic
}
