package keeper

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/store"
)

// AcquireRequest asks for leases. Fields that are not set take the pool's defaults.
type AcquireRequest struct {
	Pool              string
	Target            string // required: a name, a host, or a URL
	Tenant            string
	Worker            string
	WorkerConcurrency int
	RequestID         string
	Count             int           // 1..100
	TTL               time.Duration // 1 s .. 10 min
	Wait              time.Duration // 0 .. 60 s
	Session           string
	Select            pool.Selector
	LeastBad          bool
	Request           pool.Request
}

// Lease is a granted lease as its holder sees it.
type Lease struct {
	ID       string
	Proxy    proxy.Proxy
	ProxyID  proxy.ID
	Region   string
	Labels   pool.Labels
	Pool     string
	Target   string
	Worker   string
	Session  string
	Moved    bool
	Previous proxy.ID
	Fence    int64
	Granted  pool.Time
	Expires  pool.Time
	TTL      time.Duration
	Timeouts pool.Timeouts
	Relaxed  []string
	Rules    string // etag of the target's body rules; "" = there are none
}

// Advice tells a worker its fair share.
type Advice struct {
	Target      string
	Concurrency int
	StartGap    time.Duration
}

// Acquired is the answer to an acquire: leases, or a refusal.
type Acquired struct {
	Leases  []Lease
	Refusal *pool.Refusal
	// RetryAfter is when to come back after a refusal.
	RetryAfter time.Duration
	Advice     Advice
}

// Acquire lends proxies, waiting for them if asked. Errors: *InputError,
// store.ErrNoPool, store.ErrUnavailable, pool.ErrCallEnded, pool.ErrCallConflict,
// ErrStopping, and the context's.
func (k *Keeper) Acquire(ctx context.Context, r AcquireRequest) (Acquired, error) {
	k.asks.Add(1)
	if err := r.complete(); err != nil {
		return Acquired{}, err
	}
	policy, ok := k.policy(r.Pool)
	if !ok {
		return Acquired{}, fmt.Errorf("%w: %q", store.ErrNoPool, r.Pool)
	}
	params := store.AcquireParams{Pool: r.Pool, AcquireParams: pool.AcquireParams{
		CallID: r.RequestID, Digest: r.digest(), Target: r.Target, Tenant: r.Tenant, Worker: r.Worker,
		Concurrency: r.WorkerConcurrency, Count: r.Count, TTL: r.TTL, Session: r.Session, Select: r.Select,
		LeastBad: r.LeastBad, Request: cleanRequest(r.Request, policy.KeepQuery),
	}}
	res, from, err := k.acquireAnywhere(ctx, params, &policy, r.Wait)
	if err != nil {
		return Acquired{}, err
	}
	if ctx.Err() != nil {
		k.giveBack(from, res.Grants)
		return Acquired{}, ctx.Err()
	}
	a := Acquired{Refusal: res.Refusal, Advice: k.advise(ctx, from, r.Target, workerName{r.Tenant, r.Worker}, r.WorkerConcurrency)}
	if res.Refusal != nil {
		a.RetryAfter = k.retryAfter(res.Refusal, res.estimate)
	}
	if from != r.Pool {
		policy, _ = k.policy(from)
	}
	for i := range res.Grants {
		a.Leases = append(a.Leases, k.lease(from, &policy, &res.Grants[i]))
	}
	return a, nil
}

// tried is what the store answered, or the room in its place.
type tried struct {
	pool.AcquireResult
	// estimate is how long a caller that comes back will wait; 0 = not known.
	estimate time.Duration
}

// acquire tries at once, unless somebody of the same class waits already, and
// then waits if that can help.
func (k *Keeper) acquire(ctx context.Context, p store.AcquireParams, wait time.Duration) (tried, error) {
	room, w := k.room(p.Pool), newWaiter(p)
	if s := room.ahead(w); s.ahead > 0 {
		if wait <= 0 || s.atBest > wait {
			return refusedBehind(&s), nil
		}
		w.refusal = s.refusal
		return room.wait(ctx, w, wait)
	}
	room.giveWay(ctx)
	res, err := k.store.Acquire(ctx, p)
	if err != nil || res.Refusal == nil {
		return tried{AcquireResult: res}, err
	}
	never := !res.Refusal.Held && res.Refusal.Exact && !dueBefore(res.Refusal, k.store.Now().Add(wait))
	if wait <= 0 || never {
		return tried{res, room.turnIn(w, res.Refusal)}, nil
	}
	w.refusal = res.Refusal
	return room.wait(ctx, w, wait)
}

func dueBefore(r *pool.Refusal, deadline pool.Time) bool {
	return r.NextDue != 0 && r.NextDue <= deadline
}

// giveBack releases leases that nobody will use.
func (k *Keeper) giveBack(poolName string, grants []pool.Grant) {
	if len(grants) == 0 {
		return
	}
	endings := make([]pool.Ending, len(grants))
	for i := range grants {
		endings[i] = pool.Ending{Key: grants[i].Lease.Key, Kind: pool.EndRelease}
	}
	if _, err := k.store.Settle(context.WithoutCancel(k.base), store.SettleParams{Pool: poolName, Endings: endings}); err != nil {
		k.log.Warn("could not give back leases of a caller that left; they run out by themselves", "pool", poolName, "error", err)
		return
	}
	k.cameBack(poolName, len(grants))
}

