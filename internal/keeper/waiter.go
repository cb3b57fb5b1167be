package keeper

import (
	"container/list"
	"strconv"
	"strings"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// waiter is one acquire in a line.
type waiter struct {
	params   store.AcquireParams
	selector string        // who has the same picks from the same proxies
	market   string        // ... on the same target
	class    string        // ... and takes and refuses the same of them: the lines
	answer   chan answer   // one answer, buffered
	refusal  *pool.Refusal // the last one; of a head, its line's

	seq    int64
	since  pool.Time
	line   *line
	place  *list.Element
	trying bool
	gone   bool // its caller has given up while it was tried
}

type answer struct {
	res  pool.AcquireResult
	err  error
	shed bool // it was asked to leave
}

func newWaiter(p store.AcquireParams) *waiter {
	w := &waiter{params: p, selector: p.Select.Class(), answer: make(chan answer, 1)}
	w.market = p.Target + "\x00" + w.selector + p.Session
	var own strings.Builder
	own.WriteString(w.market)
	for _, id := range p.Select.Exclude {
		own.WriteString("\x00" + id.String())
	}
	own.WriteString("\x00" + strconv.FormatBool(p.LeastBad))
	w.class = own.String()
	return w
}

func (w *waiter) tenant() string { return w.params.Tenant }

// dries says whether a refusal of this waiter holds for all of its selector: no
// proxy is free, whatever the target. A session asks for its own proxy only.
func (w *waiter) dries(r *pool.Refusal) bool {
	if w.params.Session != "" || !r.Exact {
		return false
	}
	for _, free := range []pool.Reason{pool.ReasonReuseInterval, pool.ReasonPairCooling, pool.ReasonExcluded, pool.ReasonTargetPaced, pool.ReasonGated} {
		if r.Reasons[free] > 0 {
			return false
		}
	}
	return true
}

// usable is how many proxies a refusal counts that serve this target again, now
// or within a cooldown.
func usable(r *pool.Refusal) int {
	n := 0
	for _, reason := range []pool.Reason{
		pool.ReasonLeased, pool.ReasonReuseInterval, pool.ReasonProbation, pool.ReasonGated, pool.ReasonTargetPaced,
	} {
		n += r.Reasons[reason]
	}
	return n
}
