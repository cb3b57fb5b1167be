package ramp

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/hostler-proxy/hostler/client"
)

// outcome is what was seen of one request.
type outcome struct {
	facts   client.Facts
	elapsed time.Duration
}

func (o *outcome) ok() bool {
	return o.facts.Error == "" && o.facts.Status >= 200 && o.facts.Status < 400
}

// maxBody is how much of a page is read.
const maxBody = 4 << 20

// fetch sends one GET through a leased proxy and tells how far it came. It is the
// one place that dials.
func fetch(ctx context.Context, lease *client.Lease, target string, contains []byte, roots *x509.CertPool) outcome {
	begin := time.Now()
	f := &fetching{phase: "local"}
	err := f.run(ctx, lease, target, contains, roots)
	f.mu.Lock()
	defer f.mu.Unlock()
	o := outcome{facts: f.facts, elapsed: time.Since(begin)}
	o.facts.Phase, o.facts.Error = f.phase, errorWord(ctx, f.phase, err)
	o.facts.ElapsedMS = o.elapsed.Milliseconds()
	if o.facts.Status == http.StatusProxyAuthRequired {
		o.facts.Phase, o.facts.Error = "handshake", "auth" // only a proxy says this
	} else if f.phase == "handshake" && o.facts.Status != 0 {
		o.facts.Error = "" // the proxy answered: the status says it all
	}
	return o
}

// fetching is a request under way; the transport's hooks come from other goroutines.
type fetching struct {
	mu    sync.Mutex
	phase string
	facts client.Facts
	tls   int // handshakes begun
}

func (f *fetching) at(phase string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.phase = phase
}

func (f *fetching) run(ctx context.Context, lease *client.Lease, target string, contains []byte, roots *x509.CertPool) error {
	proxy, err := url.Parse(lease.Proxy.URL)
	if err != nil {
		return errors.New("the lease's proxy has no URL") // the error would quote its password
	}
	budget := func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
	ctx, cancel := context.WithTimeout(ctx, budget(lease.Timeouts.TotalMS))
	defer cancel()
	transport := &http.Transport{
		Proxy:                  http.ProxyURL(proxy),
		DialContext:            (&net.Dialer{Timeout: budget(lease.Timeouts.ConnectMS)}).DialContext,
		TLSHandshakeTimeout:    budget(lease.Timeouts.FirstByteMS),
		ResponseHeaderTimeout:  budget(lease.Timeouts.FirstByteMS),
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives:      true,
		OnProxyConnectResponse: f.connected,
	}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, f.trace(proxy.Scheme)), http.MethodGet, target, nil)
	if err != nil {
		return errors.New("the URL cannot be requested")
	}
	f.facts.HTTPS = req.URL.Scheme == "https"
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // read as far as it is wanted
	return f.read(res, contains)
}

// connected notes what the proxy said to CONNECT.
func (f *fetching) connected(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
	if res.StatusCode/100 != 2 {
		f.mu.Lock()
		f.phase, f.facts.Status = "handshake", res.StatusCode
		f.facts.ProxyStatus = res.Header.Get("Proxy-Status")
		f.mu.Unlock()
	}
	return nil
}

// trace follows the request through its phases. An https proxy has a handshake of
// its own before the target's.
func (f *fetching) trace(scheme string) *httptrace.ClientTrace {
	begin := time.Now()
	return &httptrace.ClientTrace{
		GetConn: func(string) { f.at("proxy_dial") },
		ConnectDone: func(_, _ string, err error) {
			if err == nil {
				f.at("handshake")
			}
		},
		TLSHandshakeStart: func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.tls++; f.tls == 1 && scheme == "https" {
				f.phase = "proxy_tls"
			} else {
				f.phase = "target_tls"
			}
		},
		GotConn: func(httptrace.GotConnInfo) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.phase, f.facts.ConnectMS = "sent", time.Since(begin).Milliseconds()
		},
		GotFirstResponseByte: func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.phase, f.facts.FirstByteMS = "headers", time.Since(begin).Milliseconds()
		},
	}
}

// read takes the answer.
func (f *fetching) read(res *http.Response, contains []byte) error {
	f.mu.Lock()
	f.phase, f.facts.Status, f.facts.Method = "headers", res.StatusCode, http.MethodGet
	f.facts.RetryAfter, f.facts.ProxyStatus = res.Header.Get("Retry-After"), res.Header.Get("Proxy-Status")
	f.mu.Unlock()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.phase, f.facts.Bytes, f.facts.BodyBytes = "body", int64(len(body)), int64(len(body))
	if len(contains) > 0 && err == nil {
		f.facts.Valid = new(bytes.Contains(body, contains))
	}
	return err
}

// errorWord gives the API's word for an error; no text of it is kept.
func errorWord(ctx context.Context, phase string, err error) string {
	var timeout net.Error
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	switch {
	case err == nil:
		return ""
	case ctx.Err() != nil:
		return "cancelled"
	case phase == "local":
		return "protocol"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.As(err, &cert):
		return "cert"
	case errors.As(err, &record), phase == "proxy_tls", phase == "target_tls" && !errors.Is(err, io.EOF):
		return "tls"
	case errors.As(err, &dns):
		return "dns"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	case phase == "body" && errors.Is(err, io.ErrUnexpectedEOF):
		return "truncated"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "eof"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "unreachable"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.EADDRNOTAVAIL):
		return "resource"
	default:
		return "other"
	}
}
