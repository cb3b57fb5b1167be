package keeper

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
	"github.com/hostler-proxy/hostler/internal/store"
)

// ImportRequest brings a list in. What the list itself says of a proxy wins over
// what the request says of all.
type ImportRequest struct {
	Pool         string
	Format       proxy.Format // auto if empty
	Scheme       proxy.Scheme // of lines that name none
	MapScheme    map[proxy.Scheme]proxy.Scheme
	Columns      []string // header of a CSV list that has none
	Exit         string   // "", static, rotating, template
	Region       string
	Group        string
	Source       string
	Labels       map[string]string
	Cap          int
	ExpiresAt    pool.Time
	TTL          time.Duration // expires that long after now
	AllowSpecial bool
	Body         io.Reader
}

// ImportResult counts what became of the list's lines.
type ImportResult struct {
	Accepted   int
	Updated    int
	Duplicates int
	Rejections int               // all of them
	Rejected   []proxy.Rejection // the first thousand
	Ignored    []proxy.Rejection
}

// importBatch is how many proxies go into the store at once. An acquire beside an
// import waits for one such commit, and for another that goes with its own; larger
// ones import no faster (docs/performance.md).
const importBatch = 32

// Import reads a list and puts its proxies into a pool, which is made if there
// is none. Bad lines never stop the rest.
func (k *Keeper) Import(ctx context.Context, r ImportRequest) (ImportResult, error) {
	var res ImportResult
	setDefault(&r.Pool, DefaultPool)
	if err := r.check(); err != nil {
		return res, err
	}
	if err := k.EnsurePool(ctx, r.Pool); err != nil {
		return res, err
	}
	list := proxy.ReadList(r.Body, proxy.ListOptions{
		Format: r.Format, Scheme: r.Scheme, MapScheme: r.MapScheme, Columns: r.Columns, AllowSpecial: r.AllowSpecial,
	})
	pace := pacer{asks: k.asks.Load, now: k.store.Now}
	batch := make([]pool.Import, 0, importBatch)
	for more := true; more; {
		var entry proxy.Entry
		if entry, more = list.Next(); more {
			batch = append(batch, k.spec(&r, entry))
		}
		if len(batch) == importBatch || !more && len(batch) > 0 {
			pace.begin()
			done, err := k.store.Import(ctx, store.ImportParams{Pool: r.Pool, Proxies: batch})
			if err != nil {
				return res, err
			}
			if err := res.count(done); err != nil {
				return res, err
			}
			batch = batch[:0]
			k.wake(r.Pool) // who waits need not wait for the end of the list
			pace.rest(ctx)
		}
	}
	res.Rejections, res.Rejected, res.Ignored = list.RejectedCount(), list.Rejected(), list.Ignored()
	return res, list.Err()
}

func (r *ImportResult) count(done []pool.Imported) error {
	for _, d := range done {
		switch d {
		case pool.ImportedNew:
			r.Accepted++
		case pool.ImportedUpdated:
			r.Updated++
		case pool.ImportedDuplicate:
			r.Duplicates++
		case pool.ImportedFull:
			return &InputError{"body", "the pool is full: it cannot hold more proxies"}
		}
	}
	return nil
}

func (r *ImportRequest) check() error {
	for field, value := range map[string]string{"region": r.Region, "group": r.Group, "source": r.Source} {
		if err := checkText(field, value, 200); err != nil {
			return err
		}
	}
	for key, value := range r.Labels {
		if err := CheckLabel(key, value); err != nil {
			return err
		}
	}
	if r.Source == pool.ByHand {
		r.Source = ""
	}
	switch {
	case strings.Contains(r.Source, ","):
		return &InputError{"source", "holds a comma"}
	case r.Cap < 0 || r.Cap > 10_000:
		return &InputError{"cap", "must be 0 to 10000"}
	case r.TTL < 0 || r.TTL > 10*365*24*time.Hour:
		return &InputError{"ttl", "must be 0 to ten years"}
	case len(r.Labels) > 20:
		return &InputError{"labels", "has more than 20 entries"}
	}
	if r.Exit != "" {
		if _, err := pool.ParseExit(r.Exit); err != nil {
			return &InputError{"exit", err.Error()}
		}
	}
	return nil
}

