package demo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// job is one request id on its way: kept in a file of its own, in the folder of
// its state.
type job struct {
	ID       string    `json:"id"`
	Target   string    `json:"target"`
	URL      string    `json:"url"`
	Attempts int       `json:"attempts"`
	Classes  []string  `json:"classes"`
	First    time.Time `json:"first"`

	state   string // queued, delivered, failed
	taken   string // by this worker
	takenAt time.Time
	notTill time.Time
}

// The folders of a job's file.
const (
	stateQueued    = "queued"
	stateDelivered = "delivered"
	stateFailed    = "failed"
)

// maxAttempts is when a request is given up. An outage of a quarter of the run
// must not use it up.
const maxAttempts = 60

// holdLimit is how long a worker may keep a job before it is queued again.
const holdLimit = 15 * time.Second

// feeder hands out jobs and books their ends. It is the demo's request queue,
// apart from the proxy state, as a crawler's is.
type feeder struct {
	dir string

	mu     sync.Mutex
	jobs   map[string]*job
	order  []*job
	closed bool // nothing new
	errs   []string
}

func newFeeder(dir string) (*feeder, error) {
	for _, state := range []string{stateQueued, stateDelivered, stateFailed} {
		if err := os.MkdirAll(filepath.Join(dir, state), 0o700); err != nil {
			return nil, err
		}
	}
	return &feeder{dir: dir, jobs: map[string]*job{}}, nil
}

func (f *feeder) file(j *job, state string) string { return filepath.Join(f.dir, state, j.ID+".json") }

// save writes the job's file anew and moves it to the folder of its state.
func (f *feeder) save(j *job, state string) {
	body, err := json.Marshal(j)
	if err == nil {
		err = os.WriteFile(f.file(j, j.state), body, 0o600)
	}
	if err == nil && state != j.state {
		err = os.Rename(f.file(j, j.state), f.file(j, state))
	}
	if err != nil {
		f.errs = append(f.errs, fmt.Sprintf("job %s: %v", j.ID, err))
		return
	}
	j.state = state
}

// add issues a request id.
func (f *feeder) add(target, base string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := fmt.Sprintf("r%05d", len(f.order)+1)
	j := &job{ID: id, Target: target, URL: base + "/" + id, First: now, state: stateQueued}
	f.jobs[id] = j
	f.order = append(f.order, j)
	f.save(j, stateQueued)
}

// next gives a worker the job that has waited longest among those that may go.
func (f *feeder) next(worker string, now time.Time) *job {
	f.mu.Lock()
	defer f.mu.Unlock()
	var best *job
	for _, j := range f.order {
		if j.state != stateQueued || j.taken != "" || now.Before(j.notTill) {
			continue
		}
		if best == nil || j.notTill.Before(best.notTill) {
			best = j
		}
	}
	if best == nil {
		return nil
	}
	best.taken, best.takenAt = worker, now
	out := *best
	return &out
}

// ended is what a worker says of a job.
type ended struct {
	ID      string `json:"id"`
	Worker  string `json:"worker"`
	Done    bool   `json:"done"`
	Class   string `json:"class"`    // of the attempt; "" = it was not sent
	AfterMS int64  `json:"after_ms"` // when to try again
}

// end books the end of an attempt. Only the worker that holds the job is heard.
func (f *feeder) end(e ended, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.jobs[e.ID]
	if j == nil || j.taken != e.Worker || j.state != stateQueued {
		return
	}
	j.taken = ""
	if e.Class != "" {
		j.Attempts++
		j.Classes = append(j.Classes, e.Class)
	}
	switch {
	case e.Done:
		f.save(j, stateDelivered)
	case j.Attempts >= maxAttempts:
		f.save(j, stateFailed)
	default:
		j.notTill = now.Add(time.Duration(e.AfterMS) * time.Millisecond)
		f.save(j, stateQueued)
	}
}

// drop queues a dead worker's jobs again.
func (f *feeder) drop(worker string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range f.order {
		if j.taken == worker {
			j.taken = ""
		}
	}
}

// expire queues jobs again whose workers went silent.
func (f *feeder) expire(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range f.order {
		if j.taken != "" && now.Sub(j.takenAt) > holdLimit {
			j.taken = ""
		}
	}
}

// pending counts the jobs that are not ended.
func (f *feeder) pending() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, j := range f.order {
		if j.state == stateQueued {
			n++
		}
	}
	return n
}

// close ends the issue of work: workers that ask are sent home.
func (f *feeder) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// ledger is where the files stand at the end.
type ledger struct {
	requests, delivered, failed, queued, lost int
	failedEarly                               int // given up after fewer than two attempts
}

// count looks for the file of every id that was issued: whatever is not in
// exactly one folder is lost. delivered asks the target whether it answered.
func (f *feeder) count(delivered func(*job) bool) ledger {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := ledger{requests: len(f.order)}
	for _, j := range f.order {
		places := []string{}
		for _, state := range []string{stateQueued, stateDelivered, stateFailed} {
			if _, err := os.Stat(f.file(j, state)); err == nil {
				places = append(places, state)
			}
		}
		switch {
		case len(places) != 1:
			l.lost++
		case places[0] == stateDelivered && !delivered(j):
			l.lost++ // booked, but the site never answered it
		case places[0] == stateDelivered:
			l.delivered++
		case places[0] == stateFailed:
			l.failed++
			if j.Attempts < 2 {
				l.failedEarly++
			}
		default:
			l.queued++
		}
	}
	return l
}

// ServeHTTP speaks to the workers: POST /next and POST /end.
func (f *feeder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	switch r.URL.Path {
	case "/next":
		f.mu.Lock()
		closed := f.closed
		f.mu.Unlock()
		if closed {
			w.WriteHeader(http.StatusGone)
			return
		}
		j := f.next(r.URL.Query().Get("worker"), now)
		if j == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		_ = json.NewEncoder(w).Encode(j)
	case "/end":
		var e ended
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&e); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		f.end(e, now)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}
