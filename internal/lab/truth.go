package lab

import (
	"sync"
	"time"
)

// AttemptHeader names an attempt for the lab's records. It is sent with CONNECT
// and with plain requests; a target sees it if the client sends it to the target.
const AttemptHeader = "X-Lab-Attempt"

// The faults of a [Truth], in the words of the product where it has one.
const (
	FaultNone   = ""       // nothing was made to fail
	FaultProxy  = "proxy"  // the proxy's kind
	FaultTarget = "target" // the target is down or hangs
	FaultRate   = "rate"   // the target answers 429
	FaultBlock  = "block"  // the target bans the address or shows a captcha
	FaultCaller = "caller" // no credentials, or a target that is none of the lab's
)

// Truth is whose fault a failed attempt was.
type Truth struct {
	Fault string    // see the Fault constants
	Kind  string    // of the proxy or target that did it
	At    time.Time // when; zero where it was not recorded
}

// maxRecords bounds what is kept of attempts.
const maxRecords = 1_000_000

// book records what was done to each named attempt; the oldest go first.
type book struct {
	mu    sync.Mutex
	most  int
	truth map[string]Truth
	order []string // a ring of the names, once it is full
	next  int
}

func newBook(most int) *book { return &book{most: most, truth: map[string]Truth{}} }

// note records. A fault replaces what was recorded before, because it comes from
// the hop nearer to the client; "no fault" never hides one.
func (b *book) note(attempt string, t Truth) {
	if attempt == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.truth[attempt]; !known {
		b.enter(attempt)
	} else if t.Fault == FaultNone {
		return
	}
	b.truth[attempt] = t
}

// enter makes room for a new name.
func (b *book) enter(attempt string) {
	if len(b.order) < b.most {
		b.order = append(b.order, attempt)
		return
	}
	delete(b.truth, b.order[b.next])
	b.order[b.next] = attempt
	b.next = (b.next + 1) % b.most
}

func (b *book) look(attempt string) (Truth, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.truth[attempt]
	return t, ok
}

// note records what the lab did to an attempt, now.
func (l *Lab) note(attempt, fault, kind string) {
	l.book.note(attempt, Truth{fault, kind, l.now()})
}

// Truth says what was recorded for an attempt; false when nothing of it was seen.
func (l *Lab) Truth(attempt string) (Truth, bool) { return l.book.look(attempt) }

// JudgeAttempt says whose fault a failed attempt was, which went through the proxy
// at an address to a target and failed at a time: from the record if the lab saw
// the attempt's name, otherwise from what proxy and target were made to do then.
// An empty attempt was not named.
func (l *Lab) JudgeAttempt(proxyAddr, target, attempt string, at time.Time) Truth {
	if t, ok := l.Truth(attempt); ok {
		return t
	}
	t := l.Judge(proxyAddr, target, at, at)
	if attempt != "" && (t.Fault == FaultRate || t.Fault == FaultBlock) {
		return Truth{} // the target answers so only to what it sees, and then it records it
	}
	return t
}

// Judge says whose fault a failed attempt was, which went through the proxy at
// an address to a target and failed between two times. It knows no attempt's
// name, so of a target that fails some requests it says that it failed this one.
func (l *Lab) Judge(proxyAddr, target string, from, until time.Time) Truth {
	p, t := l.proxy(proxyAddr), l.target(target)
	if p != nil && t != nil && p.fails(t, from, until) {
		return Truth{Fault: FaultProxy, Kind: string(p.Kind)}
	}
	if t != nil {
		if fault := t.fault(from, until); fault != FaultNone {
			return Truth{Fault: fault, Kind: string(t.Kind)}
		}
	}
	if p != nil && p.mayFail() {
		return Truth{Fault: FaultProxy, Kind: string(p.Kind)}
	}
	return Truth{}
}
