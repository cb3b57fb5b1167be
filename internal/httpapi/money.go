package httpapi

import (
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

type usageBody struct {
	Requests int64   `json:"requests"`
	Bytes    int64   `json:"bytes"`
	Cost     float64 `json:"cost"`
}

type moneyBody struct {
	Cost             float64   `json:"cost"`
	Day              usageBody `json:"day"`
	Month            usageBody `json:"month"`
	CostPer1000Valid *float64  `json:"cost_per_1000_valid"`
}

type budgetBody struct {
	Day      float64   `json:"day"`
	Month    float64   `json:"month"`
	Used     float64   `json:"used"`
	Until    timestamp `json:"until"`
	AtBudget string    `json:"at_budget"`
}

func usageOf(u pool.Usage) usageBody { return usageBody{u.Requests, u.Bytes, u.Cost.Float()} }

// moneyOf shows a spend; flat is what the day costs whatever is used, and w
// tells how many valid pages the day brought.
func moneyOf(s *pool.Spend, c pool.Calendar, w *pool.Windows, now pool.Time, flat pool.Money) moneyBody {
	b := moneyBody{Cost: s.Total.Cost.Float(), Day: usageOf(s.Today(c)), Month: usageOf(s.ThisMonth(c))}
	if valid := w.Day(now, c.Day).Valid; valid > 0 {
		cost := (s.Today(c).Cost + flat).Float() * 1000 / float64(valid)
		b.CostPer1000Valid = &cost
	}
	return b
}

// flatDay is a day's part of a group's flat price.
func flatDay(p *pool.GroupPolicy, c pool.Calendar) pool.Money {
	year, month := int(c.Month)/12, time.Month(c.Month%12+1)
	days := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return p.PricePerMonth / pool.Money(days)
}

// budgetOf shows a group's budgets; nil if it has none.
func budgetOf(g *pool.GroupView, now pool.Time, c pool.Calendar) *budgetBody {
	p := &g.Policy
	if p.BudgetDay == 0 && p.BudgetMonth == 0 {
		return nil
	}
	b := &budgetBody{Day: p.BudgetDay.Float(), Month: p.BudgetMonth.Float(), Used: p.Share(&g.Spend, c), AtBudget: "fallback"}
	if p.Stop {
		b.AtBudget = "stop"
	}
	if g.BudgetUntil > now {
		b.Until = stamp(g.BudgetUntil)
	}
	return b
}
