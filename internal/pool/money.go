package pool

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Money is an amount in billionths of the operator's currency: a request at
// 0.0001 and a kilobyte of a gigabyte at 3.50 are whole numbers in it.
type Money int64

const (
	moneyDigits       = 9
	moneyUnit   Money = 1_000_000_000
	// MoneyMax bounds prices and budgets: a million of the currency.
	MoneyMax = 1_000_000 * moneyUnit
)

// ParseMoney reads an amount such as 3.5 or 0.0001, from 0 to [MoneyMax].
func ParseMoney(s string) (Money, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	if len(fraction) > moneyDigits {
		return 0, fmt.Errorf("%q has more than %d decimals", s, moneyDigits)
	}
	digits := whole + fraction + strings.Repeat("0", moneyDigits-len(fraction))
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || whole == "" || Money(n) > MoneyMax {
		return 0, fmt.Errorf("%q is not an amount of money from 0 to 1000000, such as 3.50", s)
	}
	return Money(n), nil
}

// String gives the amount with as many decimals as it needs.
func (m Money) String() string {
	sign := ""
	if m < 0 {
		sign, m = "-", -m
	}
	fraction := strings.TrimRight(fmt.Sprintf("%09d", m%moneyUnit), "0")
	if fraction == "" {
		return sign + strconv.FormatInt(int64(m/moneyUnit), 10)
	}
	return sign + strconv.FormatInt(int64(m/moneyUnit), 10) + "." + fraction
}

// Float gives the amount in the currency's units, for reading only.
func (m Money) Float() float64 { return float64(m) / float64(moneyUnit) }

// times gives m times n divided by by, rounded down, and the largest amount
// where that would not fit.
func (m Money) times(n, by int64) Money {
	high, low := bits.Mul64(uint64(m), uint64(max(0, n)))
	if high >= uint64(by) {
		return 1<<63 - 1
	}
	q, _ := bits.Div64(high, low, uint64(by))
	return Money(min(q, 1<<63-1))
}

// Usage is what went through a proxy account or to a target.
type Usage struct {
	Requests int64 // that reached a proxy
	Bytes    int64 // both ways, as reported
	Cost     Money // by the prices in force at the time
}

func (u *Usage) plus(d Usage) {
	u.Requests += d.Requests
	u.Bytes += d.Bytes
	if u.Cost += d.Cost; u.Cost < 0 {
		u.Cost = 1<<63 - 1
	}
}

// Spend is a record's usage since it was made, and in the calendar day and month
// in force when it was last used, in the pool's time zone.
type Spend struct {
	Total, InDay, InMonth Usage
	Day, Month            int32 // numbers of that day and month
}

func (s *Spend) add(c Calendar, u Usage) {
	if s.Day != c.Day {
		s.Day, s.InDay = c.Day, Usage{}
	}
	if s.Month != c.Month {
		s.Month, s.InMonth = c.Month, Usage{}
	}
	s.Total.plus(u)
	s.InDay.plus(u)
	s.InMonth.plus(u)
}

// Today is the usage of the current day.
func (s *Spend) Today(c Calendar) Usage {
	if s.Day != c.Day {
		return Usage{}
	}
	return s.InDay
}

// ThisMonth is the usage of the current month.
func (s *Spend) ThisMonth(c Calendar) Usage {
	if s.Month != c.Month {
		return Usage{}
	}
	return s.InMonth
}

// GroupPolicy is what an account costs and may cost. Amounts are in the pool's
// currency; 0 = free, and for budgets no bound.
type GroupPolicy struct {
	PricePerGB      Money `json:"price_per_gb,omitempty"` // 10^9 bytes
	PricePerRequest Money `json:"price_per_request,omitempty"`
	PricePerMonth   Money `json:"price_per_month,omitempty"` // flat, whatever is used
	// BudgetDay and BudgetMonth bound what is used; the flat price is not part of it.
	BudgetDay   Money `json:"budget_day,omitempty"`
	BudgetMonth Money `json:"budget_month,omitempty"`
	// Stop refuses at a spent budget even if the pool has fallback pools.
	Stop bool `json:"stop,omitempty"`
}

const bytesPerGB = 1_000_000_000

// cost is the price of a usage.
func (p *GroupPolicy) cost(u Usage) Money {
	if p == nil {
		return 0
	}
	return min(p.PricePerGB.times(u.Bytes, bytesPerGB), 1<<62) + min(p.PricePerRequest.times(u.Requests, 1), 1<<62)
}

// Share is how much of its budgets a spend has used, the larger of both: 1 = all.
func (p *GroupPolicy) Share(s *Spend, c Calendar) float64 {
	share := 0.0
	if p != nil && p.BudgetDay > 0 {
		share = float64(s.Today(c).Cost) / float64(p.BudgetDay)
	}
	if p != nil && p.BudgetMonth > 0 {
		share = max(share, float64(s.ThisMonth(c).Cost)/float64(p.BudgetMonth))
	}
	return share
}

// reached says whether a request of a class came as far as the proxy: what never
// left the worker, or met no proxy, is on no bill.
func reached(c Class) bool {
	return c != ClassProxyDial && c != ClassClientFault && c != ClassWorkerFault
}

// spend counts a usage on proxy, target and group, at the price of the group.
func (s *State) spend(p *Proxy, t *Target, u Usage) {
	p.Bytes += u.Bytes
	g := p.group
	if g != nil {
		u.Cost = g.policy.cost(u)
		g.Spend.add(s.calendar, u)
		s.checkBudget(g)
		s.changed.group(g)
	}
	t.Spend.add(s.calendar, u)
}

// checkBudget holds a group whose budget is spent until the day or month ends,
// and lets go of one whose budget grew.
func (s *State) checkBudget(g *Group) {
	g.BudgetUntil = 0
	p := g.policy
	if p == nil {
		return
	}
	if p.BudgetDay > 0 && g.Spend.Today(s.calendar).Cost >= p.BudgetDay {
		g.BudgetUntil = s.dayEnds
	}
	if p.BudgetMonth > 0 && g.Spend.ThisMonth(s.calendar).Cost >= p.BudgetMonth {
		g.BudgetUntil = s.monthEnds
	}
}

// priceGroups gives every group its part of a new policy.
func (s *State) priceGroups() {
	for _, g := range s.groups {
		s.price(g)
	}
}

func (s *State) price(g *Group) {
	g.policy = nil
	if p, ok := s.policy.Groups[g.Name]; ok {
		g.policy = &p
	}
	s.checkBudget(g)
}

// heldUntil is when the group may be used again: 0 or past = now.
func (g *Group) heldUntil() Time {
	if g == nil {
		return 0
	}
	return max(g.HoldUntil, g.BudgetUntil)
}

// stops says whether the group refuses rather than passing on to fallback pools.
func (g *Group) stops(now Time) bool {
	return g != nil && g.BudgetUntil > now && g.policy != nil && g.policy.Stop
}
