// Package store is the contract between the keeper and whatever keeps the state:
// one atomic step per method, parameters in a struct, promises in the comments.
//
// The embedded store keeps pool.State in memory and makes it durable in SQLite;
// every implementation must pass storetest.Run and answer as pool.State does.
//
// Promises of every store:
//
//   - What a method returned without an error is durable: it survives kill -9.
//   - What returned [ErrUnavailable] may or may not have happened; ids make a
//     repeat harmless.
//   - Each method is one atomic step; two of them never mix.
//   - The store's clock decides. A Now in the parameters is for tests; 0 means
//     the store's own. Time never runs backwards inside.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
)

// Errors that callers branch on.
var (
	// ErrUnavailable: the store cannot keep anything now; ask again later.
	ErrUnavailable = errors.New("the store is not available")
	// ErrNoPool: there is no pool of that name.
	ErrNoPool = errors.New("no such pool")
	// ErrNoProxy: the pool has no proxy of that id.
	ErrNoProxy = errors.New("no such proxy")
	// ErrConflict: the record changed since it was read.
	ErrConflict = errors.New("the record was changed by somebody else")
	// ErrPoolInUse: the pool still has proxies or leases.
	ErrPoolInUse = errors.New("the pool is not empty")
)

// Store keeps pools.
type Store interface {
	Leasing
	Supply
	Pools
	Views
	Records
	Hand
	Audits
	Specs

	// Close flushes and releases the store. It is safe to call twice.
	Close() error
}

// Leasing is the life of a lease.
type Leasing interface {
	// Acquire grants or refuses in one step. Errors: pool.ErrCallEnded,
	// pool.ErrCallConflict, ErrNoPool, ErrUnavailable.
	Acquire(ctx context.Context, p AcquireParams) (pool.AcquireResult, error)
	// Extend answers a heartbeat, one result per lease, in order.
	Extend(ctx context.Context, p ExtendParams) ([]pool.Extended, error)
	// Settle ends leases, one result per ending, in order. Endings that come
	// while a commit is under way are settled together.
	Settle(ctx context.Context, p SettleParams) ([]pool.Settled, error)
	// Note takes what was learnt of ended leases.
	Note(ctx context.Context, p NoteParams) (NoteResult, error)
	// Reclaim ends leases whose holders went silent.
	Reclaim(ctx context.Context, p ReclaimParams) (ReclaimResult, error)
	// Sweep mends what does not fit together and forgets what is idle.
	Sweep(ctx context.Context, p SweepParams) (mended int, err error)
}

// AcquireParams is one acquire.
type AcquireParams struct {
	Pool string
	Now  pool.Time
	pool.AcquireParams
}

// ExtendParams is one heartbeat of one worker in one pool.
type ExtendParams struct {
	Pool           string
	Now            pool.Time
	Tenant, Worker string
	Concurrency    int
	Leases         []pool.Beat
}

// SettleParams is a batch of endings in one pool.
type SettleParams struct {
	Pool    string
	Now     pool.Time
	Endings []pool.Ending
}

// NoteParams is a batch of notes of one worker in one pool.
type NoteParams struct {
	Pool           string
	Now            pool.Time
	Tenant, Worker string
	Seq            int64
	Notes          []pool.Note
}

// NoteResult says how many notes were taken, and whether the batch was known.
type NoteResult struct {
	Taken     int
	Duplicate bool
}

// ReclaimParams bounds one recovery pass.
type ReclaimParams struct {
	Pool  string
	Now   pool.Time
	Limit int // 1..100
}

// ReclaimResult lists what was reclaimed. Next is when the next lease may fall;
// 0 = none is out.
type ReclaimResult struct {
	Ended []pool.Reclaimed
	Next  pool.Time
}

// SweepParams bounds one sweep.
type SweepParams struct {
	Pool  string
	Now   pool.Time
	Limit int // proxies to look at
}

// Supply is how proxies come and go.
type Supply interface {
	// Import adds or updates proxies, one result per proxy, in order. With DryRun
	// it only tells.
	Import(ctx context.Context, p ImportParams) ([]pool.Imported, error)
	// Patch applies an operator's change to all that the filter takes.
	Patch(ctx context.Context, p PatchParams) (count int, err error)
	// Remove drains all that the filter takes; each goes with its last lease.
	Remove(ctx context.Context, p RemoveParams) (count int, err error)
	// Leave takes a source's name off proxies: those that nobody else vouches for
	// go with their last lease. With DryRun it only counts.
	Leave(ctx context.Context, p LeaveParams) (LeaveResult, error)
}

// LeaveParams are proxies that a source no longer lists.
type LeaveParams struct {
	Pool   string
	Now    pool.Time
	Source string
	IDs    []proxy.ID
	DryRun bool
}

// LeaveResult says how many leave the pool, and how many stay for others.
type LeaveResult struct{ Gone, Kept int }

// ImportParams is a piece of a list.
type ImportParams struct {
	Pool    string
	Now     pool.Time
	Proxies []pool.Import
	DryRun  bool
}

// PatchParams is an operator's change.
type PatchParams struct {
	Pool   string
	Now    pool.Time
	Filter pool.Filter
	Patch  pool.Patch
	DryRun bool
}

// RemoveParams selects proxies to remove.
type RemoveParams struct {
	Pool   string
	Now    pool.Time
	Filter pool.Filter
}