// CheckLabel says whether a label can be kept: its text form uses = and commas.
func CheckLabel(key, value string) error {
	for _, s := range []string{key, value} {
		if err := checkText("labels", s, 100); err != nil {
			return err
		}
		for _, c := range s {
			if c == '=' || c == ',' {
				return &InputError{"labels", fmt.Sprintf("%q holds = or a comma", s)}
			}
		}
	}
	if key == "" {
		return &InputError{"labels", "has an entry without a name"}
	}
	return nil
}

// spec is what is put into the store for one entry.
func (k *Keeper) spec(r *ImportRequest, e proxy.Entry) pool.Import {
	p := e.Proxy.Canonical()
	spec := pool.Spec{
		Proxy: p, Region: r.Region, Group: r.Group, Source: r.Source, Labels: pool.MakeLabels(r.Labels), Cap: r.Cap,
		ExpiresAt: r.ExpiresAt,
	}
	if r.TTL > 0 {
		spec.ExpiresAt = k.store.Now().Add(r.TTL)
	}
	if e.Region != "" {
		spec.Region = e.Region
	}
	if e.Group != "" {
		spec.Group = e.Group
	}
	if len(e.Labels) > 0 {
		spec.Labels = pool.MakeLabels(e.Labels)
	}
	if !e.ExpiresAt.IsZero() {
		spec.ExpiresAt = pool.At(e.ExpiresAt)
	}
	if e.Cap > 0 {
		spec.Cap = e.Cap
	}
	spec.Exit = usualExit(p)
	if said := cmp.Or(e.Exit, r.Exit); said != "" {
		spec.Exit, _ = pool.ParseExit(said) // checked before
	}
	return pool.Import{ID: p.ID(k.keys.ID), Spec: spec}
}

// Patch applies an operator's change; with dry it only counts.
func (k *Keeper) Patch(ctx context.Context, poolName string, f pool.Filter, p pool.Patch, dry bool) (int, error) {
	n, err := k.store.Patch(ctx, store.PatchParams{Pool: poolName, Filter: f, Patch: p, DryRun: dry})
	if err == nil && !dry {
		k.wake(poolName)
	}
	return n, err
}

// Remove drains proxies; each is gone when its last lease ends.
func (k *Keeper) Remove(ctx context.Context, poolName string, f pool.Filter) (int, error) {
	return k.store.Remove(ctx, store.RemoveParams{Pool: poolName, Filter: f})
}

// FinalFailure is a request that a caller gives up.
type FinalFailure struct {
	Pool     string
	Target   string
	Worker   string
	Request  pool.Request
	Reason   string
	Attempts []string
	Waited   time.Duration
	Class    pool.Class
	// Lease is that of the last attempt; "" = there was none.
	Lease string
}

// AddFailure keeps the final failure of a request.
func (k *Keeper) AddFailure(ctx context.Context, f FinalFailure) error {
	setDefault(&f.Pool, DefaultPool)
	target, err := TargetName(f.Target)
	if err != nil {
		return err
	}
	for field, value := range map[string]string{
		"worker": f.Worker, "reason": f.Reason, "request.fingerprint": f.Request.Fingerprint, "request.method": f.Request.Method,
	} {
		if err := checkText(field, value, 1000); err != nil {
			return err
		}
	}
	if len(f.Attempts) > 100 {
		return &InputError{"attempts", "has more than 100 entries"}
	}
	policy, ok := k.policy(f.Pool)
	if !ok {
		return fmt.Errorf("%w: %q", store.ErrNoPool, f.Pool)
	}
	record := pool.Failure{
		At: k.store.Now(), Worker: f.Worker, Target: target, Class: f.Class, Request: cleanRequest(f.Request, policy.KeepQuery),
		Final: true, Reason: f.Reason, Attempts: f.Attempts, Waited: f.Waited,
	}
	if f.Lease != "" {
		t, err := decode(f.Lease, k.keys.Lease)
		if err != nil {
			return err
		}
		record.Lease, record.Proxy = t.Key.Short(), t.Proxy.String()
	}
	return k.store.AddFailure(ctx, f.Pool, record)
}
