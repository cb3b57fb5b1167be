package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

func (s *Server) listGroups(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query(), "pool"); err != nil {
		return err
	}
	name := poolOf(r.URL.Query())
	res, err := s.store.Groups(r.Context(), name)
	if err != nil {
		return err
	}
	type groupBody struct {
		Group     string           `json:"group"`
		Proxies   int              `json:"proxies"`
		HoldUntil timestamp        `json:"hold_until"`
		Requests  int64            `json:"requests"`
		Bytes     int64            `json:"bytes"`
		Money     moneyBody        `json:"money"`
		Budget    *budgetBody      `json:"budget"`
		Windows   windowsBody      `json:"windows"`
		Classes   map[string]int64 `json:"classes"`
	}
	out := []groupBody{}
	for i := range res.Groups {
		g := &res.Groups[i]
		b := groupBody{
			Group: g.Name, Proxies: g.Proxies, Requests: g.Spend.Total.Requests, Bytes: g.Spend.Total.Bytes,
			Money:  moneyOf(&g.Spend, res.Calendar, &g.Windows, res.Now, flatDay(&g.Policy, res.Calendar)),
			Budget: budgetOf(g, res.Now, res.Calendar), Windows: windowsOf(&g.Windows, res.Now, res.Day), Classes: classesOf(&g.Classes),
		}
		if g.Circuit.Open() {
			b.HoldUntil = stamp(g.Circuit.At)
		}
		if g.HoldUntil > res.Now {
			b.HoldUntil = stamp(g.HoldUntil)
		}
		out = append(out, b)
	}
	return writeJSON(w, http.StatusOK, map[string]any{"groups": out})
}

func (s *Server) listWorkers(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query(), "pool"); err != nil {
		return err
	}
	res, err := s.store.Workers(r.Context(), poolOf(r.URL.Query()))
	if err != nil {
		return err
	}
	type workerBody struct {
		Name        string      `json:"name"`
		Tenant      string      `json:"tenant"`
		Concurrency int         `json:"concurrency"`
		Leases      int         `json:"leases"`
		LastSeenAt  timestamp   `json:"last_seen_at"`
		Granted     int64       `json:"granted"`
		Reported    int64       `json:"reported"`
		Released    int64       `json:"released"`
		Expired     int64       `json:"expired"`
		Windows     windowsBody `json:"windows"`
	}
	out := []workerBody{}
	for i := range res.Workers {
		x := &res.Workers[i]
		out = append(out, workerBody{
			x.Name, x.Tenant, x.Concurrency, x.Leases, stamp(x.LastSeen), x.Granted, x.Reported, x.Released, x.Expired,
			windowsOf(&x.Windows, res.Now, res.Day),
		})
	}
	return writeJSON(w, http.StatusOK, map[string]any{"workers": out})
}

func (s *Server) listLeases(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := onlyQuery(q, "pool", "limit"); err != nil {
		return err
	}
	limit, err := limitOf(q, 100, 10_000)
	if err != nil {
		return err
	}
	list, err := s.store.Leases(r.Context(), poolOf(q), limit)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"leases": liveOf(list)})
}

type liveBody struct {
	Lease     string      `json:"lease"`
	Proxy     string      `json:"proxy"`
	Target    string      `json:"target"`
	Worker    string      `json:"worker"`
	Session   string      `json:"session"`
	Fence     int64       `json:"fence"`
	GrantedAt timestamp   `json:"granted_at"`
	ExpiresAt timestamp   `json:"expires_at"`
	TTLMS     int64       `json:"ttl_ms"`
	Request   requestBody `json:"request"`
}

func liveOf(list []pool.LeaseView) []liveBody {
	out := []liveBody{}
	for _, v := range list {
		out = append(out, liveBody{
			v.Lease.Key.Short(), v.Proxy, v.Target, v.Worker, v.Lease.More.Session, v.Lease.Fence, stamp(v.Lease.Granted),
			stamp(v.Lease.Deadline), v.Lease.TTL.Milliseconds(), requestOf(v.Lease.More.Request),
		})
	}
	return out
}

func (s *Server) getSession(w http.ResponseWriter, r *http.Request) error {
	key := r.PathValue("id")
	x, ok, err := s.store.Session(r.Context(), poolOf(r.URL.Query()), key)
	if err != nil {
		return err
	}
	if !ok {
		return problemOf(http.StatusNotFound, "unknown-session", "there is no session of this name")
	}
	return writeJSON(w, http.StatusOK, sessionOf(&x))
}

