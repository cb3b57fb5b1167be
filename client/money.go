package client

import "time"

// Usage is what went through in a calendar day or month of the pool's time zone.
type Usage struct {
	Requests int64   `json:"requests"` // that reached a proxy
	Bytes    int64   `json:"bytes"`    // both ways, as reported
	Cost     float64 `json:"cost"`     // in the pool's currency
}

// Money is what was spent, by the prices of the groups when it was spent.
type Money struct {
	Cost             float64  `json:"cost"` // ever
	Day              Usage    `json:"day"`
	Month            Usage    `json:"month"`
	CostPer1000Valid *float64 `json:"cost_per_1000_valid"` // today; nil = no page was called valid
}

// Budget is what a group may spend; 0 = no bound.
type Budget struct {
	Day      float64    `json:"day"`
	Month    float64    `json:"month"`
	Used     float64    `json:"used"`      // the larger share of both; 1 = all
	Until    *time.Time `json:"until"`     // the group rests until then, because a budget is spent
	AtBudget string     `json:"at_budget"` // stop or fallback
}
