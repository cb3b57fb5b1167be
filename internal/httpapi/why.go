package httpapi

import (
	"net/http"
	"strconv"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

type slotBody struct {
	Cause string    `json:"cause"`
	Until timestamp `json:"until"`
}

func slotsOf(slots pool.Slots, now pool.Time) []slotBody {
	list := []slotBody{}
	for cause, until := range slots {
		if until > now {
			list = append(list, slotBody{pool.Cause(cause).String(), stamp(until)})
		}
	}
	return list
}

type pairBody struct {
	Target      string     `json:"target"`
	NextOKAt    timestamp  `json:"next_ok_at"`
	Holds       []slotBody `json:"holds"`
	Streak      int        `json:"streak"`
	Provisional int        `json:"provisional"`
}

// why says what keeps a proxy where it is: its record, its rests, its pairs and
// its last failures.
func (s *Server) why(w http.ResponseWriter, r *http.Request) error {
	if err := onlyQuery(r.URL.Query(), "pool"); err != nil {
		return err
	}
	res, err := s.proxyByID(r)
	if err != nil {
		return err
	}
	failures, err := s.store.Failures(r.Context(), store.FailureQuery{
		Pool: poolOf(r.URL.Query()), Proxy: res.Proxy.ID.String(), Limit: 8,
	})
	if err != nil {
		return err
	}
	answer := struct {
		Proxy    proxyBody     `json:"proxy"`
		Because  string        `json:"because"`
		Holds    []slotBody    `json:"holds"`
		Pairs    []pairBody    `json:"pairs"`
		Failures []failureBody `json:"failures"`
	}{
		Proxy: proxyOf(&res.Proxy, res.Now), Because: because(&res.Proxy, res.Now), Holds: slotsOf(res.Proxy.Judge.Slots, res.Now),
		Pairs: []pairBody{}, Failures: failuresOf(poolOf(r.URL.Query()), failures.Failures),
	}
	for _, p := range res.Pairs {
		body := pairBody{Target: p.Target, NextOKAt: stamp(p.NextOK), Holds: []slotBody{}}
		if p.Charge != nil {
			body.Holds = slotsOf(p.Charge.Slots, res.Now)
			body.Streak, body.Provisional = int(p.Charge.Streak), int(p.Charge.Provisional)
		}
		answer.Pairs = append(answer.Pairs, body)
	}
	return writeJSON(w, http.StatusOK, answer)
}

// because is the state in a sentence.
func because(v *pool.ProxyView, now pool.Time) string {
	until := ""
	if v.Until > 0 {
		until = " until " + v.Until.Std().Format(timeFormat)
	}
	switch v.Status {
	case pool.StatusNew:
		return "never proven yet: one lease at a time until " + plural(2, "success", "successes")
	case pool.StatusProbation:
		return "its rest is over: one trial at a time"
	case pool.StatusActive:
		if v.Quality.GatedUntil > now {
			return "active, but kept back while others are ready: its last ten minutes are bad"
		}
		return "active"
	case pool.StatusCooling:
		return "cooling" + until + " after " + plural(int(v.Judge.Streak), "counted failure", "counted failures") + " in a row"
	case pool.StatusSuspended:
		return "suspended" + until + " after " + plural(int(v.Judge.Streak), "counted failure", "counted failures") +
			" in a row; the next lease then is a trial"
	case pool.StatusDraining:
		return "draining by order" + until + ": its leases run out, no new ones are granted"
	case pool.StatusDisabled:
		return "paused by order" + until
	case pool.StatusExpired:
		return "expired since " + v.Until.Std().Format(timeFormat)
	default:
		return ""
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