func (s *Server) deleteSession(w http.ResponseWriter, r *http.Request) error {
	ok, err := s.k.EndSession(r.Context(), poolOf(r.URL.Query()), r.PathValue("id"))
	if err != nil {
		return err
	}
	if !ok {
		return problemOf(http.StatusNotFound, "unknown-session", "there is no session of this name")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

type failureBody struct {
	ID        int64       `json:"id"`
	At        timestamp   `json:"at"`
	Pool      string      `json:"pool"`
	Worker    string      `json:"worker"`
	Target    string      `json:"target"`
	Proxy     string      `json:"proxy"`
	Lease     string      `json:"lease"`
	Class     string      `json:"class"`
	Fault     string      `json:"fault"`
	Phase     string      `json:"phase"`
	Error     string      `json:"error"`
	Status    int         `json:"status"`
	ElapsedMS int64       `json:"elapsed_ms"`
	Attempt   int         `json:"attempt"`
	Request   requestBody `json:"request"`
	Final     bool        `json:"final"`
	Reason    string      `json:"reason"`
	Attempts  []string    `json:"attempts"`
	WaitedMS  int64       `json:"waited_ms"`
}

func failuresOf(pool string, list []store.FailureRow) []failureBody {
	out := []failureBody{}
	for _, f := range list {
		b := failureBody{
			ID: f.N, At: stamp(f.At), Pool: pool, Worker: f.Worker, Target: f.Target, Proxy: f.Proxy, Lease: f.Lease, Class: f.Class.String(),
			Fault: f.Fault.String(), Phase: f.Phase, Error: f.Error, Status: f.Status, ElapsedMS: f.Elapsed.Milliseconds(),
			Attempt: f.Request.Attempt, Request: requestOf(f.Request), Final: f.Final, Reason: f.Reason, Attempts: f.Attempts,
			WaitedMS: f.Waited.Milliseconds(),
		}
		if b.Attempts == nil {
			b.Attempts = []string{}
		}
		out = append(out, b)
	}
	return out
}

func failureQuery(q url.Values) (f store.FailureQuery, err error) {
	if err := onlyQuery(q, "pool", "worker", "proxy", "target", "class", "final", "since", "limit", "cursor"); err != nil {
		return f, err
	}
	f = store.FailureQuery{Pool: poolOf(q), Worker: q.Get("worker"), Proxy: q.Get("proxy"), Target: q.Get("target")}
	if text := q.Get("class"); text != "" {
		if f.Class, err = pool.ParseClass(text); err != nil {
			return f, invalid("class", err.Error())
		}
	}
	if text := q.Get("final"); text != "" {
		final, err := strconv.ParseBool(text)
		if err != nil {
			return f, invalid("final", "must be true or false")
		}
		f.Final = &final
	}
	if text := q.Get("since"); text != "" {
		since, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return f, invalid("since", "must be RFC 3339, such as 2026-01-31T12:00:00Z")
		}
		f.Since = pool.At(since)
	}
	if f.Limit, err = limitOf(q, 100, 1000); err != nil {
		return f, err
	}
	f.Before, err = cursorOf(q)
	return f, err
}

func (s *Server) listFailures(w http.ResponseWriter, r *http.Request) error {
	q, err := failureQuery(r.URL.Query())
	if err != nil {
		return err
	}
	res, err := s.store.Failures(r.Context(), q)
	if err != nil {
		return err
	}
	answer := struct {
		Failures     []failureBody `json:"failures"`
		Cursor       string        `json:"cursor"`
		ScannedUntil timestamp     `json:"scanned_until"`
	}{failuresOf(q.Pool, res.Failures), "", stamp(res.ScannedUntil)}
	switch {
	case res.More:
		answer.Cursor = cursor(res.Failures[len(res.Failures)-1].N)
	case res.ScannedUntil != 0:
		answer.Cursor = cursor(res.ScannedTo)
	}
	return writeJSON(w, http.StatusOK, answer)
}

func (s *Server) postFailure(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Pool     string      `json:"pool"`
		Target   string      `json:"target"`
		Worker   string      `json:"worker"`
		Request  requestBody `json:"request"`
		Reason   string      `json:"reason"`
		Class    string      `json:"class"`
		Attempts []string    `json:"attempts"`
		WaitedMS int64       `json:"waited_ms"`
		Final    bool        `json:"final"`
		Lease    string      `json:"lease"` // of the last attempt, if there was one
	}
	if err := decode(w, r, maxBody, &body); err != nil {
		return err
	}
	if !body.Final {
		return invalid("final", "must be true: attempts are recorded by their reports")
	}
	if body.WaitedMS < 0 || body.WaitedMS > 7*24*3_600_000 {
		return invalid("waited_ms", "must be 0 to seven days")
	}
	f := keeper.FinalFailure{
		Pool: body.Pool, Target: body.Target, Worker: workerName(r, body.Worker), Request: body.Request.request(), Reason: body.Reason,
		Attempts: body.Attempts, Waited: millis(body.WaitedMS), Lease: body.Lease,
	}
	if body.Class != "" {
		class, err := pool.ParseClass(body.Class)
		if err != nil {
			return invalid("class", err.Error())
		}
		f.Class = class
	}
	if err := s.k.AddFailure(r.Context(), f); err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, map[string]string{"result": "recorded"})
}
