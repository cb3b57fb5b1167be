package demo

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/client"
	"github.com/hostler-proxy/hostler/internal/lab"
)

// sumUp gathers what was seen and holds it against the lab's truth.
func (r *run) sumUp(ctx context.Context) error {
	r.watch.look(ctx)
	s := &r.sum
	books := r.feeder.count(r.answered)
	s.Requests, s.Delivered, s.FailedFinal, s.Queued, s.Lost = books.requests, books.delivered, books.failed, books.queued, books.lost
	if books.failedEarly > 0 {
		s.Errors = append(s.Errors, fmt.Sprintf("%d requests were given up after fewer than two attempts", books.failedEarly))
	}
	s.Errors = append(s.Errors, r.feeder.errs...)
	pool, err := r.api.Pool(ctx, "default")
	if err != nil {
		return err
	}
	l := pool.Leases
	s.Leases = LeaseNumbers{Granted: l.Granted, Reported: l.Reported, Released: l.Released, Expired: l.Expired, Open: l.Open}
	for _, t := range r.lab.Targets() {
		s.Targets = append(s.Targets, TargetNumbers{t.Name, t.Requests.Load(), t.OK.Load(), t.S429.Load()})
	}
	r.countProxies()
	return r.attribute(ctx)
}

// answered asks the site whether it ever answered a request.
func (r *run) answered(j *job) bool {
	for _, t := range r.lab.Targets() {
		if t.Name == j.Target {
			return t.Delivered("/"+j.ID) > 0
		}
	}
	return false
}

// kinds maps the ids of the daemon's proxies to the lab's.
func (r *run) kinds() map[string]*lab.Proxy {
	byAddr := map[string]*lab.Proxy{}
	for _, p := range r.lab.Proxies() {
		byAddr[p.Addr] = p
	}
	out := map[string]*lab.Proxy{}
	for id, at := range r.watch.seen {
		out[id] = byAddr[net.JoinHostPort(at.last.Host, strconv.Itoa(int(at.last.Port)))]
	}
	return out
}

func (r *run) countProxies() {
	n := &r.sum.Proxies
	for id, p := range r.kinds() {
		at := r.watch.seen[id]
		if at.back {
			n.CameBack++
		}
		switch p.Kind {
		case lab.Refusing, lab.WrongCredentials:
			n.Bad++
			if at.maxStreak >= 2 && at.last.State != "active" && at.last.State != "new" {
				n.BadResting++
			}
		case lab.Good:
			n.Good++
			switch at.last.State {
			case "suspended":
				n.GoodSuspended++
			case "cooling":
				n.GoodCooling++
			}
		}
	}
}

// attribute compares the blame of every failed attempt with the truth.
func (r *run) attribute(ctx context.Context) error {
	a := &r.sum.Attribution
	a.ByKind = map[string]*Score{}
	kinds := r.kinds()
	filter := client.FailureFilter{Limit: 1000}
	for {
		list, cursor, err := r.api.Failures(ctx, filter)
		if err != nil {
			return err
		}
		for _, f := range list {
			if f.Proxy != "" && f.Class != "LEASE_EXPIRED" {
				r.attributeOne(a, kinds[f.Proxy], f)
			}
		}
		if filter.Cursor = cursor; cursor == "" {
			break
		}
	}
	if n := a.Right + a.Wrong; n > 0 {
		a.Accuracy = float64(a.Right) / float64(n)
	}
	return nil
}

func (r *run) attributeOne(a *Attribution, p *lab.Proxy, f client.Failure) {
	until := f.At
	truth := r.lab.Judge(p.Addr, f.Target, until.Add(-time.Duration(f.ElapsedMS)*time.Millisecond), until)
	if truth.Kind == "" {
		truth.Kind = "unexplained"
	}
	score := a.ByKind[truth.Kind]
	if score == nil {
		score = &Score{}
		a.ByKind[truth.Kind] = score
	}
	if blames(f.Fault, truth.Fault) {
		score.Right++
		a.Right++
	} else {
		score.Wrong++
		a.Wrong++
	}
}

// blames says whether the daemon's word means the true fault.
func blames(said, truth string) bool {
	switch truth {
	case "proxy":
		return said == "proxy" || said == "rule" || said == "group"
	case "target":
		return said == "target"
	case "rate":
		return said == "rate"
	default:
		return false
	}
}

// check holds the summary against what the demo promises.
func (r *run) check() {
	s := &r.sum
	must := func(ok bool, format string, args ...any) {
		if !ok {
			s.Errors = append(s.Errors, fmt.Sprintf(format, args...))
		}
	}
	must(s.Requests > 0, "no request was issued")
	must(s.Lost == 0, "%d requests were lost", s.Lost)
	must(s.Leases.Open == 0, "%d leases are still open", s.Leases.Open)
	must(s.Proxies.BadResting == s.Proxies.Bad, "%d of %d refusing and wrong-credential proxies rest after two failed trials",
		s.Proxies.BadResting, s.Proxies.Bad)
	must(s.Proxies.CameBack > 0, "no cooling proxy came back to active through probation")
	must(s.Proxies.GoodSuspended == 0, "%d good proxies are suspended", s.Proxies.GoodSuspended)
	if s.Errors == nil {
		s.Errors = []string{}
	}
}

// Text is the summary for people.
func (s *Summary) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("")
	line("requests   %d issued: %d delivered, %d failed for good, %d still queued, %d lost", s.Requests, s.Delivered, s.FailedFinal, s.Queued, s.Lost)
	line("leases     %d granted: %d reported, %d released, %d expired and recovered, %d open", s.Leases.Granted, s.Leases.Reported,
		s.Leases.Released, s.Leases.Expired, s.Leases.Open)
	if s.Recovered.Worker != "" {
		line("recovery   %s was killed with %d leases; all were back after %d ms", s.Recovered.Worker, s.Recovered.Leases, s.Recovered.AfterMS)
	}
	line("proxies    %d of %d bad ones rest; of %d good ones %d are suspended and %d cool; %d came back from a cooldown",
		s.Proxies.BadResting, s.Proxies.Bad, s.Proxies.Good, s.Proxies.GoodSuspended, s.Proxies.GoodCooling, s.Proxies.CameBack)
	line("blame      %d of %d failed attempts attributed rightly (%.0f %%)", s.Attribution.Right, s.Attribution.Right+s.Attribution.Wrong,
		100*s.Attribution.Accuracy)
	for _, kind := range sortedKeys(s.Attribution.ByKind) {
		k := s.Attribution.ByKind[kind]
		line("             %-18s %3d right, %3d wrong", kind, k.Right, k.Wrong)
	}
	for _, t := range s.Targets {
		line("site       %-9s %4d requests, %4d ok, %3d answered 429", t.Name, t.Requests, t.OK, t.S429)
	}
	if len(s.Errors) == 0 {
		line("result     everything that the demo promises was seen")
	}
	for _, e := range s.Errors {
		line("NOT MET    %s", e)
	}
	return b.String()
}
