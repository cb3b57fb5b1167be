package keeper

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
)

const eventParserSuspect = "parser_suspect"

// parsers remembers which proxies brought invalid data, by pool and target, so
// that a fall over many proxies is told from one bad proxy. It charges nothing.
type parsers struct {
	mu     sync.Mutex
	seen   map[[2]string]map[proxy.ID]pool.Time
	told   map[[2]string]pool.Time // when the event last came; the loop's own
	looked pool.Time               // the loop's own
}

func newParsers() parsers {
	return parsers{seen: map[[2]string]map[proxy.ID]pool.Time{}, told: map[[2]string]pool.Time{}}
}

// Bounds of what is remembered, and how often the event comes for one target.
const (
	parserTargets = 10_000
	parserProxies = 32
	parserWithin  = 10 * time.Minute
	parserAgain   = time.Hour
)

// sawValid takes note of what a caller says of a lease's data.
func (k *Keeper) sawValid(t *token, v pool.Verity) {
	if v != pool.Invalid {
		return
	}
	p := &k.parsers
	key := [2]string{t.Pool, t.Target}
	p.mu.Lock()
	defer p.mu.Unlock()
	proxies := p.seen[key]
	if proxies == nil {
		if len(p.seen) >= parserTargets {
			return
		}
		proxies = map[proxy.ID]pool.Time{}
		p.seen[key] = proxies
	}
	if _, known := proxies[t.Proxy]; known || len(proxies) < parserProxies {
		proxies[t.Proxy] = k.store.Now()
	}
}

// suspects gives the targets whose data was invalid over proxies in the last ten
// minutes, by pool, with the number of proxies; what is older is forgotten.
func (p *parsers) suspects(now pool.Time) map[string]map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]map[string]int{}
	for key, proxies := range p.seen {
		for id, at := range proxies {
			if now.Sub(at) > parserWithin {
				delete(proxies, id)
			}
		}
		if len(proxies) == 0 {
			delete(p.seen, key)
			continue
		}
		if len(proxies) < judge.ParserProxies {
			continue
		}
		if out[key[0]] == nil {
			out[key[0]] = map[string]int{}
		}
		out[key[0]][key[1]] = len(proxies)
	}
	return out
}

// watchParsers emits an event when a target's data stops being valid while its
// answers stay good.
func (k *Keeper) watchParsers(ctx context.Context) {
	p := &k.parsers
	now := k.store.Now()
	if now.Sub(p.looked) < k.every {
		return
	}
	p.looked = now
	for key, at := range p.told {
		if now.Sub(at) > parserAgain {
			delete(p.told, key)
		}
	}
	for name, targets := range p.suspects(now) {
		res, err := k.store.Targets(ctx, name)
		if err != nil {
			continue // the next pass tries again
		}
		for i := range res.Targets {
			t := &res.Targets[i]
			w := &t.Windows
			ten, hour := w.TenMinutes(res.Now), w.Hour(res.Now)
			key := [2]string{name, t.Name}
			if _, told := p.told[key]; told || !judge.ParserSuspect(ten, hour, w.Day(res.Now, res.Day), targets[t.Name]) {
				continue
			}
			p.told[key] = now
			k.emit(eventParserSuspect, name, t.Name, fmt.Sprintf("of %d pages of %s in ten minutes %d were valid, over %d proxies or more, "+
				"while its answers are as good as before: look at the parser and the site's layout; no proxy is charged",
				ten.Valid+ten.Invalid, t.Name, ten.Valid, targets[t.Name]))
		}
	}
}
