package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/hostler-proxy/hostler/internal/httpapi"
	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
	"github.com/hostler-proxy/hostler/internal/store/embedded"
)

// NewToken makes a token in the store of a daemon that does not run: the first
// one, before it listens to other machines.
func NewToken(ctx context.Context, path, name, role string, log *slog.Logger) (string, error) {
	st, err := embedded.Open(ctx, embedded.Options{
		Path: path, Judge: judge.Rule, Log: log, Clock: func() pool.Time { return pool.At(time.Now()) },
	})
	if err != nil {
		return "", err
	}
	defer st.Close() //nolint:errcheck // nothing is left to write
	known, err := st.Tokens(ctx)
	if err != nil {
		return "", err
	}
	for _, t := range known {
		if t.Name == name {
			return "", fmt.Errorf("a token named %q exists; revoke it first", name)
		}
	}
	text, t, err := httpapi.NewToken(name, role, time.Now())
	if err != nil {
		return "", err
	}
	if err := st.PutToken(ctx, t); err != nil {
		return "", err
	}
	return text, st.AddAudit(ctx, store.Audit{
		Peer: "command line", Act: "tokens.new", What: name + " role=" + role, Count: 1, Result: "done",
	})
}
