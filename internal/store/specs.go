package store

import (
	"context"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// Specs lists what was said of proxies, so that a pool can be written out.
type Specs interface {
	// Specs gives one page, with the passwords. A proxy that stays in the pool
	// from the first page to the last is on exactly one of them.
	Specs(ctx context.Context, p SpecsParams) (SpecsResult, error)
}

// SpecsParams selects proxies.
type SpecsParams struct {
	Pool   string
	Filter pool.Filter
	From   uint32 // 0, or Next of the page before
	Limit  int
}

// SpecsResult is one page; Next is 0 on the last.
type SpecsResult struct {
	Specs []pool.Spec
	Next  uint32
}
