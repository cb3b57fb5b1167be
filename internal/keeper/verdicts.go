package keeper

import (
	"context"
	"fmt"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// Events of verdicts and guards.
const (
	eventTargetVerdict = "target_verdict"
	eventGroupOutage   = "group_outage"
	eventOffline       = "offline"
	eventRecovery      = "recovery"
)

// seen is what the last look at a pool found; what changed since is an event.
type seen struct {
	verdicts map[string]pool.Verdict
	held     map[string]bool // groups
	offline  bool
}

// watchVerdicts emits an event for each target whose verdict changed, and for
// each group and pool that a guard holds or lets go. The first look at a pool
// tells what is wrong already.
func (k *Keeper) watchVerdicts(ctx context.Context) {
	for _, name := range k.poolNames() {
		was := k.seen[name]
		if was == nil {
			was = &seen{verdicts: map[string]pool.Verdict{}, held: map[string]bool{}}
			k.seen[name] = was
		}
		if targets, err := k.store.Targets(ctx, name); err == nil {
			k.watchTargets(name, was, targets.Targets)
		}
		if groups, err := k.store.Groups(ctx, name); err == nil {
			k.watchGroups(name, was, groups.Groups)
		}
		if info, err := k.store.Pool(ctx, name); err == nil && info.Counts.Offline != was.offline {
			if was.offline = info.Counts.Offline; was.offline {
				k.emit(eventOffline, name, name, "no worker reaches any proxy of the pool: nothing is charged, and one probe at a time looks for its return")
			} else {
				k.emit(eventRecovery, name, name, "proxies are reached again")
			}
		}
	}
}

func (k *Keeper) watchTargets(name string, was *seen, list []pool.TargetView) {
	now := make(map[string]pool.Verdict, len(list))
	for i := range list {
		t := &list[i]
		v := t.Judge.Verdict
		if v != pool.VerdictHealthy {
			now[t.Name] = v
		}
		if before := was.verdicts[t.Name]; before != v {
			k.emit(eventTargetVerdict, name, t.Name, fmt.Sprintf("target %s is %s, was %s; its limit is %d requests at once", t.Name, v, before, t.Limit))
		}
	}
	was.verdicts = now
}

func (k *Keeper) watchGroups(name string, was *seen, list []pool.GroupView) {
	for i := range list {
		g := &list[i]
		switch open := g.Circuit.Open(); {
		case open == was.held[g.Name]:
		case open:
			was.held[g.Name] = true
			k.emit(eventGroupOutage, name, g.Name, fmt.Sprintf("most proxies of group %s fail (%s): its provider or account is at fault, no proxy is charged", g.Name, g.Circuit.Cause))
		default:
			delete(was.held, g.Name)
			k.emit(eventRecovery, name, g.Name, "proxies of group "+g.Name+" work again")
		}
	}
}
