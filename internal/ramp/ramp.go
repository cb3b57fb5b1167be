package ramp

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/hostler-proxy/hostler/client"
)

// Options say what to ramp, and how far.
type Options struct {
	API         *client.Client
	Pool        string
	URL         string
	Start, Max  int           // requests at once
	Step        time.Duration // length of a step
	Bounds      Bounds
	MustContain string // text that a valid page holds; "" = any good status is valid
	Worker      string
	Roots       *x509.CertPool // nil = the system's
	// Live is called a few times a second with the step as it stands; may be nil.
	Live func(s Step, left time.Duration)
	// Done is called with each step that ended; may be nil.
	Done func(Step)
}

// Result is the curve, and the last good point on it.
type Result struct {
	Pool      string `json:"pool"`
	URL       string `json:"url"`
	Target    string `json:"target"` // as the server calls it
	Steps     []Step `json:"steps"`
	StoppedBy Stop   `json:"stopped_by"`
	LastGood  *Last  `json:"last_good"` // nil = not even the first step was good
	Applied   bool   `json:"applied"`
}

// Last is the last good concurrency.
type Last struct {
	Concurrency int     `json:"concurrency"` // on the target
	PerProxy    float64 `json:"per_proxy"`
	RPS         float64 `json:"rps"`
}

// Run ramps until a step is one too many, the highest is good, or ctx ends. What
// was found until then is the result; an error means that nothing could be asked.
func Run(ctx context.Context, o Options) (Result, error) {
	r := &run{o: o}
	res := Result{Pool: o.Pool, URL: o.URL, Steps: []Step{}, StoppedBy: StopMax}
	for n := o.Start; n <= o.Max; {
		s, err := r.step(ctx, n, first(res.Steps))
		if err != nil {
			return res, err
		}
		if ctx.Err() != nil {
			s.Stop = StopEnded
		}
		res.Steps = append(res.Steps, s)
		res.Target = r.target
		if o.Done != nil {
			o.Done(s)
		}
		if s.Stop != Good {
			res.StoppedBy = s.Stop
			break
		}
		res.LastGood = &Last{s.Concurrency, share(s.Concurrency, s.Proxies), s.RPS}
		if n == o.Max {
			break
		}
		n = min(next(n), o.Max)
	}
	return res, nil
}

func first(steps []Step) *Step {
	if len(steps) == 0 {
		return nil
	}
	return &steps[0]
}

// run is a ramp under way.
type run struct {
	o      Options
	mu     sync.Mutex
	tally  *tally
	target string
	failed error
}

// step keeps n requests under way for the length of a step, or until it is sure
// that they are too many.
func (r *run) step(ctx context.Context, n int, first *Step) (Step, error) {
	r.tally = &tally{step: Step{Concurrency: n}, proxies: map[string]bool{}}
	step, stop := context.WithTimeout(ctx, r.o.Step)
	defer stop()
	begin := time.Now()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { r.work(ctx, step, n) })
	}
	r.watch(step, begin, first, stop)
	took := time.Since(begin) // what is under way is awaited, not counted
	r.mu.Lock()
	s := r.tally.sum(took)
	r.mu.Unlock()
	wg.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Requests == 0 && r.failed != nil {
		return s, r.failed
	}
	s.Stop = r.o.Bounds.Judge(&s, first, r.o.MustContain != "", 0)
	if s.Stop == Good && (s.Requests == 0 || s.InFlight < reached*float64(n) && s.Refused > 0) {
		s.Stop = StopPool
	}
	return s, nil
}

// sure is how many standard deviations a share must be above its bound to stop a
// step before its time.
const sure = 2.3

// watch looks at the step a few times a second until it ends.
func (r *run) watch(ctx context.Context, begin time.Time, first *Step, stop func()) {
	tick := time.NewTicker(min(250*time.Millisecond, r.o.Step/8+time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.mu.Lock()
		s := r.tally.sum(time.Since(begin))
		r.mu.Unlock()
		if r.o.Live != nil {
			r.o.Live(s, max(0, r.o.Step-time.Since(begin)))
		}
		if r.o.Bounds.Judge(&s, first, r.o.MustContain != "", sure) != Good {
			stop()
			return
		}
	}
}

// longestWait bounds one wait for a proxy.
const longestWait = 10 * time.Second

// work sends request after request until the step ends; what is under way then
// goes on, unless the ramp itself ends.
func (r *run) work(ctx, step context.Context, n int) {
	for step.Err() == nil {
		got, err := r.o.API.Acquire(step, client.AcquireRequest{
			Pool: r.o.Pool, Target: r.o.URL, Worker: r.o.Worker, WorkerConcurrency: n, WaitMS: min(longestWait, r.o.Step).Milliseconds(),
		})
		if err != nil {
			r.refused(step, err)
			continue
		}
		lease := &got.Leases[0]
		o := fetch(ctx, lease, r.o.URL, []byte(r.o.MustContain), r.o.Roots)
		r.mu.Lock()
		r.target = lease.Target
		if step.Err() == nil {
			r.tally.add(&o, lease.Proxy.ID)
		}
		r.mu.Unlock()
		o.facts.Request = &client.Request{URL: r.o.URL, Method: http.MethodGet, Attempt: 1}
		if _, err := r.o.API.Report(context.WithoutCancel(ctx), lease.ID, o.facts); err != nil {
			r.fail(fmt.Errorf("report: %w", err))
		}
	}
}

// refused waits as long as the server says.
func (r *run) refused(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	wait := time.Second
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Slug() == client.NoProxy {
		wait = max(p.RetryAfter(), 10*time.Millisecond)
		r.mu.Lock()
		r.tally.step.Refused++
		r.mu.Unlock()
	}
	r.fail(err)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// fail keeps the last error, for a step in which nothing was sent.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = err
}
