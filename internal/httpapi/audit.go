package httpapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/internal/config"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// act is what a handler tells of an operator's call for the audit record; all of
// it may be left out.
type act struct {
	what   string // on what, and the change; "" = the path and its filter
	more   string // the change, behind path and filter
	count  int    // how many records it touched
	result string // "" = done
}

type actKey struct{}

// actOf gives the place where a handler tells what its call did.
func actOf(r *http.Request) *act {
	if a, ok := r.Context().Value(actKey{}).(*act); ok {
		return a
	}
	return &act{}
}

// tell names the settings that changed.
func (a *act) tell(changes []config.Change) {
	var parts []string
	for _, c := range changes {
		parts = append(parts, c.Path+" "+c.From+" -> "+c.To)
	}
	a.count, a.more = len(changes), strings.Join(parts, ", ")
}

// acts name the operator's calls in audit records. A call that is not here goes
// by its method and path.
var acts = map[string]string{
	"DELETE /v1/leases":               "leases.revoke",
	"DELETE /v1/leases/{id}":          "leases.revoke",
	"PATCH /v1/proxies":               "proxies.patch",
	"PATCH /v1/proxies/{id}":          "proxies.patch",
	"DELETE /v1/proxies":              "proxies.remove",
	"DELETE /v1/proxies/{id}":         "proxies.remove",
	"POST /v1/proxies/import":         "proxies.import",
	"PUT /v1/pools/{pool}":            "pools.put",
	"DELETE /v1/pools/{pool}":         "pools.delete",
	"PUT /v1/targets/{target}":        "targets.put",
	"POST /v1/groups/{group}/release": "groups.release",
	"POST /v1/sessions/{id}/move":     "sessions.move",
	"DELETE /v1/sessions/{id}":        "sessions.end",
	"POST /v1/tokens":                 "tokens.new",
	"DELETE /v1/tokens/{name}":        "tokens.revoke",
	"PUT /v1/config":                  "config.apply",
	"POST /v1/store/backup":           "store.backup",
	"POST /v1/sources/{name}/refresh": "sources.refresh",
	"POST /v1/sources/{name}/accept":  "sources.accept",
}

// maxWhat bounds the text of a record, in bytes.
const maxWhat = 500

// record keeps what an operator's call did. A dry run, and a call that was
// refused before it changed anything, leave none.
func (s *Server) record(r *http.Request, who caller, a *act, err error) {
	q := r.URL.Query()
	if dry, bad := boolOf(q, "dry_run"); dry || bad != nil {
		return
	}
	entry := store.Audit{Who: who.tenant, Peer: peerOf(r), Act: acts[r.Pattern], Count: a.count, Result: a.result}
	switch {
	case err == nil && entry.Result == "":
		entry.Result = "done"
	case errors.Is(err, context.Canceled):
		entry.Result = "cut off"
	case err != nil:
		p := toProblem(err)
		if p.Status < http.StatusInternalServerError && a.count == 0 {
			return
		}
		entry.Result = strings.TrimPrefix(p.Type, "/problems/")
	}
	if entry.Act == "" {
		entry.Act = r.Pattern
	}
	entry.Pool = poolOf(q)
	if name := r.PathValue("pool"); name != "" {
		entry.Pool = name
	}
	for _, own := range []string{"/v1/tokens", "/v1/config", "/v1/store"} {
		if strings.HasPrefix(r.URL.Path, own) {
			entry.Pool = ""
		}
	}
	entry.What = whatOf(r, q, a)
	if err := s.store.AddAudit(context.WithoutCancel(r.Context()), entry); err != nil {
		s.log.ErrorContext(r.Context(), "an operator's act could not be recorded", "act", entry.Act, "who", entry.Who, "error", err)
	}
}

// whatOf tells on what a call acted. A lease id is a secret: it is cut short.
func whatOf(r *http.Request, q url.Values, a *act) string {
	what := a.what
	if what == "" {
		var parts []string
		for _, name := range []string{"id", "group", "target", "name"} {
			if value := r.PathValue(name); value != "" {
				parts = append(parts, value)
			}
		}
		if strings.HasPrefix(r.Pattern, "DELETE /v1/leases/") {
			parts[0] = parts[0][:min(8, len(parts[0]))]
		}
		q.Del("pool")
		q.Del("dry_run")
		if filter, err := url.QueryUnescape(q.Encode()); err == nil && filter != "" {
			parts = append(parts, filter)
		}
		what = strings.Join(parts, " ")
	}
	if a.more != "" {
		what = strings.TrimPrefix(what+": "+a.more, ": ")
	}
	what = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, what)
	if len(what) > maxWhat {
		what = strings.ToValidUTF8(what[:maxWhat], "") + "..."
	}
	return what
}

func peerOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

type auditBody struct {
	ID     int64     `json:"id"`
	At     timestamp `json:"at"`
	Who    string    `json:"who"`
	Peer   string    `json:"peer"`
	Act    string    `json:"act"`
	Pool   string    `json:"pool"`
	What   string    `json:"what"`
	Count  int       `json:"count"`
	Result string    `json:"result"`
}

func auditQuery(q url.Values) (a store.AuditQuery, err error) {
	if err := onlyQuery(q, "since", "act", "who", "limit", "cursor"); err != nil {
		return a, err
	}
	a = store.AuditQuery{Act: q.Get("act"), Who: q.Get("who")}
	if text := q.Get("since"); text != "" {
		since, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return a, invalid("since", "must be RFC 3339, such as 2026-01-31T12:00:00Z")
		}
		a.Since = pool.At(since)
	}
	if a.Limit, err = limitOf(q, 100, 1000); err != nil {
		return a, err
	}
	a.Before, err = cursorOf(q)
	return a, err
}

func (s *Server) listAudit(w http.ResponseWriter, r *http.Request) error {
	q, err := auditQuery(r.URL.Query())
	if err != nil {
		return err
	}
	res, err := s.store.Audits(r.Context(), q)
	if err != nil {
		return err
	}
	answer := struct {
		Audit  []auditBody `json:"audit"`
		Cursor string      `json:"cursor"`
	}{Audit: []auditBody{}}
	for _, a := range res.Audits {
		answer.Audit = append(answer.Audit, auditBody{a.N, stamp(a.At), a.Who, a.Peer, a.Act, a.Pool, a.What, a.Count, a.Result})
	}
	if res.More {
		answer.Cursor = cursor(res.Audits[len(res.Audits)-1].N)
	}
	return writeJSON(w, http.StatusOK, answer)
}
