package keeper

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/internal/config"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// Check is one thing that the doctor looked at.
type Check struct {
	Name   string
	Status CheckStatus
	Text   string // what was found
	Hint   string // what to do; "" when it is well
}

// CheckStatus says how well it is.
type CheckStatus string

// The values of CheckStatus.
const (
	CheckOK   CheckStatus = "ok"
	CheckWarn CheckStatus = "warn"
	CheckFail CheckStatus = "fail"
)

// DoctorFacts are what the keeper cannot know by itself.
type DoctorFacts struct {
	// PolicyFile reads the policy file as it is now; nil result = there is none.
	PolicyFile func() (*config.File, error)
	// Exposed says that the daemon listens to other machines.
	Exposed bool
}

// Doctor looks at everything that can be wrong with a daemon, and says what to do.
func (k *Keeper) Doctor(ctx context.Context, f DoctorFacts) []Check {
	checks := k.checkStore(ctx)
	pools, err := k.store.ListPools(ctx)
	if err != nil {
		return append(checks, Check{"pools", CheckFail, err.Error(), "see the daemon's log"})
	}
	checks = append(checks, k.checkClock(ctx, pools), k.checkRecovery(), k.checkPolicy(ctx, f, pools), k.checkTokens(ctx, f.Exposed))
	for i := range pools {
		checks = append(checks, k.checkPool(ctx, &pools[i]), k.checkWaiters(&pools[i]))
	}
	return checks
}

// Bounds of the disk: below the first the doctor warns, below the second it fails.
const (
	littleDisk   = 1 << 30
	noDisk       = 100 << 20
	slowWrite    = time.Second
	oldPass      = 15 * time.Second
	clockStep    = time.Second
	manyRest     = 0.2 // share of suspended proxies
	mostRest     = 0.5
	longWait     = 10 * time.Second
	manyWaiters  = 1000
	shownReasons = 4
)