// Pools keeps the pools and their policies.
type Pools interface {
	// ListPools gives all pools by name.
	ListPools(ctx context.Context) ([]PoolInfo, error)
	// Pool gives one pool.
	Pool(ctx context.Context, name string) (PoolInfo, error)
	// PutPool makes a pool or replaces its policy. With Expect >= 0 it fails
	// with ErrConflict unless the policy's version is Expect.
	PutPool(ctx context.Context, p PutPoolParams) (PoolInfo, error)
	// DeletePool removes an empty pool; ErrPoolInUse otherwise.
	DeletePool(ctx context.Context, name string) error
}

// PolicyRecord is a pool's policy as it is kept: what the configuration file
// says, what was edited over it, and the policy that follows.
type PolicyRecord struct {
	File      map[string]string // setting path -> value
	Overrides map[string]string
	Policy    pool.Policy
}

// PoolInfo is a pool with its numbers.
type PoolInfo struct {
	Name   string
	Record PolicyRecord
	Counts pool.Numbers
	Totals pool.Totals
}

// PutPoolParams is a pool's new policy. The store sets Policy.Version.
type PutPoolParams struct {
	Name   string
	Record PolicyRecord
	Expect int64 // -1 = whatever it is
}

// Views copies what people look at.
type Views interface {
	Proxies(ctx context.Context, p ProxiesParams) (ProxiesResult, error)
	Proxy(ctx context.Context, poolName string, id proxy.ID) (ProxyResult, error)
	Leases(ctx context.Context, poolName string, limit int) ([]pool.LeaseView, error)
	Workers(ctx context.Context, poolName string) (WorkersResult, error)
	Targets(ctx context.Context, poolName string) (TargetsResult, error)
	Groups(ctx context.Context, poolName string) (GroupsResult, error)
	// Capacity tells what a pool has for a target, and counts a part of its exits.
	Capacity(ctx context.Context, p CapacityParams) (CapacityResult, error)
	Session(ctx context.Context, poolName, key string) (pool.Session, bool, error)
	EndSession(ctx context.Context, poolName, key string) (bool, error)
	// OfSource lists the proxies that a source vouches for.
	OfSource(ctx context.Context, poolName, source string) ([]pool.Listed, error)
}

// Moment is when a view was taken: the time, and the local day and month.
type Moment struct {
	Now pool.Time
	pool.Calendar
}

// WorkersResult lists workers, last seen first.
type WorkersResult struct {
	Workers []pool.Worker
	Moment
}

// TargetsResult lists targets, last used first.
type TargetsResult struct {
	Targets []pool.TargetView
	Moment
}

// GroupsResult lists groups by name.
type GroupsResult struct {
	Groups []pool.GroupView
	Moment
}

// CapacityParams asks what a pool has for a target. Exits are counted in parts,
// since that costs a look at every proxy: Limit of them from From on; 0 = none.
type CapacityParams struct {
	Pool, Target string
	From         uint32
	Limit        int
}

// CapacityResult is what a pool has. Next is where the count of exits goes on; 0 =
// that was all.
type CapacityResult struct {
	pool.SupplyView
	Exits [pool.NumExits]pool.ExitCount
	Next  uint32
	Now   pool.Time
}

// ProxiesParams selects and orders proxies.
type ProxiesParams struct {
	Pool   string
	Filter pool.Filter
	Sort   string // see pool.KnownSort
	Offset int
	Limit  int
}

// ProxiesResult is one page of proxies. Now and Day are the times for which the
// windows were summed.
type ProxiesResult struct {
	Proxies []pool.ProxyView
	More    bool
	Now     pool.Time
}

// ProxyResult is one proxy with its pairs.
type ProxyResult struct {
	Proxy pool.ProxyView
	Pairs []pool.PairView
	Now   pool.Time
}

// Records are what the store keeps beside the pools.
type Records interface {
	// AddFailure keeps a failure that no lease carried.
	AddFailure(ctx context.Context, poolName string, f pool.Failure) error
	// Failures queries the records, newest first.
	Failures(ctx context.Context, q FailureQuery) (FailureResult, error)
	// Keys gives the store's secrets, made with the store.
	Keys(ctx context.Context) (Keys, error)
	// Tokens lists, adds and revokes API tokens. Only hashes are kept.
	Tokens(ctx context.Context) ([]Token, error)
	PutToken(ctx context.Context, t Token) error
	DeleteToken(ctx context.Context, name string) (bool, error)
	SourceRecords
	// Now is the store's clock.
	Now() pool.Time
}

// FailureQuery selects failure records; empty fields take all.
type FailureQuery struct {
	Pool, Worker, Proxy, Target string
	Class                       pool.Class
	Final                       *bool
	Since                       pool.Time
	Before                      int64 // only records with a smaller number; 0 = from the newest
	Limit                       int   // 1..1000
}

// FailureRow is a kept failure with its number.
type FailureRow struct {
	N int64
	pool.Failure
}

// FailureResult is one page. ScannedUntil is set when the query stopped early.
type FailureResult struct {
	Failures     []FailureRow
	More         bool
	ScannedUntil pool.Time
	ScannedTo    int64 // the record to go on before, when the query stopped early
}

// Keys are the store's secrets: ID makes the identity of proxies, Lease signs
// lease ids.
type Keys struct{ ID, Lease []byte }

// Token is an API token.
type Token struct {
	Name    string
	Role    string // worker, viewer, operator
	Hash    []byte // SHA-256 of the token
	Created time.Time
}
