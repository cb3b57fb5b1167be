package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// NamedField is a setting that each target or group can have of its own. Its
// path is SECTION.NAME.SETTING, such as targets.shop.example.reuse_interval; the
// name may hold dots.
type NamedField struct {
	Section, Setting string
	// Kind is duration, money, number, choice, switch or rules.
	Kind string
	// Doc is its meaning, unit and range.
	Doc string

	set func(p *pool.Policy, name, value string) error
	get func(p *pool.Policy, name string) (value string, ok bool)
}

// NamedFields lists all settings of targets and groups.
func NamedFields() []NamedField {
	return append([]NamedField{
		{
			Section: "targets", Setting: "reuse_interval", Kind: "duration",
			Doc: "Least time between two starts of one proxy on this target. 0s to 24h.",
			set: func(p *pool.Policy, name, value string) error {
				d, err := parseDuration(value, 0, 24*time.Hour)
				if err == nil {
					edit(&p.Targets, name, func(t *pool.TargetPolicy) { t.ReuseInterval = &d })
				}
				return err
			},
			get: func(p *pool.Policy, name string) (string, bool) {
				if d := p.Targets[name].ReuseInterval; d != nil {
					return d.String(), true
				}
				return "", false
			},
		},
		{
			Section: "targets", Setting: "min_gap", Kind: "duration",
			Doc: "Least time between two starts on this target, such as the Crawl-delay of its robots.txt. 0s to 1h.",
			set: func(p *pool.Policy, name, value string) error {
				d, err := parseDuration(value, 0, time.Hour)
				if err == nil {
					edit(&p.Targets, name, func(t *pool.TargetPolicy) { t.MinGap = &d })
				}
				return err
			},
			get: func(p *pool.Policy, name string) (string, bool) {
				if d := p.Targets[name].MinGap; d != nil {
					return d.String(), true
				}
				return "", false
			},
		},
		{
			Section: "targets", Setting: "max_concurrency", Kind: "number",
			Doc: "Most requests at once on this target, whatever its pace has earned. 1 to 1000000.",
			set: func(p *pool.Policy, name, value string) error {
				n, err := strconv.Atoi(value)
				if err != nil || n < 1 || n > 1_000_000 {
					return fmt.Errorf("%q is not a whole number within 1 and 1000000", value)
				}
				edit(&p.Targets, name, func(t *pool.TargetPolicy) { t.MaxConcurrency = &n })
				return nil
			},
			get: func(p *pool.Policy, name string) (string, bool) {
				if n := p.Targets[name].MaxConcurrency; n != nil {
					return strconv.Itoa(*n), true
				}
				return "", false
			},
		},
		money("price_per_gb", "Price of 10^9 bytes through this group, both ways.", func(g *pool.GroupPolicy) *pool.Money { return &g.PricePerGB }),
		money("price_per_request", "Price of a request that reached a proxy of this group.",
			func(g *pool.GroupPolicy) *pool.Money { return &g.PricePerRequest }),
		money("price_per_month", "Flat price of the account; no part of the budgets.", func(g *pool.GroupPolicy) *pool.Money { return &g.PricePerMonth }),
		money("budget_day", "What may be spent in a day, which begins at midnight in the zone; 0 = no bound.",
			func(g *pool.GroupPolicy) *pool.Money { return &g.BudgetDay }),
		money("budget_month", "What may be spent in a calendar month; 0 = no bound.", func(g *pool.GroupPolicy) *pool.Money { return &g.BudgetMonth }),
		{
			Section: "groups", Setting: "at_budget", Kind: "choice",
			Doc: "At a spent budget: fallback (go on with other groups, then with the fallback pools) or stop (refuse).",
			set: func(p *pool.Policy, name, value string) error {
				if value != "stop" && value != "fallback" {
					return fmt.Errorf("%q is neither stop nor fallback", value)
				}
				edit(&p.Groups, name, func(g *pool.GroupPolicy) { g.Stop = value == "stop" })
				return nil
			},
			get: func(p *pool.Policy, name string) (string, bool) { return "stop", p.Groups[name].Stop },
		},
	}, ruleFields()...)
}

// edit changes one value of a map, which is made if there is none.
func edit[T any](all *map[string]T, name string, change func(*T)) {
	v := (*all)[name]
	change(&v)
	if *all == nil {
		*all = map[string]T{}
	}
	(*all)[name] = v
}

func money(setting, doc string, at func(*pool.GroupPolicy) *pool.Money) NamedField {
	return NamedField{
		Section: "groups", Setting: setting, Kind: "money", Doc: doc + " 0 to 1000000, up to nine decimals.",
		set: func(p *pool.Policy, name, value string) error {
			m, err := parseMoney(value)
			if err == nil {
				edit(&p.Groups, name, func(g *pool.GroupPolicy) { *at(g) = m })
			}
			return err
		},
		get: func(p *pool.Policy, name string) (string, bool) {
			g := p.Groups[name]
			return at(&g).String(), *at(&g) != 0
		},
	}
}

// parseMoney reads an amount, in the form of a YAML or JSON number too, such as 1e-05.
func parseMoney(v string) (pool.Money, error) {
	if strings.ContainsAny(v, "eE") {
		if x, err := strconv.ParseFloat(v, 64); err == nil && x >= 0 && x <= pool.MoneyMax.Float() {
			v = strings.TrimRight(strconv.FormatFloat(x, 'f', 9, 64), "0")
		}
	}
	return pool.ParseMoney(strings.TrimSuffix(v, "."))
}

// namedField takes a path apart; ok is false if it is not that of a known setting.
func namedField(path string) (f NamedField, name string, ok bool) {
	section, rest, _ := strings.Cut(path, ".")
	i := strings.LastIndexByte(rest, '.')
	if i <= 0 {
		return f, "", false
	}
	for _, f := range NamedFields() {
		if f.Section == section && f.Setting == rest[i+1:] {
			return f, rest[:i], true
		}
	}
	return f, "", false
}

// named says whether settings with a prefix belong to a target or a group.
func named(prefix string) bool {
	return strings.HasPrefix(prefix, "targets.") || strings.HasPrefix(prefix, "groups.")
}

// EachNamed calls do for every setting that a target or a group of the policy has
// of its own, in the order of NamedFields, names in order.
func EachNamed(p *pool.Policy, do func(f NamedField, name, value string)) {
	targets, groups := slices.Sorted(maps.Keys(p.Targets)), slices.Sorted(maps.Keys(p.Groups))
	for _, f := range NamedFields() {
		names := targets
		if f.Section == "groups" {
			names = groups
		}
		for _, name := range names {
			if v, ok := f.get(p, name); ok {
				do(f, name, v)
			}
		}
	}
}

// Path is the setting's path for one target or group.
func (f *NamedField) Path(name string) string { return f.Section + "." + name + "." + f.Setting }

// namedText helps with a path that belongs to a target or group and names no setting.
func namedText(path string) string {
	section, _, _ := strings.Cut(path, ".")
	var known []string
	for _, f := range NamedFields() {
		if f.Section == section {
			known = append(known, f.Setting)
		}
	}
	return "unknown setting; " + section + " have: " + strings.Join(known, ", ")
}