func (k *Keeper) checkStore(ctx context.Context) []Check {
	file, ok := k.store.(store.File)
	if !ok {
		return nil
	}
	h, err := file.Inspect(ctx)
	if err != nil {
		return []Check{{"store", CheckFail, err.Error(), "see the daemon's log"}}
	}
	written := Check{Name: "store writes", Status: CheckOK, Text: fmt.Sprintf(
		"a write took %s; before it the last one was %s ago", h.WriteTime.Round(10*time.Microsecond), k.since(h.Written))}
	switch {
	case h.WriteErr != nil:
		written.Status, written.Text = CheckFail, h.WriteErr.Error()
		written.Hint = "make room on the disk, or see to the folder's rights; nothing is granted until a write succeeds"
	case h.WriteTime > slowWrite:
		written.Status, written.Hint = CheckWarn, "the disk is slow or very busy: every answer waits for it"
	}
	space := Check{Name: "store space", Status: CheckOK, Text: fmt.Sprintf("%s has %s", h.Path, megabytes(h.Bytes))}
	if h.Free >= 0 {
		space.Text += ", its disk has " + megabytes(h.Free) + " left"
		switch {
		case h.Free < noDisk:
			space.Status, space.Hint = CheckFail, "make room: with a full disk nothing is granted"
		case h.Free < littleDisk || h.Free < h.Bytes:
			space.Status, space.Hint = CheckWarn, "make room soon; a backup needs as much again as the store has"
		}
	}
	whole := Check{Name: "store structure", Status: CheckOK, Text: "a quick look found nothing wrong"}
	switch {
	case h.Damage != "":
		whole.Status, whole.Text = CheckFail, h.Damage
		whole.Hint = "stop the daemon, keep the file, and go on with the last backup; hostler store check tells more"
	case !h.Looked:
		whole.Text = "too large for a quick look: hostler store check on a backup looks at all of it"
	}
	return []Check{written, space, whole}
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func (k *Keeper) since(t pool.Time) string {
	return max(0, k.store.Now().Sub(t)).Round(100 * time.Millisecond).String()
}

// checkClock looks for a clock that was set back: inside time never runs
// backwards, so everything stands still until the clock has caught up.
func (k *Keeper) checkClock(ctx context.Context, pools []store.PoolInfo) Check {
	c := Check{Name: "clock", Status: CheckOK, Text: "it was not set back"}
	for _, p := range pools {
		w, err := k.store.Workers(ctx, p.Name)
		if err != nil {
			continue
		}
		if ahead := w.Now.Sub(k.store.Now()); ahead > clockStep {
			return Check{
				"clock", CheckFail, fmt.Sprintf("it stands %s behind what pool %s has seen", ahead.Round(time.Millisecond), p.Name),
				"it was set back: rests and deadlines stand still until it has caught up; set it right, and let it be slewed and not stepped",
			}
		}
	}
	return c
}

func (k *Keeper) checkRecovery() Check {
	k.mu.Lock()
	pass, ready := k.pass, k.ready
	k.mu.Unlock()
	age := k.store.Now().Sub(pass)
	switch {
	case !ready:
		return Check{"recovery", CheckFail, "it does not run", "restart the daemon; its log says why"}
	case pass == 0:
		return Check{"recovery", CheckWarn, "no pass has ended yet", "ask again in a few seconds"}
	case age > 3*k.every+oldPass:
		return Check{
			"recovery", CheckFail, "the last pass ended " + k.since(pass) + " ago",
			"dead workers' proxies do not come back: see the daemon's log, and whether the store can be written",
		}
	case age > k.every+oldPass:
		return Check{"recovery", CheckWarn, "the last pass ended " + k.since(pass) + " ago", "the store is slow, or a pass has very much to do"}
	default:
		return Check{"recovery", CheckOK, "the last pass ended " + k.since(pass) + " ago", ""}
	}
}

// checkPolicy compares the policy file as it is now with what is in force.
func (k *Keeper) checkPolicy(ctx context.Context, f DoctorFacts, pools []store.PoolInfo) Check {
	c := Check{Name: "policy", Status: CheckOK, Text: "there is no policy file"}
	var edited []string
	for _, p := range pools {
		for path := range p.Record.Overrides {
			edited = append(edited, "pools."+p.Name+"."+path)
		}
	}
	slices.Sort(edited)
	if f.PolicyFile != nil {
		file, err := f.PolicyFile()
		if err != nil {
			return Check{"policy", CheckFail, err.Error(), "the policy from before is in force; mend the file, since the next start needs it"}
		}
		if file != nil {
			c = k.drift(ctx, file)
		}
	}
	if len(edited) > 0 {
		c.Text += fmt.Sprintf("; %d settings were edited through the API over it: %s", len(edited), some(edited))
	}
	return c
}

func (k *Keeper) drift(ctx context.Context, file *config.File) Check {
	would, err := k.Apply(ctx, file, true)
	if err != nil {
		return Check{"policy", CheckFail, err.Error(), "the policy from before is in force; mend the file, since the next start needs it"}
	}
	if len(would.Changes) == 0 {
		return Check{"policy", CheckOK, "the policy file is in force", ""}
	}
	var paths []string
	for _, change := range would.Changes {
		paths = append(paths, change.Path)
	}
	return Check{
		"policy", CheckWarn, fmt.Sprintf("%d settings of the policy file are not in force: %s", len(paths), some(paths)),
		"put it in force: hostler config apply FILE, or send the daemon SIGHUP",
	}
}

// some names a few of a list.
func some(list []string) string {
	text := strings.Join(list[:min(len(list), shownReasons)], ", ")
	if more := len(list) - shownReasons; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (k *Keeper) checkTokens(ctx context.Context, exposed bool) Check {
	list, err := k.store.Tokens(ctx)
	operators := 0
	for _, t := range list {
		if t.Role == "operator" {
			operators++
		}
	}
	switch {
	case err != nil:
		return Check{"access", CheckFail, err.Error(), "see the daemon's log"}
	case len(list) == 0 && exposed:
		return Check{"access", CheckFail, "there is no token, and the daemon listens to other machines", "hostler token new NAME --role operator"}
	case len(list) == 0:
		return Check{"access", CheckOK, "there is no token: everybody on this machine is an operator", ""}
	case operators == 0:
		return Check{"access", CheckWarn, "no token is an operator's", "stop the daemon and make one: hostler token new NAME --role operator --store FILE"}
	default:
		return Check{"access", CheckOK, fmt.Sprintf("%d tokens, %d of operators", len(list), operators), ""}
	}
}

// checkPool says what keeps a pool from lending.
func (k *Keeper) checkPool(ctx context.Context, p *store.PoolInfo) Check {
	n := &p.Counts
	c := Check{Name: "pool " + p.Name, Status: CheckOK, Text: fmt.Sprintf("%d proxies, %d ready, %d leased", n.Proxies, n.Ready, n.Leased)}
	suspended, expired := n.Status[pool.StatusSuspended], n.Status[pool.StatusExpired]
	rest := float64(suspended) / float64(max(1, n.Proxies))
	switch {
	case n.Proxies == 0:
		c.Status, c.Hint = CheckWarn, "it is empty: hostler proxies import FILE"
	case n.Ready == 0 && n.Leased == 0:
		c.Status, c.Text = CheckFail, "nothing is ready, nothing is leased: "+k.because(ctx, p)
		c.Hint = "hostler proxies list shows each, hostler proxies why ID says what keeps one"
	case rest > mostRest:
		c.Status, c.Text = CheckFail, fmt.Sprintf("%d of %d proxies are suspended", suspended, n.Proxies)
		c.Hint = "hostler failures --since 1h shows why; ask their provider, or remove them"
	case n.Ready == 0:
		c.Status, c.Text = CheckWarn, fmt.Sprintf("nothing is ready, %d are leased: %s", n.Leased, k.because(ctx, p))
		c.Hint = "callers wait for what comes back; hostler leases shows who holds what"
	case rest > manyRest:
		c.Status, c.Text = CheckWarn, fmt.Sprintf("%d of %d proxies are suspended", suspended, n.Proxies)
		c.Hint = "hostler failures --since 1h shows why"
	case expired > 0:
		c.Status, c.Text = CheckWarn, fmt.Sprintf("%d of %d proxies are expired", expired, n.Proxies)
		c.Hint = "import a fresh list, or remove them: hostler proxies rm --state expired"
	}
	return c
}

// because counts a pool's proxies by what keeps them back.
func (k *Keeper) because(ctx context.Context, p *store.PoolInfo) string {
	var parts []string
	for status, n := range p.Counts.Status {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", pool.Status(status), n))
		}
	}
	if res, err := k.store.Groups(ctx, p.Name); err == nil {
		for i := range res.Groups {
			g := &res.Groups[i]
			if g.HoldUntil > res.Now && g.Proxies > 0 {
				parts = append(parts, fmt.Sprintf("group %s held for %s more", g.Name, g.HoldUntil.Sub(res.Now).Round(time.Second)))
			}
			if g.BudgetUntil > res.Now && g.Proxies > 0 {
				parts = append(parts, fmt.Sprintf("budget of group %s spent for %s more", g.Name, g.BudgetUntil.Sub(res.Now).Round(time.Second)))
			}
		}
	}
	return strings.Join(parts, ", ")
}

func (k *Keeper) checkWaiters(p *store.PoolInfo) Check {
	lines, _ := k.Waiters(p.Name) // a pool that has gone since has none
	n, oldest := 0, time.Duration(0)
	for i := range lines {
		n += lines[i].Count
		oldest = max(oldest, lines[i].Oldest)
	}
	c := Check{Name: "waiters of " + p.Name, Status: CheckOK, Text: "nobody waits"}
	if n > 0 {
		c.Text = fmt.Sprintf("%d wait, the oldest for %s", n, oldest.Round(100*time.Millisecond))
	}
	if n >= manyWaiters || oldest > longWait {
		c.Status, c.Hint = CheckWarn, "there are fewer proxies than are asked for: add some, or lower the workers' concurrency"
	}
	return c
}
