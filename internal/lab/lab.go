// Package lab gives targets and proxies on loopback whose behaviour is known:
// for the demo, for tests, for benchmarks. Sockets, HTTP and TLS are real.
//
// Each proxy dials its targets from a loopback address of its own (127.0.1.1 and
// up), so that a target that counts by address sees proxies as addresses, as real
// sites do. (Linux has all of 127.0.0.0/8; elsewhere the addresses must be added
// to the loopback interface.) A lab proxy reaches lab targets only: it is never
// an open proxy.
//
// The lab knows the truth. A client may name an attempt with the header
// X-Lab-Attempt; [Lab.Truth] says what was really done to it. What leaves no
// trace (a refused connection has no header) is judged from what proxy and target
// were made to do at that time: [Lab.JudgeAttempt] and [Lab.Judge].
//
// [Fetch] is a client that knows how far a request came.
package lab

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// Lab is a running lab.
type Lab struct {
	now     func() time.Time
	start   time.Time
	latency Range
	proxies []*Proxy
	targets []*Target
	ca      *authority
	rng     *rand.Rand // used while starting only: each proxy has its own afterwards
	book    *book
	sockets sockets

	ctx     context.Context // ends with the lab
	stop    context.CancelFunc
	servers []*http.Server
	holds   []io.Closer
	wg      sync.WaitGroup
	close   func() error
}

// Start opens all sockets. The context bounds the opening only: Close ends a lab.
func Start(ctx context.Context, o Options) (*Lab, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("start a lab: %w", err)
	}
	if o.Now == nil {
		o.Now = wallClock
	}
	l := &Lab{
		now: o.Now, start: o.Now(), latency: o.Latency, book: newBook(maxRecords),
		rng:     rand.New(rand.NewPCG(o.Seed, 7)),
		sockets: sockets{open: map[io.Closer]struct{}{}},
	}
	l.ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.close = sync.OnceValue(l.shut)
	if err := l.open(ctx, o); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) open(ctx context.Context, o Options) error {
	var err error
	if l.ca, err = newAuthority(); err != nil {
		return fmt.Errorf("make the lab's certificates: %w", err)
	}
	for _, spec := range o.Targets {
		if err := l.startTarget(ctx, spec); err != nil {
			return fmt.Errorf("start the target %q: %w", spec.Name, err)
		}
	}
	for _, spec := range o.Proxies {
		for range spec.Count {
			if err := l.startProxy(ctx, spec); err != nil {
				return fmt.Errorf("start a %s proxy: %w", spec.Kind, err)
			}
		}
	}
	return nil
}

// Proxies lists the proxies in the order of their specs.
func (l *Lab) Proxies() []*Proxy { return l.proxies }

// Targets lists the targets in the order of their specs.
func (l *Lab) Targets() []*Target { return l.targets }

// CertPool trusts the lab's HTTPS targets.
func (l *Lab) CertPool() *x509.CertPool { return l.ca.pool() }

// CertPEM is the certificate of the authority that signed those of the HTTPS
// targets.
func (l *Lab) CertPEM() []byte { return l.ca.pem() }

// Close ends all sockets and waits for what used them. It may be called again.
func (l *Lab) Close() error { return l.close() }

func (l *Lab) shut() error {
	l.stop()
	var errs []error
	for _, s := range l.servers {
		errs = append(errs, s.Close())
	}
	l.sockets.closeAll()
	for _, h := range l.holds {
		errs = append(errs, h.Close())
	}
	l.wg.Wait()
	return errors.Join(errs...)
}

// proxy finds a proxy by its address.
func (l *Lab) proxy(addr string) *Proxy {
	for _, p := range l.proxies {
		if p.Addr == addr {
			return p
		}
	}
	return nil
}

// target finds a target by its name.
func (l *Lab) target(name string) *Target {
	for _, t := range l.targets {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// targetAt finds a target by its host and port.
func (l *Lab) targetAt(addr string) *Target {
	for _, t := range l.targets {
		if t.Addr == addr {
			return t
		}
	}
	return nil
}
