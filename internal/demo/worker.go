package demo

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/lab"
)

// WorkerOptions make a demo worker: a process of its own that crawls through
// leased proxies.
type WorkerOptions struct {
	Server      string
	Feeder      string
	Name        string
	Concurrency int
	CA          string // file of the lab's certificate
}

// Work crawls until the feeder sends it home.
func Work(ctx context.Context, o WorkerOptions) error {
	api, err := client.New(o.Server)
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(o.CA)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	w := &worker{o: o, api: api, roots: roots, held: map[string]bool{}, http: &http.Client{Timeout: 10 * time.Second}}
	ctx, home := context.WithCancel(ctx)
	defer home()
	var wg sync.WaitGroup
	for range o.Concurrency {
		wg.Go(func() { w.loop(ctx) })
	}
	beat := sync.WaitGroup{}
	beat.Go(func() { w.beat(ctx) })
	wg.Wait()
	home()
	beat.Wait()
	return nil
}

type worker struct {
	o     WorkerOptions
	api   *client.Client
	roots *x509.CertPool
	http  *http.Client

	mu   sync.Mutex
	held map[string]bool
}

// loop takes job after job.
func (w *worker) loop(ctx context.Context) {
	for ctx.Err() == nil {
		j, home, err := w.next(ctx)
		switch {
		case home:
			return
		case err != nil || j == nil:
			pause(ctx, 100*time.Millisecond)
		default:
			w.do(ctx, j)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// next asks the feeder for a job; home means that there will be no more.
func (w *worker) next(ctx context.Context) (j *job, home bool, err error) {
	res, err := w.post(ctx, "/next?worker="+url.QueryEscape(w.o.Name), nil)
	if err != nil {
		return nil, false, err
	}
	defer res.Body.Close() //nolint:errcheck // decoded or empty
	switch res.StatusCode {
	case http.StatusGone:
		return nil, true, nil
	case http.StatusOK:
		j = &job{}
		return j, false, json.NewDecoder(res.Body).Decode(j)
	default:
		return nil, false, nil
	}
}

func (w *worker) post(ctx context.Context, path string, body any) (*http.Response, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.o.Feeder+path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return w.http.Do(req)
}

// do leases a proxy, sends the request, reports, and tells the feeder.
func (w *worker) do(ctx context.Context, j *job) {
	end := ended{ID: j.ID, Worker: w.o.Name}
	got, err := w.api.Acquire(ctx, client.AcquireRequest{
		Target: j.Target, Worker: w.o.Name, WorkerConcurrency: w.o.Concurrency, WaitMS: 2000,
		RequestID: fmt.Sprintf("%s-%d-%s", j.ID, j.Attempts+1, w.o.Name),
		Request:   &client.Request{Fingerprint: j.ID, URL: j.URL, Method: "GET", Attempt: j.Attempts + 1},
	})
	if err != nil {
		var p *client.Problem
		if end.AfterMS = 300; errors.As(err, &p) && p.RetryAfterMS > 0 {
			end.AfterMS = min(p.RetryAfterMS, 1000)
		}
		w.tell(ctx, end)
		return
	}
	lease := &got.Leases[0]
	w.hold(lease.ID, true)
	defer w.hold(lease.ID, false)
	outcome := w.fetch(ctx, lease, j.URL)
	end.Done, end.Class, end.AfterMS = outcome.OK(), "UNREPORTED", 500
	if reported := w.report(ctx, lease, &outcome); reported != nil {
		end.Class = reported.Class
		end.AfterMS = min(reported.Retry.AfterMS, 1000)
	}
	w.tell(ctx, end)
}

func (w *worker) fetch(ctx context.Context, lease *client.Lease, page string) lab.Outcome {
	proxyURL, err := url.Parse(lease.Proxy.URL)
	if err != nil {
		return lab.Outcome{Phase: "local", Error: "protocol"}
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	return lab.Fetch(ctx, lab.FetchRequest{
		Proxy: proxyURL, URL: page, RootCAs: w.roots,
		Connect: ms(lease.Timeouts.ConnectMS), First: ms(lease.Timeouts.FirstByteMS), Total: ms(lease.Timeouts.TotalMS),
	})
}

// report tells what was seen, again if the daemon was away: it counts once.
func (w *worker) report(ctx context.Context, lease *client.Lease, o *lab.Outcome) *client.Reported {
	facts := client.Facts{
		Phase: o.Phase, Error: o.Error, Status: o.Status, ElapsedMS: o.Elapsed.Milliseconds(), ConnectMS: o.ConnectTime.Milliseconds(),
		FirstByteMS: o.FirstByte.Milliseconds(), Bytes: o.Bytes, RetryAfter: o.RetryAfter, ProxyStatus: o.ProxyStatus, HTTPS: o.HTTPS,
		Fence: lease.Fence,
	}
	for range 5 {
		reported, err := w.api.Report(ctx, lease.ID, facts)
		if err == nil {
			return reported
		}
		pause(ctx, 200*time.Millisecond)
	}
	return nil
}

func (w *worker) tell(ctx context.Context, e ended) {
	for range 5 {
		res, err := w.post(ctx, "/end", e)
		if err == nil {
			_ = res.Body.Close()
			return
		}
		pause(ctx, 100*time.Millisecond)
	}
}

func (w *worker) hold(id string, on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if on {
		w.held[id] = true
	} else {
		delete(w.held, id)
	}
}

// beat sends heartbeats for what is held, each third of the ttl.
func (w *worker) beat(ctx context.Context) {
	for ctx.Err() == nil {
		pause(ctx, ttl/3)
		w.mu.Lock()
		ids := []string{}
		for id := range w.held {
			ids = append(ids, id)
		}
		w.mu.Unlock()
		_, _ = w.api.Heartbeat(ctx, w.o.Name, w.o.Concurrency, ids) // the next one comes soon
	}
}
