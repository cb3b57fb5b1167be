package keeper

import (
	"context"
	"fmt"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// Events of budgets.
const (
	eventBudgetWarning = "budget_warning"
	eventBudgetSpent   = "budget_spent"
)

// budgetWarning is the share of a budget at which its event comes.
const budgetWarning = 0.8

// watchBudgets emits an event when a group passes a mark of its budget. The
// store itself holds a group whose budget is spent; nothing depends on this.
func (k *Keeper) watchBudgets(ctx context.Context) {
	for _, name := range k.poolNames() {
		policy, _ := k.policy(name)
		if !hasBudgets(&policy) {
			continue
		}
		res, err := k.store.Groups(ctx, name)
		if err != nil {
			continue // the next pass tries again
		}
		for i := range res.Groups {
			g := &res.Groups[i]
			k.passMark(name, g, g.Policy.Share(&g.Spend, res.Calendar), policy.Currency)
		}
	}
}

func hasBudgets(p *pool.Policy) bool {
	for _, g := range p.Groups {
		if g.BudgetDay > 0 || g.BudgetMonth > 0 {
			return true
		}
	}
	return false
}

// passMark emits what a group's share of its budget calls for, once until the
// share falls again with a new day or a new budget.
func (k *Keeper) passMark(poolName string, g *pool.GroupView, share float64, currency string) {
	mark := 0
	switch {
	case share >= 1:
		mark = 2
	case share >= budgetWarning:
		mark = 1
	}
	key := poolName + "\x00" + g.Name
	before := k.marks[key]
	k.marks[key] = mark
	if mark <= before {
		return
	}
	spent := fmt.Sprintf("group %s has spent %.0f %% of its budget: today %s%s, this month %s%s", g.Name, 100*share,
		g.Spend.InDay.Cost, unit(currency), g.Spend.InMonth.Cost, unit(currency))
	if mark == 1 {
		k.emit(eventBudgetWarning, poolName, g.Name, spent)
		return
	}
	k.emit(eventBudgetSpent, poolName, g.Name, spent+"; it rests until "+g.BudgetUntil.Std().Format("2006-01-02 15:04 MST"))
}

func unit(currency string) string {
	if currency == "" {
		return ""
	}
	return " " + currency
}
