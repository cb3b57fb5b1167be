package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/store"
)

func (s *Server) listProxies(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := onlyQuery(q, "pool", "state", "view", "region", "label", "group", "source", "sort", "limit", "cursor"); err != nil {
		return err
	}
	filter, err := filterOf(q)
	if err != nil {
		return err
	}
	limit, err := limitOf(q, 100, 1000)
	if err != nil {
		return err
	}
	offset, err := cursorOf(q)
	if err != nil {
		return err
	}
	if !pool.KnownSort(q.Get("sort")) {
		return invalid("sort", "must be added, score, last_used, in_use, streak or uses")
	}
	res, err := s.store.Proxies(r.Context(), store.ProxiesParams{
		Pool: poolOf(q), Filter: filter, Sort: q.Get("sort"), Offset: int(offset), Limit: limit,
	})
	if err != nil {
		return err
	}
	answer := struct {
		Proxies []proxyBody `json:"proxies"`
		Cursor  string      `json:"cursor"`
	}{Proxies: []proxyBody{}}
	for i := range res.Proxies {
		answer.Proxies = append(answer.Proxies, proxyOf(&res.Proxies[i], res.Now))
	}
	if res.More {
		answer.Cursor = cursor(offset + int64(limit))
	}
	return writeJSON(w, http.StatusOK, answer)
}

func (s *Server) proxyByID(r *http.Request) (store.ProxyResult, error) {
	id, err := proxy.ParseID(r.PathValue("id"))
	if err != nil {
		return store.ProxyResult{}, store.ErrNoProxy
	}
	return s.store.Proxy(r.Context(), poolOf(r.URL.Query()), id)
}

func (s *Server) getProxy(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query(), "pool"); err != nil {
		return err
	}
	res, err := s.proxyByID(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, proxyOf(&res.Proxy, res.Now))
}

type patchBody struct {
	State     *string            `json:"state"`
	Reason    string             `json:"reason"`
	Until     *timestamp         `json:"until"`
	Cap       *int               `json:"cap"`
	Labels    *map[string]string `json:"labels"`
	Region    *string            `json:"region"`
	ExpiresAt *json.RawMessage   `json:"expires_at"`
}

func (b *patchBody) patch(now pool.Time) (pool.Patch, error) {
	p := pool.Patch{Reason: b.Reason, Cap: b.Cap, Region: b.Region}
	if len(b.Reason) > 500 || strings.ContainsFunc(b.Reason, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return p, invalid("reason", "is longer than 500 bytes or holds control characters")
	}
	if b.State != nil {
		status, err := pool.ParseStatus(*b.State)
		if err != nil || !slices.Contains([]pool.Status{pool.StatusActive, pool.StatusDraining, pool.StatusDisabled}, status) {
			return p, invalid("state", "must be active (resume), draining or disabled (pause)")
		}
		p.State = &status
	}
	if b.Until != nil && !time.Time(*b.Until).IsZero() {
		if p.Until = pool.At(time.Time(*b.Until)); p.Until <= now {
			return p, invalid("until", "lies in the past")
		}
	}
	if b.Cap != nil && (*b.Cap < 0 || *b.Cap > 10_000) {
		return p, invalid("cap", "must be 0 (the policy's) to 10000")
	}
	if b.Labels != nil {
		for key, value := range *b.Labels {
			if err := keeper.CheckLabel(key, value); err != nil {
				return p, err
			}
		}
		labels := pool.MakeLabels(*b.Labels)
		p.Labels = &labels
	}
	if b.Region != nil {
		if err := keeper.CheckFilterText("region", *b.Region); err != nil {
			return p, err
		}
	}
	if b.ExpiresAt != nil {
		var at timestamp
		if err := json.Unmarshal(*b.ExpiresAt, &at); err != nil {
			return p, invalid("expires_at", "must be RFC 3339, such as 2026-01-31T12:00:00Z, or null for never")
		}
		when := pool.At(time.Time(at))
		p.ExpiresAt = &when
	}
	return p, nil
}

func (s *Server) patchProxies(w http.ResponseWriter, r *http.Request) error {
	filter, err := bulkFilter(r.URL.Query())
	if err != nil {
		return err
	}
	return s.patchBy(w, r, filter)
}

func (s *Server) patchProxy(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query(), "pool", "dry_run"); err != nil {
		return err
	}
	id, err := proxy.ParseID(r.PathValue("id"))
	if err != nil {
		return store.ErrNoProxy
	}
	return s.patchBy(w, r, pool.Filter{ID: &id})
}

func (s *Server) patchBy(w http.ResponseWriter, r *http.Request, filter pool.Filter) error {
	var body patchBody
	if err := decode(w, r, maxBody, &body); err != nil {
		return err
	}
	patch, err := body.patch(s.store.Now())
	if err != nil {
		return err
	}
	dry, err := boolOf(r.URL.Query(), "dry_run")
	if err != nil {
		return err
	}
	n, err := s.k.Patch(r.Context(), poolOf(r.URL.Query()), filter, patch, dry)
	if err != nil {
		return err
	}
	answer := patchAnswer{Matched: n, DryRun: dry, First: []proxyBrief{}}
	actOf(r).count, actOf(r).more = n, body.changes()
	if dry {
		if answer.First, err = s.brief(r, filter); err != nil {
			return err
		}
	}
	return writeJSON(w, http.StatusOK, answer)
}

func (s *Server) deleteProxy(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query(), "pool"); err != nil {
		return err
	}
	id, err := proxy.ParseID(r.PathValue("id"))
	if err != nil {
		return store.ErrNoProxy
	}
	if actOf(r).count, err = s.k.Remove(r.Context(), poolOf(r.URL.Query()), pool.Filter{ID: &id}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
