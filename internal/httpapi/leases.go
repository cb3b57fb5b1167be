package httpapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
)

// request turns a body into what the keeper is asked.
func (b *acquireBody) request(r *http.Request) (keeper.AcquireRequest, error) {
	req := keeper.AcquireRequest{
		Pool: b.Pool, Target: b.Target, Tenant: tenantOf(r), Worker: workerName(r, b.Worker), WorkerConcurrency: b.WorkerConcurrency,
		RequestID: b.RequestID, Wait: millis(b.WaitMS), Session: b.Session, LeastBad: b.LeastBad, Request: b.Request.request(),
		Select: pool.Selector{Region: b.Select.Region, Scheme: b.Select.Scheme, Group: b.Select.Group, Labels: b.Select.Labels},
	}
	if b.WaitMS < 0 || b.WaitMS > 60_000 {
		return req, invalid("wait_ms", "must be 0 to 60000")
	}
	if b.Count != nil {
		if req.Count = *b.Count; req.Count < 1 || req.Count > 100 {
			return req, invalid("count", "must be 1 to 100")
		}
	}
	if b.TTLMS != nil {
		if *b.TTLMS < 1000 || *b.TTLMS > 600_000 {
			return req, invalid("ttl_ms", "must be 1000 to 600000")
		}
		req.TTL = millis(*b.TTLMS)
	}
	if b.Select.Scheme != "" {
		scheme, err := proxy.ParseScheme(b.Select.Scheme)
		if err != nil {
			return req, invalid("select.scheme", err.Error())
		}
		req.Select.Scheme = string(scheme)
	}
	for _, text := range b.Select.Exclude {
		id, err := proxy.ParseID(text)
		if err != nil {
			return req, invalid("select.exclude", err.Error())
		}
		req.Select.Exclude = append(req.Select.Exclude, id)
	}
	return req, nil
}

// workerName is the worker's own name, or its address: a crash is then at least
// traced to a machine.
func workerName(r *http.Request, given string) string {
	if given != "" {
		return given
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if tenant := tenantOf(r); tenant != "" {
		return tenant + "@" + host
	}
	return host
}

func (s *Server) acquire(w http.ResponseWriter, r *http.Request) error {
	var body acquireBody
	if err := decode(w, r, maxBody, &body); err != nil {
		return err
	}
	acquired, err := s.lend(r, &body)
	if err != nil {
		return err
	}
	if acquired.Refusal != nil {
		return noProxy(&acquired)
	}
	return writeJSON(w, http.StatusOK, acquiredOf(&acquired))
}

func (s *Server) lend(r *http.Request, body *acquireBody) (keeper.Acquired, error) {
	req, err := body.request(r)
	if err != nil {
		return keeper.Acquired{}, err
	}
	return s.k.Acquire(r.Context(), req)
}

func acquiredOf(a *keeper.Acquired) acquiredBody {
	body := acquiredBody{Leases: []leaseBody{}, Advice: adviceOf(a.Advice)}
	for i := range a.Leases {
		body.Leases = append(body.Leases, leaseOf(&a.Leases[i]))
	}
	return body
}

// noProxy is the answer when none is free: why, and when to come back.
func noProxy(a *keeper.Acquired) *problem {
	p := problemOf(http.StatusServiceUnavailable, "no-proxy", "no proxy is free for this target now")
	p.Reasons = map[string]int{}
	known := 0
	for reason, n := range a.Refusal.Reasons {
		p.Reasons[pool.Reason(reason).String()] = n
		known += n
	}
	if known == 0 && a.Refusal.Exact {
		p.Detail = "the pool holds no proxies: import some first"
	}
	p.Exact = &a.Refusal.Exact
	p.RetryAfterMS = max(1, a.RetryAfter.Milliseconds())
	p.Advice = adviceOf(a.Advice)
	return p
}

func (s *Server) report(w http.ResponseWriter, r *http.Request) error {
	var body factsBody
	if err := decode(w, r, maxBody, &body); err != nil {
		return err
	}
	facts, err := body.facts()
	if err != nil {
		return err
	}
	res, err := s.k.Reports(r.Context(), []keeper.Report{{Lease: r.PathValue("id"), Fence: body.Fence, Facts: facts}})
	if err != nil {
		return err
	}
	if res[0].Err != nil {
		return res[0].Err
	}
	answer := reportedOf(&res[0])
	answer.Lease = ""
	return writeJSON(w, http.StatusOK, answer)
}

// settleReports answers a list of reports; entries that cannot be read as facts
// are invalid, one by one.
func (s *Server) settleReports(ctx context.Context, list []leaseReport) ([]reportedBody, error) {
	if len(list) > 1000 {
		return nil, invalid("reports", "has more than 1000 entries")
	}
	out := make([]reportedBody, len(list))
	var reports []keeper.Report
	var places []int
	for i := range list {
		facts, err := list[i].facts()
		if err != nil {
			out[i] = reportedBody{Lease: list[i].Lease, Result: "invalid", Detail: toProblem(err).Detail}
			continue
		}
		reports = append(reports, keeper.Report{Lease: list[i].Lease, Fence: list[i].Fence, Facts: facts})
		places = append(places, i)
	}
	res, err := s.k.Reports(ctx, reports)
	if err != nil {
		return nil, err
	}
	for j, i := range places {
		out[i] = reportedOf(&res[j])
	}
	return out, nil
}

func (s *Server) reports(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Reports []leaseReport `json:"reports"`
	}
	if err := decode(w, r, maxBatch, &body); err != nil {
		return err
	}
	results, err := s.settleReports(r.Context(), body.Reports)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"results": results})
}

