package pool

import (
	"container/list"
	"math/rand/v2"
	"time"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// Opinions remembers who first found a request's page suspect, so that a second
// proxy can agree: a weak rule alone charges nobody for good, since a page may
// just be so (docs/rules.md, second opinion). It is a bounded memory: what is
// forgotten was provisional and stays so. It is not safe for concurrent use.
type Opinions struct {
	most   int
	order  *list.List // of *opinion, oldest first
	places map[opinionKey]*list.Element
}

// MaxOpinions is how many requests a pool remembers, about 20 MB.
const MaxOpinions = 100_000

// opinionWithin is how soon the second proxy must have looked.
const opinionWithin = 10 * time.Minute

type opinionKey struct {
	target      uint32
	fingerprint string
}

// opinion is the first suspicion of a request.
type opinion struct {
	key       opinionKey
	first     Suspicion
	confirmed bool
}

// Suspicion is one proxy's word on a request.
type Suspicion struct {
	Proxy proxy.ID
	Class Class
	At    Time
	Fence int64 // of the lease, so that the charge can be brought to its pair in order
}

// NewOpinions makes an empty memory of at most that many requests.
func NewOpinions(most int) *Opinions {
	return &Opinions{most: most, order: list.New(), places: map[opinionKey]*list.Element{}}
}

// Suspect takes a suspicion of a request on a target. It is confirmed when
// another proxy suspected the same request within ten minutes; then first is that
// one's word, which is to be charged too, once: for a third proxy first is nil. A
// request without a fingerprint cannot be confirmed. A proxy cannot agree with
// itself.
func (o *Opinions) Suspect(target uint32, fingerprint string, s Suspicion) (first *Suspicion, confirmed bool) {
	if fingerprint == "" {
		return nil, false
	}
	key := opinionKey{target, fingerprint}
	at, known := o.places[key]
	if known && s.At.Sub(at.Value.(*opinion).first.At) > opinionWithin { //nolint:forcetypeassert // nothing else is put in
		o.forget(at)
		known = false
	}
	if !known {
		o.remember(&opinion{key: key, first: s})
		return nil, false
	}
	before := at.Value.(*opinion) //nolint:forcetypeassert // likewise
	switch {
	case before.first.Proxy == s.Proxy:
		return nil, before.confirmed
	case before.confirmed:
		return nil, true
	}
	before.confirmed = true
	return &before.first, true
}

// Clear takes a good answer: whoever suspected this request was alone, and the
// charge stays provisional.
func (o *Opinions) Clear(target uint32, fingerprint string) {
	if at, ok := o.places[opinionKey{target, fingerprint}]; ok {
		o.forget(at)
	}
}

// Len is how many requests are remembered.
func (o *Opinions) Len() int { return o.order.Len() }

func (o *Opinions) remember(x *opinion) {
	if o.order.Len() >= o.most {
		o.forget(o.order.Front())
	}
	o.places[x.key] = o.order.PushBack(x)
}

func (o *Opinions) forget(at *list.Element) {
	delete(o.places, at.Value.(*opinion).key) //nolint:forcetypeassert // likewise
	o.order.Remove(at)
}

// hearOpinion turns a suspicion into a block when another proxy had the same
// one of the same request, and charges that proxy's pair too.
func (s *State) hearOpinion(lease *Lease, o *Outcome, rng *rand.Rand) {
	fingerprint := lease.More.Request.or(o.Request).Fingerprint
	switch {
	case fingerprint == "":
	case o.Class == ClassOK:
		s.opinions.Clear(lease.Target, fingerprint)
	case o.Class == ClassSuspectSoft:
		p := s.proxies[lease.Proxy]
		first, confirmed := s.opinions.Suspect(lease.Target, fingerprint, Suspicion{p.ID, o.Class, s.now, lease.Fence})
		if !confirmed {
			return
		}
		o.Class = ClassBlockedSoft
		if first == nil {
			return
		}
		if other := s.ProxyByID(first.Proxy); other != nil {
			n := Note{Proxy: first.Proxy, Granted: first.At, Fence: first.Fence}
			s.ban(&n, other, s.targets[lease.Target], s.workers[lease.Worker], rng)
		}
	}
}