// retryAfter is when a refused caller should come back: when something falls due
// for it, or when its turn would come.
func (k *Keeper) retryAfter(r *pool.Refusal, estimate time.Duration) time.Duration {
	const least, soon, none = 100 * time.Millisecond, time.Second, 5 * time.Second
	wait := none
	if r.NextDue != 0 {
		wait = r.NextDue.Sub(k.store.Now())
	}
	switch {
	case r.Reasons[pool.ReasonOverloaded] > 0 && estimate > 0:
		wait = estimate
	case r.Held && estimate > 0:
		wait = min(wait, estimate)
	case r.Held || !r.Exact:
		wait = min(wait, soon)
	}
	return min(max(wait, least), time.Hour)
}

func (k *Keeper) lease(poolName string, policy *pool.Policy, g *pool.Grant) Lease {
	l := &g.Lease
	out := Lease{
		Proxy: g.Proxy(), ProxyID: g.ID, Region: g.Spec.Region, Labels: g.Spec.Labels, Pool: poolName, Target: g.Target, Worker: g.Worker,
		Session: l.More.Session, Moved: l.More.Moved, Previous: l.More.Previous, Fence: l.Fence, Granted: l.Granted,
		Expires: l.Deadline, TTL: l.TTL, Timeouts: policy.Timeouts,
	}
	out.ID = token{Pool: poolName, Key: l.Key, Proxy: g.ID, Target: g.Target, Granted: l.Granted, Fence: l.Fence}.encode(k.keys.Lease)
	out.Rules = k.Rules(poolName, g.Target).ETag()
	if l.More.Relaxed {
		out.Relaxed = []string{"gate", "pair_failure"}
	}
	return out
}

// complete fills defaults and checks bounds.
func (r *AcquireRequest) complete() error {
	setDefault(&r.Pool, DefaultPool)
	setDefault(&r.Count, 1)
	target, err := TargetName(r.Target)
	if err != nil {
		return err
	}
	r.Target = target
	for _, f := range []struct {
		field string
		value string
		most  int
	}{
		{"worker", r.Worker, 200},
		{"request_id", r.RequestID, 200},
		{"session", r.Session, 200},
		{"select.region", r.Select.Region, 100},
		{"select.scheme", r.Select.Scheme, 20},
		{"select.group", r.Select.Group, 200},
		{"request.url", r.Request.URL, 8192},
		{"request.fingerprint", r.Request.Fingerprint, 200},
		{"request.method", r.Request.Method, 40},
	} {
		if err := checkText(f.field, f.value, f.most); err != nil {
			return err
		}
	}
	switch {
	case r.Count < 1 || r.Count > 100:
		return &InputError{"count", "must be 1 to 100"}
	case r.TTL != 0 && (r.TTL < time.Second || r.TTL > 10*time.Minute):
		return &InputError{"ttl_ms", "must be 1000 to 600000"}
	case r.Wait < 0 || r.Wait > time.Minute:
		return &InputError{"wait_ms", "must be 0 to 60000"}
	case r.WorkerConcurrency < 0 || r.WorkerConcurrency > 1_000_000:
		return &InputError{"worker_concurrency", "must be 0 to 1000000"}
	case len(r.Select.Labels) > 20:
		return &InputError{"select.labels", "has more than 20 entries"}
	case len(r.Select.Exclude) > 100:
		return &InputError{"select.exclude", "has more than 100 entries"}
	case r.Request.Attempt < 0 || r.Request.Attempt > 1_000_000:
		return &InputError{"request.attempt", "must be 0 to 1000000"}
	}
	return nil
}

func setDefault[T comparable](to *T, v T) {
	var zero T
	if *to == zero {
		*to = v
	}
}

func checkText(field, value string, most int) error {
	if len(value) > most {
		return &InputError{field, fmt.Sprintf("is longer than %d bytes", most)}
	}
	for _, c := range value {
		if c < 0x20 || c == 0x7f || c == '\ufffd' {
			return &InputError{field, "holds control characters or is not UTF-8"}
		}
	}
	return nil
}

// digest tells whether two acquires of one request id ask for the same.
func (r *AcquireRequest) digest() uint64 {
	if r.RequestID == "" {
		return 0
	}
	h := fnv.New64a()
	same := *r
	same.Wait, same.WorkerConcurrency = 0, 0 // how long to wait is not what is asked for
	_ = json.NewEncoder(h).Encode(same)      // plain data into a hash: cannot fail
	return h.Sum64()
}

// TargetName gives the target of what a caller wrote: the registrable domain of
// a host or URL, ip:port for an address, or the name itself.
func TargetName(s string) (string, error) {
	if s == "" {
		return "", &InputError{"target", "is missing: name the site that the request goes to"}
	}
	if err := checkText("target", s, 2048); err != nil {
		return "", err
	}
	host := s
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		host = authority(scheme, rest)
	}
	if len(host) > 253 || host == "" || strings.ContainsAny(host, "/?#@ \\") {
		return "", &InputError{"target", "is neither a name, a host, nor a URL"}
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), ""
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		if port == "" {
			return addr.String(), nil
		}
		return net.JoinHostPort(addr.String(), port), nil
	}
	if !strings.Contains(name, ".") {
		return name, nil // a name that the caller gives
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if domain, err := publicsuffix.EffectiveTLDPlusOne(name); err == nil {
		return domain, nil
	}
	return name, nil
}

// authority gives the host and port of a URL, without its credentials.
func authority(scheme, rest string) string {
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = rest[i+1:]
	}
	name := strings.Trim(rest, "[]")
	if addr, err := netip.ParseAddr(name); err == nil { // an address without a port gets the scheme's
		port := "80"
		if scheme == "https" || scheme == "wss" {
			port = "443"
		}
		return net.JoinHostPort(addr.String(), port)
	}
	return rest
}
