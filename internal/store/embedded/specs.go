package embedded

import (
	"context"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// Specs implements store.Specs.
func (s *Store) Specs(ctx context.Context, p store.SpecsParams) (res store.SpecsResult, err error) {
	err = s.look(ctx, p.Pool, func(st *pool.State) error {
		res.Specs, res.Next = st.Specs(s.now(0), p.Filter, p.From, p.Limit)
		return nil
	})
	return res, err
}
