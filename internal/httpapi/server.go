// Package httpapi is the HTTP face: it decodes, asks the keeper, encodes. Every
// path, name and problem type is in api/openapi.yaml.
package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hostler-proxy/hostler/api"
	"github.com/hostler-proxy/hostler/internal/config"
	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/store"
)

// Options make a handler.
type Options struct {
	Keeper *keeper.Keeper
	Log    *slog.Logger
	// Hosts are further names under which requests without a token are taken;
	// loopback names always are. Others are refused: a page in a browser could
	// have made its own name point here (DNS rebinding).
	Hosts []string
	// Exposed says that the daemon listens to other machines.
	Exposed bool
	// Version is the daemon's.
	Version string
	// PolicyFile reads the policy file as it is now; nil result = there is none.
	PolicyFile func() (*config.File, error)
}

// Server is the API's handler.
type Server struct {
	k       *keeper.Keeper
	store   store.Store
	log     *slog.Logger
	hosts   []string
	exposed bool
	version string
	facts   keeper.DoctorFacts
	backing sync.Mutex
	tokens  tokenList
	mux     *http.ServeMux
	cross   *http.CrossOriginProtection
	panics  atomic.Int64
}

// New makes the API's handler.
func New(ctx context.Context, o Options) (*Server, error) {
	s := &Server{
		k: o.Keeper, store: o.Keeper.Store(), log: o.Log, hosts: o.Hosts, exposed: o.Exposed, version: o.Version,
		facts: keeper.DoctorFacts{PolicyFile: o.PolicyFile, Exposed: o.Exposed},
		mux:   http.NewServeMux(), cross: http.NewCrossOriginProtection(),
	}
	if err := s.tokens.load(ctx, s.store); err != nil {
		return nil, err
	}
	s.routes()
	return s, nil
}

// role is what a token may do.
type role string

const (
	rolePublic   role = "" // nobody asks
	roleWorker   role = "worker"
	roleViewer   role = "viewer"
	roleOperator role = "operator"
)

// allows says whether a token's role is enough for what a call needs.
func (have role) allows(need role) bool {
	return need == rolePublic || have == roleOperator || have == need
}

func (s *Server) routes() {
	for _, r := range []struct {
		pattern string
		need    role
		do      func(http.ResponseWriter, *http.Request) error
	}{
		{"POST /v1/leases", roleWorker, s.acquire},
		{"POST /v1/leases/{id}/report", roleWorker, s.report},
		{"POST /v1/leases/{id}/release", roleWorker, s.release},
		{"POST /v1/leases/{id}/note", roleWorker, s.note},
		{"DELETE /v1/leases/{id}", roleOperator, s.revoke},
		{"POST /v1/reports", roleWorker, s.reports},
		{"POST /v1/notes", roleWorker, s.notes},
		{"POST /v1/exchange", roleWorker, s.exchange},
		{"POST /v1/workers/{worker}/heartbeat", roleWorker, s.heartbeat},
		{"GET /v1/proxy", roleWorker, s.oneProxy},
		{"GET /v1/proxies", roleViewer, s.listProxies},
		{"PATCH /v1/proxies", roleOperator, s.patchProxies},
		{"POST /v1/proxies/import", roleOperator, s.importProxies},
		{"GET /v1/proxies/export", roleViewer, s.exportProxies},
		{"GET /v1/proxies/{id}", roleViewer, s.getProxy},
		{"GET /v1/proxies/{id}/why", roleViewer, s.why},
		{"PATCH /v1/proxies/{id}", roleOperator, s.patchProxy},
		{"DELETE /v1/proxies/{id}", roleOperator, s.deleteProxy},
		{"GET /v1/pools", roleViewer, s.listPools},
		{"GET /v1/pools/{pool}", roleViewer, s.getPool},
		{"PUT /v1/pools/{pool}", roleOperator, s.putPool},
		{"DELETE /v1/pools/{pool}", roleOperator, s.deletePool},
		{"GET /v1/targets", roleViewer, s.listTargets},
		{"GET /v1/targets/{target}", roleViewer, s.getTarget},
		{"PUT /v1/targets/{target}", roleOperator, s.putTarget},
		{"GET /v1/targets/{target}/rules", roleWorker, s.targetRules},
		{"GET /v1/groups", roleViewer, s.listGroups},
		{"GET /v1/sources", roleViewer, s.listSources},
		{"POST /v1/sources/{name}/refresh", roleOperator, s.refreshSource},
		{"POST /v1/sources/{name}/accept", roleOperator, s.acceptSource},
		{"GET /v1/workers", roleViewer, s.listWorkers},
		{"GET /v1/leases", roleViewer, s.listLeases},
		{"GET /v1/sessions/{id}", roleViewer, s.getSession},
		{"DELETE /v1/sessions/{id}", roleOperator, s.deleteSession},
		{"POST /v1/failures", roleWorker, s.postFailure},
		{"GET /v1/failures", roleViewer, s.listFailures},
		{"GET /v1/tokens", roleOperator, s.listTokens},
		{"POST /v1/tokens", roleOperator, s.postToken},
		{"DELETE /v1/tokens/{name}", roleOperator, s.deleteToken},
		{"GET /v1/events", roleViewer, s.streamEvents},
		{"GET /v1/config", roleViewer, s.getConfig},
		{"PUT /v1/config", roleOperator, s.putConfig},
		{"DELETE /v1/leases", roleOperator, s.revokeLeases},
		{"DELETE /v1/proxies", roleOperator, s.deleteProxies},
		{"POST /v1/groups/{group}/release", roleOperator, s.releaseGroup},
		{"GET /v1/sessions", roleViewer, s.listSessions},
		{"POST /v1/sessions/{id}/move", roleOperator, s.moveSession},
		{"GET /v1/audit", roleViewer, s.listAudit},
		{"POST /v1/store/backup", roleOperator, s.backup},
		{"GET /v1/doctor", roleViewer, s.doctor},
		{"GET /v1/waiters", roleViewer, s.listWaiters},
		{"GET /v1/capacity", roleViewer, s.capacity},
		{"GET /healthz", rolePublic, s.healthz},
		{"GET /readyz", rolePublic, s.readyz},
		{"GET /openapi.yaml", rolePublic, s.openapi},
	} {
		s.mux.Handle(r.pattern, s.guard(r.need, r.do))
	}
	s.mux.HandleFunc("/", s.unknown)
}

