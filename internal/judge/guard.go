package judge

import (
	"slices"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// Guards against blaming proxies for what is the worker's, the provider's or our
// own fault (docs/policy.md, guards).
const (
	guardProxies      = 5 // distinct proxies that worked before
	guardWindow       = 30 * time.Second
	groupWindow       = time.Minute
	credentialProxies = 3
)

// guard looks at the newest counted failures of proxies that worked before, this
// one included, and tells whose they are.
func guard(c *pool.Case) pool.Guard {
	g := &burst{Burst: &c.Burst, now: c.Now, activity: c.Activity}
	newest := pool.Trouble{At: c.Now, Proxy: c.Lease.Proxy, Group: c.GroupKey, Worker: c.Lease.Worker, Class: c.Outcome.Class}
	g.Troubles = append(slices.Clip(g.Troubles), newest)
	switch {
	case newest.Class == pool.ClassProxyAuth:
		denied := func(f *pool.Trouble) bool { return f.Group == newest.Group && f.Class == pool.ClassProxyAuth }
		if newest.Group != 0 && g.distinct(groupWindow, denied) >= credentialProxies {
			return pool.GuardCredentials
		}
		return pool.GuardNone
	case g.offline():
		return pool.GuardOffline
	case g.groupOut(&newest):
		return pool.GuardGroup
	case g.workerOut(&newest):
		return pool.GuardWorker
	default:
		return pool.GuardNone
	}
}

// burst is what a guard looks at.
type burst struct {
	*pool.Burst
	now      pool.Time
	activity pool.Activity
}

// distinct counts the proxies of the failures within a time that match.
func (g *burst) distinct(within time.Duration, match func(*pool.Trouble) bool) int {
	seen := map[uint32]bool{}
	for i := range g.Troubles {
		if f := &g.Troubles[i]; g.now.Sub(f.At) <= within && match(f) {
			seen[f.Proxy] = true
		}
	}
	return len(seen)
}

// offline says that nothing works any more, for nobody: no success since before
// the first of these failures, and they are of as many groups and workers as
// there are.
func (g *burst) offline() bool {
	since := func(f *pool.Trouble) bool { return f.At > g.LastOK }
	if g.distinct(guardWindow, since) < min(guardProxies, max(2, g.activity.Proxies)) {
		return false
	}
	groups, workers := map[uint32]bool{}, map[uint32]bool{}
	for i := range g.Troubles {
		if f := &g.Troubles[i]; since(f) && g.now.Sub(f.At) <= guardWindow {
			groups[f.Group], workers[f.Worker] = true, true
		}
	}
	return len(groups) >= min(2, g.activity.Groups) && len(workers) >= min(2, g.activity.Workers)
}

// groupOut says that most of a provider's proxies fail while others work.
func (g *burst) groupOut(newest *pool.Trouble) bool {
	if newest.Group == 0 {
		return false
	}
	n := g.distinct(groupWindow, func(f *pool.Trouble) bool { return f.Group == newest.Group })
	return n >= guardProxies && n > g.GroupOK
}

// workerOut says that one worker fails where others succeed.
func (g *burst) workerOut(newest *pool.Trouble) bool {
	mine := func(f *pool.Trouble) bool { return f.Worker == newest.Worker && f.At > g.WorkerOK }
	if g.distinct(guardWindow, mine) < guardProxies {
		return false
	}
	first, groups := newest.At, map[uint32]bool{}
	for i := range g.Troubles {
		if f := &g.Troubles[i]; mine(f) && g.now.Sub(f.At) <= guardWindow {
			first = min(first, f.At)
			groups[f.Group] = true
		}
	}
	return len(groups) >= min(2, g.activity.Groups) && g.OthersOK > first
}
