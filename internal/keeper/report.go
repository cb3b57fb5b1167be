package keeper

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// Report is what a worker saw with a lease.
type Report struct {
	Lease string
	Fence int64 // 0 = not checked
	Facts judge.Facts

	from    token    // what the lease's id says
	unknown []string // matched rules that the target does not have
}

// Reported is the answer to one report. Err is set when the entry itself is bad;
// it never spoils the others.
type Reported struct {
	Lease  string
	Result pool.Result
	Class  pool.Class
	Retry  Retry
	Err    error
	// UnknownRules are matched names that the target's rules do not have: the
	// worker's rules are out of date.
	UnknownRules []string
}

// Retry says whether the request may be tried again, on another proxy.
type Retry struct {
	Allowed bool
	After   time.Duration
	Reason  string
}

// Reports takes reports, one answer each, in order. The error is that of the
// store as a whole: then nothing is known to have been taken, and the caller
// keeps the reports.
func (k *Keeper) Reports(ctx context.Context, list []Report) ([]Reported, error) {
	out := make([]Reported, len(list))
	byPool := map[string][]int{}
	endings := make([]pool.Ending, len(list))
	tokens := make([]token, len(list))
	for i, r := range list {
		out[i].Lease = r.Lease
		t, ending, err := k.ending(&r)
		if err != nil {
			out[i].Err = err
			continue
		}
		endings[i], tokens[i], out[i].UnknownRules = ending, t, r.unknown
		byPool[t.Pool] = append(byPool[t.Pool], i)
	}
	for name, places := range byPool {
		batch := make([]pool.Ending, len(places))
		for j, i := range places {
			batch[j] = endings[i]
		}
		res, err := k.store.Settle(ctx, store.SettleParams{Pool: name, Endings: batch})
		if errors.Is(err, store.ErrNoPool) {
			for _, i := range places {
				out[i].Err = err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		ended := 0
		for j, i := range places {
			out[i].Result, out[i].Class = res[j].Result, res[j].Class
			out[i].Retry = retry(res[j].Class, &batch[j].Outcome)
			if res[j].Result == pool.ResultApplied {
				k.sawValid(&tokens[i], batch[j].Outcome.Valid)
				ended++
				k.held(&tokens[i])
			}
		}
		k.cameBack(name, ended)
	}
	return out, nil
}

// ending turns a report into what the store settles.
func (k *Keeper) ending(r *Report) (t token, e pool.Ending, err error) {
	t, err = decode(r.Lease, k.keys.Lease)
	if err != nil {
		return t, e, err
	}
	policy, ok := k.policy(t.Pool)
	if !ok {
		return t, e, fmt.Errorf("%w: %q", store.ErrNoPool, t.Pool)
	}
	if err := r.Facts.Validate(); err != nil {
		return t, e, err
	}
	r.from = t
	k.applyRules(r, judge.Budgets(policy.Timeouts))
	outcome := judge.Observe(r.Facts, judge.Budgets(policy.Timeouts), k.store.Now())
	outcome.Request = cleanRequest(outcome.Request, policy.KeepQuery)
	return t, pool.Ending{Key: t.Key, Kind: pool.EndReport, Fence: r.Fence, Outcome: outcome}, nil
}

// Release gives a lease back unused. Revoke takes it back.
func (k *Keeper) Release(ctx context.Context, lease string) (pool.Result, error) {
	return k.endUnreported(ctx, lease, pool.EndRelease)
}

// Revoke ends a lease by an operator's order; the pair rests, since the request
// may be under way.
func (k *Keeper) Revoke(ctx context.Context, lease string) (pool.Result, error) {
	return k.endUnreported(ctx, lease, pool.EndRevoke)
}

func (k *Keeper) endUnreported(ctx context.Context, lease string, kind pool.EndKind) (pool.Result, error) {
	t, err := decode(lease, k.keys.Lease)
	if err != nil {
		return 0, err
	}
	res, err := k.store.Settle(ctx, store.SettleParams{Pool: t.Pool, Endings: []pool.Ending{{Key: t.Key, Kind: kind}}})
	if err != nil {
		return 0, err
	}
	k.cameBack(t.Pool, 1)
	return res[0].Result, nil
}

// Beat is one lease of a heartbeat.
type Beat struct {
	Lease string
	Fence int64
}

// Beaten is the answer for one lease.
type Beaten struct {
	Lease   string
	Result  pool.BeatResult
	Expires pool.Time // 0 unless the lease lives
}

// Heartbeat extends a worker's leases. Foreign ids answer "lost".
func (k *Keeper) Heartbeat(ctx context.Context, tenant, worker string, concurrency int, beats []Beat) ([]Beaten, []Advice, error) {
	if err := checkText("worker", worker, 200); err != nil {
		return nil, nil, err
	}
	out := make([]Beaten, len(beats))
	byPool := map[string][]int{}
	keys := make([]pool.Beat, len(beats))
	for i, b := range beats {
		out[i] = Beaten{Lease: b.Lease, Result: pool.BeatLost}
		t, err := decode(b.Lease, k.keys.Lease)
		if err != nil {
			continue
		}
		keys[i] = pool.Beat{Key: t.Key, Fence: b.Fence}
		byPool[t.Pool] = append(byPool[t.Pool], i)
	}
	if len(beats) == 0 {
		byPool[DefaultPool] = nil // a sign of life all the same
	}
	var advice []Advice
	for name, places := range byPool {
		batch := make([]pool.Beat, len(places))
		for j, i := range places {
			batch[j] = keys[i]
		}
		res, err := k.store.Extend(ctx, store.ExtendParams{
			Pool: name, Tenant: tenant, Worker: worker, Concurrency: concurrency, Leases: batch,
		})
		if errors.Is(err, store.ErrNoPool) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		advised := map[string]bool{}
		for j, i := range places {
			out[i].Result, out[i].Expires = res[j].Result, res[j].Deadline
			if target := res[j].Target; target != "" && !advised[target] {
				advised[target] = true
				advice = append(advice, k.advise(ctx, name, target, workerName{tenant, worker}, concurrency))
			}
		}
	}
	return out, advice, nil
}

// Note is what a worker learnt of a lease's data afterwards.
type Note struct {
	Lease string
	Fence int64
	Valid *bool
	Items int64
	Ban   bool
}

// NotesTaken says how many notes were taken and whether the batch was known.
type NotesTaken struct {
	Taken     int
	Unknown   int // foreign, or too late
	Duplicate bool
}

// Notes takes a batch of notes of a worker. seq numbers the worker's batches: one
// that was seen is not taken again; 0 = not numbered.
func (k *Keeper) Notes(ctx context.Context, tenant, worker string, seq int64, notes []Note) (NotesTaken, error) {
	if err := checkText("worker", worker, 200); err != nil {
		return NotesTaken{}, err
	}
	byPool := map[string][]pool.Note{}
	for _, n := range notes {
		t, err := decode(n.Lease, k.keys.Lease)
		if err != nil || n.Fence != 0 && n.Fence != t.Fence {
			continue
		}
		k.sawValid(&t, verity(n.Valid))
		byPool[t.Pool] = append(byPool[t.Pool], pool.Note{
			Key: t.Key, Proxy: t.Proxy, Target: t.Target, Granted: t.Granted, Fence: t.Fence,
			Valid: verity(n.Valid), Items: n.Items, Ban: n.Ban,
		})
	}
	var total NotesTaken
	for name, batch := range byPool {
		res, err := k.store.Note(ctx, store.NoteParams{Pool: name, Tenant: tenant, Worker: worker, Seq: seq, Notes: batch})
		if errors.Is(err, store.ErrNoPool) {
			continue
		}
		if err != nil {
			return total, err
		}
		total.Taken += res.Taken
		total.Duplicate = total.Duplicate || res.Duplicate
	}
	if !total.Duplicate {
		total.Unknown = len(notes) - total.Taken
	}
	return total, nil
}

func verity(b *bool) pool.Verity {
	switch {
	case b == nil:
		return pool.Unknown
	case *b:
		return pool.Valid
	default:
		return pool.Invalid
	}
}

// maxRetries is how often a request is worth another proxy (docs/policy.md, retry budget).
const maxRetries = 2

// retry says whether another try is worth it. Budgets per target come on top of
// this where they are known.
func retry(class pool.Class, o *pool.Outcome) Retry {
	e := class.Effect()
	switch {
	case e.Success || class == pool.ClassTunnelDone:
		return Retry{Reason: "done"}
	case class == pool.ClassClientFault:
		return Retry{Reason: "the request itself is at fault"}
	case class == pool.ClassNone:
		return Retry{Reason: "unknown lease"}
	case o.Request.Attempt > maxRetries:
		return Retry{Reason: fmt.Sprintf("attempt %d is past the limit of %d retries", o.Request.Attempt, maxRetries)}
	case !repeatable(o):
		return Retry{Reason: "the method is not idempotent and the request was sent"}
	}
	base := min(30*time.Second, time.Second<<min(o.Request.Attempt, 5))
	return Retry{Allowed: true, After: o.RetryAfter + jitter(base), Reason: "another proxy may do better"}
}

// repeatable says whether a second sending can do no harm.
func repeatable(o *pool.Outcome) bool {
	switch o.Request.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	switch judge.Phase(o.Phase) {
	case judge.PhaseLocal, judge.PhaseProxyDial, judge.PhaseProxyTLS, judge.PhaseHandshake, judge.PhaseTargetTLS:
		return true
	}
	return false
}

// cleanRequest takes credentials, and unless asked to keep them query values,
// out of a URL that will be stored.
func cleanRequest(r pool.Request, keepQuery bool) pool.Request {
	if r.URL == "" {
		return r
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		r.URL = "(not a URL)" // the text may hold anything; the error quotes it
		return r
	}
	u.User = nil
	u.Fragment = ""
	if !keepQuery && u.RawQuery != "" {
		u.RawQuery = cutValues(u.RawQuery)
	}
	r.URL = u.String()
	return r
}

// cutValues keeps the names of a query.
func cutValues(query string) string {
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, _, _ := strings.Cut(part, "=")
		parts[i] = name
	}
	return strings.Join(parts, "&")
}

// endUse ends a lease without a word on its outcome; unlike a release it was
// used, so the pair goes on resting.
func (k *Keeper) endUse(ctx context.Context, lease string) (pool.Result, error) {
	return k.endUnreported(ctx, lease, pool.EndUse)
}