// guard checks who asks, and turns errors into problems.
func (s *Server) guard(need role, do func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := s.identify(r, need)
		if err == nil {
			done := &act{}
			err = do(w, r.WithContext(context.WithValue(context.WithValue(r.Context(), callerKey{}, who), actKey{}, done)))
			if need == roleOperator && r.Method != http.MethodGet {
				s.record(r, who, done, err)
			}
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
}

type callerKey struct{}

// caller is who asks: the name of the token, or "" without tokens.
type caller struct {
	tenant string
	role   role
}

func tenantOf(r *http.Request) string {
	who, _ := r.Context().Value(callerKey{}).(caller)
	return who.tenant
}

func roleOf(r *http.Request) role {
	who, _ := r.Context().Value(callerKey{}).(caller)
	return who.role
}

// identify says who asks and whether that is enough.
func (s *Server) identify(r *http.Request, need role) (caller, error) {
	who := caller{role: roleOperator}
	secret, given := bearer(r)
	if given {
		t, ok := s.tokens.find(secret, s.store.Now())
		if !ok {
			return who, problemOf(http.StatusUnauthorized, "unauthorized", "this token is not known: make one with hostler token new")
		}
		who = caller{tenant: t.Name, role: role(t.Role)}
	} else {
		if !s.knownHost(r.Host) {
			return who, problemOf(http.StatusForbidden, "misdirected-host",
				"requests without a token are taken only under a loopback name; send a token, or start with --host to allow this name")
		}
		if s.tokens.any() {
			who.role = rolePublic
		}
	}
	if err := s.cross.Check(r); err != nil {
		return who, problemOf(http.StatusForbidden, "cross-origin", "a page of another site sent this request")
	}
	switch {
	case who.role.allows(need):
		return who, nil
	case !given:
		return who, problemOf(http.StatusUnauthorized, "unauthorized", "send Authorization: Bearer TOKEN")
	default:
		return who, problemOf(http.StatusForbidden, "forbidden", "this token has the role "+string(who.role)+"; the call needs "+string(need))
	}
}

func bearer(r *http.Request) (secret string, given bool) {
	scheme, secret, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(secret), ok && strings.EqualFold(scheme, "Bearer")
}

// knownHost says whether a Host header is a loopback name or one that was allowed.
func (s *Server) knownHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if addr, err := netip.ParseAddr(name); err == nil && addr.IsLoopback() {
		return true
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name == "localhost" || slices.Contains(s.hosts, name)
}

// ServeHTTP contains what a handler throws: one request must not end the daemon.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		v := recover()
		if v == http.ErrAbortHandler { //nolint:errorlint // a panic's value, compared as net/http does
			panic(v) // net/http cuts the connection
		}
		if v != nil {
			s.panics.Add(1)
			s.log.ErrorContext(r.Context(), "a handler panicked", "method", r.Method, "path", r.URL.Path, "panic", v)
			s.fail(w, r, errors.New("internal error"))
		}
	}()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	s.mux.ServeHTTP(w, r)
}

// unknown answers paths that do not exist, and methods that a path has not.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if method == r.Method {
			continue
		}
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := s.mux.Handler(probe); pattern != "/" && pattern != "" {
			w.Header().Add("Allow", method)
		}
	}
	if len(w.Header().Values("Allow")) > 0 {
		s.fail(w, r, problemOf(http.StatusMethodNotAllowed, "method-not-allowed", r.Method+" is not possible on this path"))
		return
	}
	s.fail(w, r, problemOf(http.StatusNotFound, "not-found", "there is no such path; /openapi.yaml lists them"))
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	if err := s.k.Ready(r.Context()); err != nil {
		p := problemOf(http.StatusServiceUnavailable, "store-unavailable", err.Error())
		p.RetryAfterMS = 1000
		return p
	}
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

func (s *Server) openapi(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, err := w.Write(api.OpenAPI())
	return err
}
