package rules

import (
	"container/list"
	"hash/maphash"
	"math"
	"slices"
	"strings"
)

// Names of the weak rules that look at many answers of a target instead of one.
const (
	StatisticSize = "statistic.size"
	StatisticSame = "statistic.same-body"
)

// Statistics remembers sizes and hashes of a target's good answers, and finds
// those that are unlike the others, or like too many: signs of a wall that no
// rule knows. It is bounded: 64 routes with 64 sizes each, 128 bodies with five
// URLs each. It is not safe for concurrent use.
type Statistics struct {
	seed   maphash.Seed
	routes lru[string, *sizes]
	bodies lru[string, *sameBody]
}

// Bounds and thresholds (docs/policy.md, taxonomy: soft-block rules).
const (
	maxRoutes   = 64
	maxSizes    = 64
	minSizes    = 30  // with fewer a median says nothing
	maxSpread   = 4   // median absolute deviations
	leastSpread = .05 // of a logarithm: pages that differ by less than a fifth are alike
	maxBodies   = 128
	maxSameURLs = 5
	leastBody   = 256           // bytes: empty lists and short errors are alike by right
	sameWithin  = 60 * 60 * 1e3 // ms
)

// NewStatistics makes an empty memory.
func NewStatistics() *Statistics {
	return &Statistics{
		seed: maphash.MakeSeed(), routes: newLRU[string, *sizes](maxRoutes), bodies: newLRU[string, *sameBody](maxBodies),
	}
}

// Page is one answer that nothing else finds fault with.
type Page struct {
	URL  string // whole
	Size int64  // of the body; 0 = not known
	Hash string // of the body; "" = not known
}

// Look says which statistical rules an answer hits at nowMS, and remembers it.
// The answer itself is never among those that it is compared with.
func (s *Statistics) Look(nowMS int64, p Page) (matched []string) {
	if p.URL == "" {
		return nil
	}
	if p.Size > 0 && s.sizeStandsOut(Route(p.URL), p.Size) {
		matched = append(matched, StatisticSize)
	}
	if p.Hash != "" && p.Size >= leastBody && s.sameForMany(nowMS, p) {
		matched = append(matched, StatisticSame)
	}
	return matched
}

// sizes are the newest sizes on one route, as logarithms: pages differ by
// factors, and a long page is no wall for being twice the median.
type sizes struct {
	ring      []float64
	next      int
	low, high float64 // what does not stand out
	since     int     // sizes since these were found
	odd       []float64
}

// Walls look alike, while a good page that stands out does so alone: a size is
// suspect when so many of the last ones that stood out were like it.
const (
	maxOdd   = 8
	alikeOdd = 2
)

// alike says whether earlier sizes that stood out were like this one, and
// remembers it.
func (r *sizes) alike(x float64) bool {
	n := 0
	for _, v := range r.odd {
		if math.Abs(v-x) <= leastSpread {
			n++
		}
	}
	if len(r.odd) == maxOdd {
		r.odd = append(r.odd[:0], r.odd[1:]...)
	}
	r.odd = append(r.odd, x)
	return n >= alikeOdd
}

// staleBounds is after how many sizes the bounds are found anew.
const staleBounds = 8

func (s *Statistics) sizeStandsOut(route string, size int64) bool {
	r := s.routes.get(route, func() *sizes { return &sizes{since: staleBounds} })
	x := math.Log(float64(size))
	out := len(r.ring) >= minSizes && r.standsOut(x) && r.alike(x)
	if len(r.ring) < maxSizes {
		r.ring = append(r.ring, x)
	} else {
		r.ring[r.next] = x
		r.next = (r.next + 1) % maxSizes
	}
	r.since++
	return out
}

func (r *sizes) standsOut(x float64) bool {
	if r.since >= staleBounds {
		var buffer [maxSizes]float64
		sorted := append(buffer[:0], r.ring...)
		middle := median(sorted)
		for i, v := range sorted {
			sorted[i] = math.Abs(v - middle)
		}
		spread := maxSpread * max(median(sorted), leastSpread)
		r.low, r.high, r.since = middle-spread, middle+spread, 0
	}
	return x < r.low || x > r.high
}

// median orders the list.
func median(list []float64) float64 {
	slices.Sort(list)
	n := len(list)
	if n%2 == 1 {
		return list[n/2]
	}
	return (list[n/2-1] + list[n/2]) / 2
}

// sameBody are the URLs that gave one body.
type sameBody struct {
	urls  []uint64
	since int64
}

func (s *Statistics) sameForMany(nowMS int64, p Page) bool {
	b := s.bodies.get(p.Hash, func() *sameBody { return &sameBody{since: nowMS} })
	if nowMS-b.since > sameWithin {
		b.urls, b.since = b.urls[:0], nowMS
	}
	url := maphash.String(s.seed, p.URL)
	if len(b.urls) < maxSameURLs && !slices.Contains(b.urls, url) {
		b.urls = append(b.urls, url)
	}
	return len(b.urls) >= maxSameURLs
}

// Memory holds the statistics of the targets that were looked at last, 500 at
// the most: 25 MB if each is full. It is not safe for concurrent use.
type Memory struct{ targets lru[string, *Statistics] }

// NewMemory makes an empty memory.
func NewMemory() *Memory { return &Memory{newLRU[string, *Statistics](500)} }

// Look is [Statistics.Look] for one of many targets.
func (m *Memory) Look(target string, nowMS int64, p Page) []string {
	return m.targets.get(target, NewStatistics).Look(nowMS, p)
}

// Route names the kind of page that a URL leads to: host and path without query,
// segments with a digit as "*", at most six of them.
func Route(url string) string {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		url = rest
	}
	if i := strings.IndexAny(url, "?#"); i >= 0 {
		url = url[:i]
	}
	if i := strings.IndexByte(url, '@'); i >= 0 && !strings.Contains(url[:i], "/") {
		url = url[i+1:]
	}
	parts := strings.SplitN(url, "/", 7)
	if len(parts) == 7 {
		parts[6] = "*"
	}
	for i := 1; i < len(parts); i++ {
		if strings.ContainsAny(parts[i], "0123456789") || len(parts[i]) > 40 {
			parts[i] = "*"
		}
	}
	parts[0] = strings.ToLower(parts[0])[:min(len(parts[0]), 253)]
	return strings.Join(parts, "/")
}

// lru is a map that forgets what was not used for longest.
type lru[K comparable, V any] struct {
	most   int
	order  *list.List // of entry, newest first
	places map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](most int) lru[K, V] {
	return lru[K, V]{most: most, order: list.New(), places: map[K]*list.Element{}}
}

// get gives a key's value, which is made if there is none.
func (l *lru[K, V]) get(key K, create func() V) V {
	if at, ok := l.places[key]; ok {
		l.order.MoveToFront(at)
		return at.Value.(entry[K, V]).value //nolint:forcetypeassert // nothing else is put in
	}
	if l.order.Len() >= l.most {
		last := l.order.Back()
		delete(l.places, last.Value.(entry[K, V]).key) //nolint:forcetypeassert // likewise
		l.order.Remove(last)
	}
	v := create()
	l.places[key] = l.order.PushFront(entry[K, V]{key, v})
	return v
}
