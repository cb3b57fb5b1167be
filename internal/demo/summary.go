package demo

import (
	"maps"
	"slices"
)

// Summary is what was seen, against the lab's truth. It is what --json prints.
type Summary struct {
	Requests    int `json:"requests"`
	Delivered   int `json:"delivered"`
	FailedFinal int `json:"failed_final"`
	Queued      int `json:"queued"`
	// Lost counts ids that are not in exactly one of the three.
	Lost        int             `json:"lost"`
	Leases      LeaseNumbers    `json:"leases"`
	Recovered   Recovered       `json:"recovered"`
	Proxies     ProxyNumbers    `json:"proxies"`
	Attribution Attribution     `json:"attribution"`
	Targets     []TargetNumbers `json:"targets"`
	// Errors are the conditions that were not met, and anything that went wrong.
	Errors []string `json:"errors"`
}

// LeaseNumbers are the pool's counters at the end.
type LeaseNumbers struct {
	Granted  int64 `json:"granted"`
	Reported int64 `json:"reported"`
	Released int64 `json:"released"`
	Expired  int64 `json:"expired"`
	Open     int   `json:"open"`
}

// Recovered tells of the worker that was killed.
type Recovered struct {
	Worker string `json:"worker"`
	// Leases is how many it held when it died.
	Leases int `json:"leases"`
	// AfterMS is when the last of them was back.
	AfterMS int64 `json:"after_ms"`
}

// ProxyNumbers count proxies by what they are and where they ended.
type ProxyNumbers struct {
	// Bad are those that can never work: refusing, or with wrong credentials.
	Bad int `json:"bad"`
	// BadResting are bad ones out of service after two failed trials or more:
	// cooling, suspended, or waiting for their next trial.
	BadResting    int `json:"bad_resting"`
	Good          int `json:"good"`
	GoodSuspended int `json:"good_suspended"`
	GoodCooling   int `json:"good_cooling"`
	// CameBack were seen cooling, then in probation, then active again.
	CameBack int `json:"came_back"`
}

// Score counts failures whose blame was right.
type Score struct {
	Right int `json:"right"`
	Wrong int `json:"wrong"`
}

// Attribution compares the daemon's blame of every failed attempt with the
// truth. A blame that was left open counts as wrong.
type Attribution struct {
	Score
	Accuracy float64           `json:"accuracy"`
	ByKind   map[string]*Score `json:"by_kind"`
}

// TargetNumbers are what a target itself counted.
type TargetNumbers struct {
	Name     string `json:"name"`
	Requests int64  `json:"requests"`
	OK       int64  `json:"ok"`
	S429     int64  `json:"s429"`
}

func sortedKeys(m map[string]*Score) []string {
	return slices.Sorted(maps.Keys(m))
}
