package httpapi

import (
	"net/http"
	"time"

	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/store"
)

type heldBody struct {
	Count int       `json:"count"`
	Seen  int       `json:"seen"`
	At    timestamp `json:"at"`
}

func heldOf(h *store.HeldSet) *heldBody {
	if h == nil {
		return nil
	}
	return &heldBody{h.Proxies, h.Seen, stamp(h.At)}
}

type sourceBody struct {
	Name          string            `json:"name"`
	Kind          string            `json:"kind"`
	Pool          string            `json:"pool"`
	From          string            `json:"from"`
	State         string            `json:"state"`
	Reason        string            `json:"reason"`
	Stale         bool              `json:"stale"`
	IntervalMS    int64             `json:"interval_ms"`
	Counts        sourceCounts      `json:"counts"`
	LastSuccessAt timestamp         `json:"last_success_at"`
	LastAttemptAt timestamp         `json:"last_attempt_at"`
	NextAt        timestamp         `json:"next_at"`
	Held          *heldBody         `json:"held"`
	Settings      map[string]string `json:"settings"`
}

type sourceCounts struct {
	Proxies  int `json:"proxies"`
	Listed   int `json:"listed"`
	Rejected int `json:"rejected"`
	Failures int `json:"failures"`
}

func (s *Server) listSources(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query()); err != nil {
		return err
	}
	list, err := s.k.Sources(r.Context())
	if err != nil {
		return err
	}
	settings := s.k.SourceSettings()
	out := []sourceBody{}
	for i := range list {
		v := &list[i]
		b := sourceBody{
			Name: v.Name, Kind: v.Kind, Pool: v.Pool, From: v.From, State: v.Health, Reason: v.State.Reason, Stale: v.Stale,
			IntervalMS: v.Interval.Milliseconds(), Counts: sourceCounts{v.Proxies, v.State.Listed, v.State.Rejected, v.State.Fails},
			LastSuccessAt: stamp(v.State.Success), LastAttemptAt: stamp(v.State.Attempt), NextAt: stamp(v.State.Next),
			Held: heldOf(v.State.Held), Settings: settings[v.Name],
		}
		if b.Settings == nil { // it went meanwhile
			b.Settings = map[string]string{}
		}
		out = append(out, b)
	}
	return writeJSON(w, http.StatusOK, map[string]any{"sources": out})
}

type refreshedBody struct {
	Name       string          `json:"name"`
	Result     string          `json:"result"`
	Reason     string          `json:"reason"`
	DryRun     bool            `json:"dry_run"`
	Listed     int             `json:"listed"`
	Duplicates int             `json:"duplicates"`
	Added      int             `json:"added"`
	Updated    int             `json:"updated"`
	Renewed    int             `json:"renewed"`
	Unchanged  int             `json:"unchanged"`
	Removed    int             `json:"removed"`
	Left       int             `json:"left"`
	Rejects    int             `json:"rejects"`
	Rejected   []rejectionBody `json:"rejected"`
	Held       *heldBody       `json:"held"`
}

func refreshedOf(r *keeper.Refreshed) refreshedBody {
	c := &r.Changes
	return refreshedBody{
		Name: r.Name, Result: r.Verdict.String(), Reason: r.Reason, DryRun: r.DryRun, Listed: r.Listed, Duplicates: r.Duplicates,
		Added: c.Added, Updated: c.Updated, Renewed: c.Renewed, Unchanged: c.Unchanged, Removed: c.Removed, Left: c.Left,
		Rejects: r.Rejects, Rejected: rejectionsOf(r.Rejected), Held: heldOf(r.Held),
	}
}

func (s *Server) refreshSource(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query(), "dry_run"); err != nil {
		return err
	}
	dry, err := boolOf(r.URL.Query(), "dry_run")
	if err != nil {
		return err
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // the source's own timeout bounds it
	res, err := s.k.RefreshSource(r.Context(), r.PathValue("name"), dry)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, refreshedOf(&res))
}

func (s *Server) acceptSource(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query()); err != nil {
		return err
	}
	res, err := s.k.AcceptSource(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, refreshedOf(&res))
}
