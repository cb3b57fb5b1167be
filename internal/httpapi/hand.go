package httpapi

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/store"
)

// proxyBrief is a proxy as a dry run shows it.
type proxyBrief struct {
	ID     string `json:"id"`
	Scheme string `json:"scheme"`
	Host   string `json:"host"`
	Port   uint16 `json:"port"`
	Group  string `json:"group"`
	State  string `json:"state"`
}

type patchAnswer struct {
	Matched int          `json:"matched"`
	DryRun  bool         `json:"dry_run"`
	First   []proxyBrief `json:"first"`
}

// shownOfDryRun is how many proxies a dry run shows.
const shownOfDryRun = 20

func (s *Server) brief(r *http.Request, filter pool.Filter) ([]proxyBrief, error) {
	res, err := s.store.Proxies(r.Context(), store.ProxiesParams{Pool: poolOf(r.URL.Query()), Filter: filter, Limit: shownOfDryRun})
	if err != nil {
		return nil, err
	}
	out := []proxyBrief{}
	for i := range res.Proxies {
		v := &res.Proxies[i]
		out = append(out, proxyBrief{v.ID.String(), string(v.Spec.Scheme), v.Spec.Host, v.Spec.Port, v.Spec.Group, v.Status.String()})
	}
	return out, nil
}

// bulkFilter reads the filter of a change of many proxies: one that takes all
// must say so.
func bulkFilter(q url.Values) (pool.Filter, error) {
	if err := onlyQuery(q, "pool", "state", "view", "region", "group", "label", "source", "all", "dry_run"); err != nil {
		return pool.Filter{}, err
	}
	filter, err := filterOf(q)
	if err != nil {
		return filter, err
	}
	return filter, sayAll(q, filter == (pool.Filter{}), "group", "group, label, source, region, state or view")
}

// sayAll refuses an empty filter unless all=true says that it is meant.
func sayAll(q url.Values, empty bool, field, filters string) error {
	all, err := boolOf(q, "all")
	switch {
	case err != nil:
		return err
	case empty && !all:
		return invalid(field, "name at least one of "+filters+", or say all=true")
	case !empty && all:
		return invalid("all", "goes without a filter")
	}
	return nil
}

func (s *Server) deleteProxies(w http.ResponseWriter, r *http.Request) error {
	filter, err := bulkFilter(r.URL.Query())
	if err != nil {
		return err
	}
	dry, err := boolOf(r.URL.Query(), "dry_run")
	if err != nil {
		return err
	}
	answer := patchAnswer{DryRun: dry, First: []proxyBrief{}}
	name := poolOf(r.URL.Query())
	if dry {
		if answer.Matched, err = s.k.Patch(r.Context(), name, filter, pool.Patch{}, true); err != nil {
			return err
		}
		answer.First, err = s.brief(r, filter)
	} else {
		answer.Matched, err = s.k.Remove(r.Context(), name, filter)
		actOf(r).count = answer.Matched
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, answer)
}

func leaseFilterOf(q url.Values) (f pool.LeaseFilter, err error) {
	if err := onlyQuery(q, "pool", "lease", "worker", "proxy", "target", "session", "all", "dry_run"); err != nil {
		return f, err
	}
	f = pool.LeaseFilter{Short: q.Get("lease"), Worker: q.Get("worker"), Session: q.Get("session")}
	if f.Short != "" && len(f.Short) != 8 {
		return f, invalid("lease", "must be the first 8 characters of a lease's id")
	}
	if text := q.Get("proxy"); text != "" {
		id, err := proxy.ParseID(text)
		if err != nil {
			return f, invalid("proxy", err.Error())
		}
		f.Proxy = &id
	}
	if text := q.Get("target"); text != "" {
		if f.Target, err = keeper.TargetName(text); err != nil {
			return f, err
		}
	}
	return f, sayAll(q, f == (pool.LeaseFilter{}), "lease", "lease, worker, proxy, target or session")
}

