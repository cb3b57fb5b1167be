package store

import (
	"context"
	"errors"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// ErrNoSource is that there is no source of that name.
var ErrNoSource = errors.New("no such source")

// SourceRecords keeps the sources of proxies, and how each fares.
type SourceRecords interface {
	// Sources lists all sources by name.
	Sources(ctx context.Context) ([]Source, error)
	// PutSource makes a source or replaces it, state and all, and gives its new
	// version. It fails with ErrConflict unless the version is Expect; 0 = there is none.
	PutSource(ctx context.Context, p PutSourceParams) (version int64, err error)
	// PutSourceState replaces the state alone. It fails with ErrConflict if the
	// source changed since that version, so that no run writes for another's.
	PutSourceState(ctx context.Context, name string, version int64, state SourceState) error
	// DeleteSource forgets a source; its proxies stay. ErrNoSource if there is none.
	DeleteSource(ctx context.Context, name string) error
}

// Source is a source as it is kept.
type Source struct {
	Name     string
	Version  int64
	Settings map[string]string // as the file writes them; credentials are ${NAME}s
	State    SourceState
}

// PutSourceParams is a source's new record.
type PutSourceParams struct {
	Name     string
	Settings map[string]string
	State    SourceState
	Expect   int64
}

// SourceState is how a source fares, so that a restart knows and does not fetch again.
type SourceState struct {
	Since                  pool.Time // its settings are known
	Attempt, Success, Next pool.Time // of fetches: the last, the last good one, the next; 0 = none
	Fails                  int       // in a row
	Reason                 string    // why the last fetch changed nothing; "" = it was good
	ETag, LastModified     string    // of the set in force
	Sum                    string    // of a file's content, likewise
	Listed, Rejected       int       // proxies and refused lines of the last good fetch
	Held                   *HeldSet  // a set that waits for a word; nil = none
}

// HeldSet is a list that was too small to be believed at once.
type HeldSet struct {
	Digest  string
	Proxies int
	Seen    int       // equal fetches in a row
	At      pool.Time // when it came first
	List    []byte    `json:"-"` // what accepting it puts in force
}
