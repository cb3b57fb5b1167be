package keeper

import (
	"fmt"
	"slices"
	"sync"

	"github.com/hostler-proxy/hostler/internal/config"
	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/rules"
	"github.com/hostler-proxy/hostler/internal/store"
)

// bookOf makes the body rules of a pool. What a store of another version kept
// and this one refuses is left out, loudly: a daemon must start.
func (k *Keeper) bookOf(name string, r *store.PolicyRecord) *rules.Book {
	book, err := config.RuleBook(r.File, r.Overrides)
	if err != nil {
		k.log.Error("the body rules of a pool cannot be used; only the default ones hold until they are set again", "pool", name, "error", err)
		return rules.NewBook(true, nil)
	}
	return book
}

// book gives the body rules of a pool.
func (k *Keeper) book(name string) *rules.Book {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.known[name]; p != nil && p.book != nil {
		return p.book
	}
	return rules.NewBook(false, nil)
}

// Rules gives the body rules of a target; nil = none.
func (k *Keeper) Rules(poolName, target string) *rules.Set { return k.book(poolName).For(target) }

// TargetRules gives the name that a target is kept under, and its body rules.
func (k *Keeper) TargetRules(poolName, target string) (string, *rules.Set, error) {
	name, err := TargetName(target)
	if err != nil {
		return "", nil, err
	}
	if _, ok := k.policy(poolName); !ok {
		return "", nil, fmt.Errorf("%w: %q", store.ErrNoPool, poolName)
	}
	return name, k.Rules(poolName, name), nil
}

// applyRules lets the target's rules say what the reported answer means: those
// that the worker names, and those for which the report's own facts are enough.
// It sets the class of the facts, unless the caller named one. A 429 stays one
// unless a rule names the status: walls and limits use the same words.
func (k *Keeper) applyRules(r *Report, b judge.Budgets) {
	f := &r.Facts
	book := k.book(r.from.Pool)
	set := book.For(r.from.Target)
	size := f.BodyBytes
	if size == 0 {
		size = -1 // not told, most likely
	}
	base := judge.Classify(f, b)
	if !answered(base) || f.Class != pool.ClassNone {
		_, r.unknown = set.Decide(f.Matched, false)
		return
	}
	hits := set.EvaluateFacts(f.Status, f.RedirectHost, size).Matched
	var found rules.Result
	found, r.unknown = set.Decide(slices.Concat(f.Matched, hits), base == pool.ClassRateLimited)
	if base == pool.ClassOK && book.Defaults(r.from.Target) && len(k.pages.look(k.store.Now(), r)) > 0 && found.Class == rules.None {
		found.Class = rules.Suspect
	}
	if class := ruled(base, found.Class); class != base {
		f.Class = class
	}
}

// answered says whether the target spoke: only then is there a page to judge.
func answered(c pool.Class) bool {
	switch c {
	case pool.ClassOK, pool.ClassTargetAnswer, pool.ClassTarget5xx, pool.ClassRateLimited, pool.ClassBlockedHard,
		pool.ClassGeoBlocked, pool.ClassPlainDenied, pool.ClassPlain5xx:
		return true
	}
	return false
}

// ruled is the class after the rules spoke. A weak rule says nothing where the
// status says more.
func ruled(base pool.Class, found rules.Class) pool.Class {
	switch found {
	case rules.Suspect:
		if base == pool.ClassOK {
			return pool.ClassSuspectSoft
		}
		return base
	case rules.OK:
		return pool.ClassOK
	case rules.Blocked:
		return pool.ClassBlockedSoft
	case rules.Rate:
		return pool.ClassRateLimited
	case rules.Geo:
		return pool.ClassGeoBlocked
	default:
		return base
	}
}

// pages are the statistics of good answers, for all pools.
type pages struct {
	mu     sync.Mutex
	memory *rules.Memory
}

func newPages() pages { return pages{memory: rules.NewMemory()} }

// look says which statistical rules a report's answer hits.
func (p *pages) look(now pool.Time, r *Report) []string {
	f := &r.Facts
	if f.Request.URL == "" || f.BodyBytes == 0 && f.BodyHash == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.memory.Look(r.from.Pool+"\x00"+r.from.Target, int64(now), rules.Page{URL: f.Request.URL, Size: f.BodyBytes, Hash: f.BodyHash})
}
