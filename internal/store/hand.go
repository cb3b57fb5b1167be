package store

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
)

// Errors of an operator's acts.
var (
	// ErrNoGroup: the pool knows no group of that name.
	ErrNoGroup = errors.New("no such group")
	// ErrNoSession: the pool has no session of that key.
	ErrNoSession = errors.New("no such session")
)

// Hand is what an operator does to what runs.
type Hand interface {
	// Revoke takes back all live leases that the filter takes, or with DryRun
	// only tells which they are.
	Revoke(ctx context.Context, p RevokeParams) (RevokeResult, error)
	// Sessions gives a page of sessions by key.
	Sessions(ctx context.Context, p SessionsParams) (SessionsResult, error)
	// MoveSession has a session's next lease go to another proxy; ErrNoSession.
	MoveSession(ctx context.Context, p SessionParams) (pool.Session, error)
	// ReleaseGroup ends a group's hold, and tells until when it was held, 0 = it
	// was not; ErrNoGroup.
	ReleaseGroup(ctx context.Context, p GroupParams) (held pool.Time, err error)
}

// RevokeParams selects live leases.
type RevokeParams struct {
	Pool   string
	Now    pool.Time
	Filter pool.LeaseFilter
	DryRun bool
}

// RevokeResult says how many leases the filter took, and shows the first 20,
// oldest first, as they were.
type RevokeResult struct {
	Count int
	First []pool.LeaseView
}

// SessionsParams selects a page of sessions.
type SessionsParams struct {
	Pool  string
	Proxy *proxy.ID // nil = of all proxies
	After string    // only keys behind this one
	Limit int       // 1..1000
}

// SessionsResult is one page of sessions.
type SessionsResult struct {
	Sessions []pool.Session
	More     bool
}

// SessionParams names a session.
type SessionParams struct {
	Pool string
	Now  pool.Time
	Key  string
}

// GroupParams names a group.
type GroupParams struct {
	Pool string
	Now  pool.Time
	Name string
}

// Audits are the records of what operators did. The oldest go: see [AuditAge]
// and [AuditMax].
type Audits interface {
	// AddAudit keeps a record; the store numbers it, and stamps it if At is 0.
	AddAudit(ctx context.Context, a Audit) error
	// Audits queries the records, newest first.
	Audits(ctx context.Context, q AuditQuery) (AuditResult, error)
}

// Audit records are kept this long and this many.
const (
	AuditAge = 90 * 24 * time.Hour
	AuditMax = 100_000
)

// Audit is the record of one act of an operator. It holds no secrets.
type Audit struct {
	N      int64
	At     pool.Time
	Who    string // the token's name; "" = no token was asked for
	Peer   string // the caller's address
	Act    string // such as proxies.patch
	Pool   string // "" = none in particular
	What   string // on what, and the change
	Count  int    // how many records it touched
	Result string // done, or the kind of problem
}

// AuditQuery selects audit records; empty fields take all.
type AuditQuery struct {
	Act    string
	Who    string
	Since  pool.Time
	Before int64 // only records with a smaller number; 0 = from the newest
	Limit  int   // 1..1000
}

// AuditResult is one page of audit records.
type AuditResult struct {
	Audits []Audit
	More   bool
}

// File is what a store that lives in one file can do besides; ask for it with a
// type assertion.
type File interface {
	// Snapshot copies the file as it is after everything acknowledged before the
	// call. The copy is one file that is whole by itself; it is gone with Close.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Inspect looks at the file's health.
	Inspect(ctx context.Context) (FileHealth, error)
}

// Snapshot is a copy of a store's file.
type Snapshot interface {
	io.ReadCloser
	Size() int64
}

// FileHealth is how a store's file is.
type FileHealth struct {
	Path      string
	Bytes     int64         // of the file, with what is not yet folded into it
	Free      int64         // bytes left on its disk for us; -1 = not known
	Written   pool.Time     // when something was last written to it
	WriteTime time.Duration // what a small write took just now
	WriteErr  error         // why it cannot be written to; nil = it can
	Damage    string        // what a quick look at its structure found; "" = nothing
	Looked    bool          // the quick look came to its end in time
}