func (s *Server) release(w http.ResponseWriter, r *http.Request) error {
	if err := decode(w, r, maxBody, &struct{}{}); err != nil {
		return err
	}
	result, err := s.k.Release(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]string{"result": result.String()})
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) error {
	result, err := s.k.Revoke(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if result != pool.ResultApplied {
		actOf(r).result = result.String()
	} else {
		actOf(r).count = 1
	}
	return writeJSON(w, http.StatusOK, map[string]string{"result": result.String()})
}

type notesBody struct {
	Worker string     `json:"worker"`
	Seq    int64      `json:"seq"`
	Notes  []noteBody `json:"notes"`
}

type notesAnswer struct {
	Taken     int  `json:"taken"`
	Unknown   int  `json:"unknown"`
	Duplicate bool `json:"duplicate"`
}

func (s *Server) takeNotes(r *http.Request, body *notesBody) (notesAnswer, error) {
	if len(body.Notes) > 1000 {
		return notesAnswer{}, invalid("notes", "has more than 1000 entries")
	}
	list := make([]keeper.Note, len(body.Notes))
	for i := range body.Notes {
		if n := body.Notes[i].Items; n < 0 || n > 1<<40 {
			return notesAnswer{}, invalid("items", "must be 0 to 1099511627776")
		}
		list[i] = body.Notes[i].note()
	}
	res, err := s.k.Notes(r.Context(), tenantOf(r), workerName(r, body.Worker), body.Seq, list)
	return notesAnswer{res.Taken, res.Unknown, res.Duplicate}, err
}

func (s *Server) notes(w http.ResponseWriter, r *http.Request) error {
	var body notesBody
	if err := decode(w, r, maxBatch, &body); err != nil {
		return err
	}
	answer, err := s.takeNotes(r, &body)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, answer)
}

func (s *Server) note(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		noteFacts
		Worker string `json:"worker"`
	}
	if err := decode(w, r, maxBody, &body); err != nil {
		return err
	}
	answer, err := s.takeNotes(r, &notesBody{Worker: body.Worker, Notes: []noteBody{{r.PathValue("id"), body.noteFacts}}})
	if err != nil {
		return err
	}
	if answer.Taken == 0 {
		return keeper.ErrUnknownLease
	}
	return writeJSON(w, http.StatusOK, answer)
}

