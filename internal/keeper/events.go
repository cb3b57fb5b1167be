package keeper

import (
	"encoding/json"
	"sync"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// Event is something that an operator may want to act on. Names are listed in
// api/openapi.yaml, under GET /v1/events.
type Event struct {
	N       int64 // counts up from 1 since the daemon's start
	At      pool.Time
	Name    string
	Pool    string
	Subject string // the group, source, target or worker that it is about
	Text    string
}

// MarshalJSON gives the event's form for all who are told of it.
func (e Event) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		At      string `json:"at"`
		Event   string `json:"event"`
		Pool    string `json:"pool"`
		Subject string `json:"subject"`
		Text    string `json:"text"`
	}{e.At.Std().UTC().Format("2006-01-02T15:04:05.000Z07:00"), e.Name, e.Pool, e.Subject, e.Text})
}

// EventNames lists the names of all events; docs/events.md and api/openapi.yaml
// describe each.
func EventNames() []string {
	return []string{eventBudgetWarning, eventBudgetSpent, eventParserSuspect, eventSourceFailing, eventSourceHeld, eventSourceOK, eventTargetVerdict, eventGroupOutage, eventOffline, eventRecovery}
}

// keptEvents is how many events are kept for those that come late.
const keptEvents = 1000

// events are the newest events, and those who listen for more.
type events struct {
	mu     sync.Mutex
	last   int64
	kept   []Event // oldest first
	signal chan struct{}
}

// emit keeps an event, tells the listeners, and writes it into the log.
func (k *Keeper) emit(name, poolName, subject, text string) {
	k.log.Warn("an event", "event", name, "pool", poolName, "subject", subject, "text", text)
	e := &k.events
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	if len(e.kept) >= keptEvents {
		e.kept = append(e.kept[:0], e.kept[keptEvents/10:]...)
	}
	e.kept = append(e.kept, Event{e.last, k.store.Now(), name, poolName, subject, text})
	if e.signal != nil {
		close(e.signal)
		e.signal = nil
	}
}

// EventsAfter gives the kept events with a number above n, oldest first, and a
// channel that is closed when there are more.
func (k *Keeper) EventsAfter(n int64) ([]Event, <-chan struct{}) {
	e := &k.events
	e.mu.Lock()
	defer e.mu.Unlock()
	if n > e.last { // of a daemon that ran before
		n = 0
	}
	if e.signal == nil {
		e.signal = make(chan struct{})
	}
	var list []Event
	for i := range e.kept {
		if e.kept[i].N > n {
			list = append(list, e.kept[i])
		}
	}
	return list, e.signal
}
