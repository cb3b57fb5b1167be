package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/hostler-proxy/hostler/internal/keeper"
)

type lineSelector struct {
	Region string            `json:"region"`
	Scheme string            `json:"scheme"`
	Group  string            `json:"group"`
	Labels map[string]string `json:"labels"`
}

type waitingBody struct {
	Tenant     string       `json:"tenant"`
	Target     string       `json:"target"`
	Session    string       `json:"session"`
	Selector   lineSelector `json:"selector"`
	Count      int          `json:"count"`
	OldestMS   int64        `json:"oldest_ms"`
	EstimateMS *int64       `json:"estimate_ms"`
}

// listWaiters shows who waits, line by line.
func (s *Server) listWaiters(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := onlyQuery(q, "pool", "limit"); err != nil {
		return err
	}
	limit, err := limitOf(q, 50, 10_000)
	if err != nil {
		return err
	}
	name := poolOf(q)
	list, err := s.k.Waiters(name)
	if err != nil {
		return err
	}
	total := 0
	out := []waitingBody{}
	for i := range list {
		total += list[i].Count
		if i < limit {
			out = append(out, waitingOf(&list[i]))
		}
	}
	return writeJSON(w, http.StatusOK, map[string]any{"pool": name, "waiting": total, "lines": out})
}

func waitingOf(l *keeper.WaitingLine) waitingBody {
	b := waitingBody{
		Tenant: l.Tenant, Target: l.Target, Session: l.Session, Count: l.Count, OldestMS: l.Oldest.Milliseconds(),
		Selector: lineSelector{l.Selector.Region, l.Selector.Scheme, l.Selector.Group, l.Selector.Labels},
	}
	if b.Selector.Labels == nil {
		b.Selector.Labels = map[string]string{}
	}
	if l.Estimate > 0 {
		b.EstimateMS = new(max(1, l.Estimate.Milliseconds()))
	}
	return b
}

type capacityBody struct {
	Available   int          `json:"available_proxies"`
	Total       int          `json:"total_concurrency"`
	PerProxy    float64      `json:"concurrency_per_proxy"`
	RPS         float64      `json:"rps"`
	Concurrency int          `json:"concurrency"`
	Workers     int          `json:"workers"`
	LimitedBy   string       `json:"limited_by"`
	NextProxyMS *int64       `json:"next_proxy_in_ms"`
	From        capacityFrom `json:"from"`
}

// capacityFrom is what a capacity was reckoned from.
type capacityFrom struct {
	Pool            string `json:"pool"`
	Target          string `json:"target"`
	ReuseMS         int64  `json:"reuse_interval_ms"`
	LatencyMS       int64  `json:"latency_ms"`
	LatencyMeasured bool   `json:"latency_measured"`
}

// capacity tells what a pool can do for a target, or could with other numbers.
func (s *Server) capacity(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := onlyQuery(q, "pool", "target", "proxies", "reuse_ms", "latency_ms"); err != nil {
		return err
	}
	req := keeper.CapacityRequest{Pool: poolOf(q), Target: q.Get("target")}
	proxies, err := wholeOf(q, "proxies", 4_000_000)
	if err != nil {
		return err
	}
	if proxies != nil {
		req.Proxies = new(int(*proxies))
	}
	if req.Reuse, err = spanOf(q, "reuse_ms", 86_400_000); err != nil {
		return err
	}
	if req.Hold, err = spanOf(q, "latency_ms", 3_600_000); err != nil {
		return err
	}
	c, err := s.k.Capacity(r.Context(), req)
	if err != nil {
		return err
	}
	b := capacityBody{
		Available: c.Proxies, Total: c.Slots, PerProxy: c.PerProxy, RPS: c.RPS, Concurrency: c.Concurrency, Workers: c.Workers,
		LimitedBy: string(c.LimitedBy),
		From:      capacityFrom{req.Pool, c.Target, c.Reuse.Milliseconds(), c.Hold.Milliseconds(), c.HoldKnown},
	}
	if c.NextProxy >= 0 {
		b.NextProxyMS = new(c.NextProxy.Milliseconds())
	}
	return writeJSON(w, http.StatusOK, b)
}

// wholeOf reads a whole number of at least 0; nil when it is not given.
func wholeOf(q url.Values, name string, most int64) (*int64, error) {
	text := q.Get(name)
	if text == "" {
		return nil, nil //nolint:nilnil // not given is a possible answer
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return nil, invalid(name, "must be 0 to "+strconv.FormatInt(most, 10))
	}
	return &n, nil
}

func spanOf(q url.Values, name string, most int64) (*time.Duration, error) {
	n, err := wholeOf(q, name, most)
	if n == nil || err != nil {
		return nil, err
	}
	return new(millis(*n)), nil
}