func (s *Server) heartbeat(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Leases            []string         `json:"leases"`
		Fences            map[string]int64 `json:"fences"`
		WorkerConcurrency int              `json:"worker_concurrency"`
	}
	if err := decode(w, r, maxBatch, &body); err != nil {
		return err
	}
	if len(body.Leases) > 10_000 {
		return invalid("leases", "has more than 10000 entries")
	}
	if body.WorkerConcurrency < 0 || body.WorkerConcurrency > 1_000_000 {
		return invalid("worker_concurrency", "must be 0 to 1000000")
	}
	beats := make([]keeper.Beat, len(body.Leases))
	for i, id := range body.Leases {
		beats[i] = keeper.Beat{Lease: id, Fence: body.Fences[id]}
	}
	res, advice, err := s.k.Heartbeat(r.Context(), tenantOf(r), r.PathValue("worker"), body.WorkerConcurrency, beats)
	if err != nil {
		return err
	}
	type beaten struct {
		ID        string    `json:"id"`
		Result    string    `json:"result"`
		ExpiresAt timestamp `json:"expires_at"`
	}
	answer := struct {
		Leases []beaten      `json:"leases"`
		Advice []*adviceBody `json:"advice"`
	}{[]beaten{}, []*adviceBody{}}
	for _, b := range res {
		answer.Leases = append(answer.Leases, beaten{b.Lease, b.Result.String(), stamp(b.Expires)})
	}
	for _, a := range advice {
		body := adviceOf(a)
		body.Target = a.Target
		answer.Advice = append(answer.Advice, body)
	}
	return writeJSON(w, http.StatusOK, answer)
}

// exchange reports, notes and acquires in one call. It is answered with 200
// unless nothing of it could be done: each part says what became of it.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Reports []leaseReport `json:"reports"`
		Notes   []noteBody    `json:"notes"`
		Worker  string        `json:"worker"` // whose notes they are
		Seq     int64         `json:"seq"`    // the number of the batch of notes
		Acquire *acquireBody  `json:"acquire"`
	}
	if err := decode(w, r, maxBatch, &body); err != nil {
		return err
	}
	answer := struct {
		Results []reportedBody `json:"results"`
		Notes   *notesAnswer   `json:"notes,omitempty"`
		Leases  []leaseBody    `json:"leases"`
		NoProxy *problem       `json:"no_proxy"`
		Advice  *adviceBody    `json:"advice"`
	}{Results: []reportedBody{}, Leases: []leaseBody{}}
	var err error
	if answer.Results, err = s.settleReports(r.Context(), body.Reports); err != nil {
		return err
	}
	if body.Worker == "" && body.Acquire != nil {
		body.Worker = body.Acquire.Worker
	}
	if len(body.Notes) > 0 {
		notes, err := s.takeNotes(r, &notesBody{body.Worker, body.Seq, body.Notes})
		if err != nil {
			return err
		}
		answer.Notes = &notes
	}
	if body.Acquire != nil {
		acquired, err := s.lend(r, body.Acquire)
		switch {
		case errors.Is(err, context.Canceled):
			return err
		case err != nil:
			answer.NoProxy = toProblem(err) // the reports above were taken: the caller must learn that
		case acquired.Refusal != nil:
			answer.NoProxy, answer.Advice = noProxy(&acquired), adviceOf(acquired.Advice)
		default:
			done := acquiredOf(&acquired)
			answer.Leases, answer.Advice = done.Leases, done.Advice
		}
	}
	return writeJSON(w, http.StatusOK, answer)
}

// oneProxy is the call without ceremony: a proxy URL as text. It counts a use
// and a start of the pair, and holds a slot only as long as asked.
func (s *Server) oneProxy(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := onlyQuery(q, "pool", "target", "hold_ms"); err != nil {
		return err
	}
	hold := int64(0)
	if text := q.Get("hold_ms"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > 600_000 {
			return invalid("hold_ms", "must be 0 to 600000")
		}
		hold = n
	}
	lease, refused, err := s.k.UseOnce(r.Context(), keeper.AcquireRequest{
		Pool: q.Get("pool"), Target: q.Get("target"), Tenant: tenantOf(r), Worker: workerName(r, ""),
	}, time.Duration(hold)*time.Millisecond)
	if err != nil {
		return err
	}
	if refused != nil {
		return noProxy(refused)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err = w.Write([]byte(lease.Proxy.URL().String() + "\n"))
	return err
}
