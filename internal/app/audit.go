package app

import (
	"context"
	"strings"

	"github.com/hostler-proxy/hostler/internal/config"
	"github.com/hostler-proxy/hostler/internal/store"
)

// recordPolicy keeps what the policy file changed, at the start or at a reload.
func (a *App) recordPolicy(ctx context.Context, changes []config.Change) {
	if len(changes) == 0 {
		return
	}
	var parts []string
	for _, c := range changes[:min(len(changes), 10)] {
		parts = append(parts, c.Path+" "+c.From+" -> "+c.To)
	}
	a.record(ctx, store.Audit{Peer: "policy file", Act: "config.apply", What: strings.Join(parts, ", "), Count: len(changes), Result: "done"})
}

// recordImport keeps that a list was brought in at the start.
func (a *App) recordImport(ctx context.Context, count int) {
	a.record(ctx, store.Audit{Peer: "command line", Act: "proxies.import", Pool: "default", What: "--proxies", Count: count, Result: "done"})
}

func (a *App) record(ctx context.Context, entry store.Audit) {
	if err := a.store.AddAudit(ctx, entry); err != nil {
		a.o.Log.ErrorContext(ctx, "an act could not be recorded", "act", entry.Act, "error", err)
	}
}