func (s *Server) revokeLeases(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	filter, err := leaseFilterOf(q)
	if err != nil {
		return err
	}
	dry, err := boolOf(q, "dry_run")
	if err != nil {
		return err
	}
	res, err := s.k.RevokeLeases(r.Context(), poolOf(q), filter, dry)
	if err != nil {
		return err
	}
	actOf(r).count = res.Count
	return writeJSON(w, http.StatusOK, map[string]any{"matched": res.Count, "dry_run": dry, "first": liveOf(res.First)})
}

func (s *Server) releaseGroup(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := onlyQuery(q, "pool"); err != nil {
		return err
	}
	group := r.PathValue("group")
	held, err := s.k.ReleaseGroup(r.Context(), poolOf(q), group)
	if err != nil {
		return err
	}
	if held != 0 {
		actOf(r).count = 1
	}
	return writeJSON(w, http.StatusOK, map[string]any{"group": group, "released": held != 0, "held_until": stamp(held)})
}

type sessionBody struct {
	Session    string    `json:"session"`
	Proxy      string    `json:"proxy"`
	Leases     int       `json:"leases"`
	LastUsedAt timestamp `json:"last_used_at"`
	Moving     bool      `json:"moving"`
}

func sessionOf(x *pool.Session) sessionBody {
	return sessionBody{x.Key, x.ProxyID.String(), x.Leases, stamp(x.LastUsed), x.Gone()}
}

func (s *Server) listSessions(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := onlyQuery(q, "pool", "proxy", "limit", "cursor"); err != nil {
		return err
	}
	p := store.SessionsParams{Pool: poolOf(q)}
	if text := q.Get("proxy"); text != "" {
		id, err := proxy.ParseID(text)
		if err != nil {
			return invalid("proxy", err.Error())
		}
		p.Proxy = &id
	}
	after, err := base64.RawURLEncoding.DecodeString(q.Get("cursor"))
	if err != nil {
		return invalid("cursor", "is not one that this call gave")
	}
	p.After = string(after)
	if p.Limit, err = limitOf(q, 100, 1000); err != nil {
		return err
	}
	res, err := s.store.Sessions(r.Context(), p)
	if err != nil {
		return err
	}
	answer := struct {
		Sessions []sessionBody `json:"sessions"`
		Cursor   string        `json:"cursor"`
	}{Sessions: []sessionBody{}}
	for i := range res.Sessions {
		answer.Sessions = append(answer.Sessions, sessionOf(&res.Sessions[i]))
	}
	if res.More {
		answer.Cursor = base64.RawURLEncoding.EncodeToString([]byte(res.Sessions[len(res.Sessions)-1].Key))
	}
	return writeJSON(w, http.StatusOK, answer)
}

func (s *Server) moveSession(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query(), "pool"); err != nil {
		return err
	}
	x, err := s.k.MoveSession(r.Context(), poolOf(r.URL.Query()), r.PathValue("id"))
	if err != nil {
		return err
	}
	actOf(r).count = 1
	return writeJSON(w, http.StatusOK, sessionOf(&x))
}

// changes says in words what a patch changes, for the audit record.
func (b *patchBody) changes() string {
	var parts []string
	add := func(name, value string) { parts = append(parts, name+"="+value) }
	if b.State != nil {
		add("state", *b.State)
	}
	if b.Reason != "" {
		add("reason", b.Reason)
	}
	if b.Until != nil {
		text, _ := b.Until.MarshalJSON() // a time: cannot fail
		add("until", strings.Trim(string(text), `"`))
	}
	for name, given := range map[string]bool{"cap": b.Cap != nil, "labels": b.Labels != nil, "region": b.Region != nil, "expires_at": b.ExpiresAt != nil} {
		if given {
			parts = append(parts, name)
		}
	}
	slices.Sort(parts[min(len(parts), 1):]) // the state first
	return strings.Join(parts, " ")
}
