package lab

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// FetchRequest is one GET through one HTTP proxy.
type FetchRequest struct {
	Proxy   *url.URL
	URL     string
	RootCAs *x509.CertPool
	Connect time.Duration // budget for reaching and greeting the proxy
	First   time.Duration // budget until the head of the answer
	Total   time.Duration
}

// Outcome is what was seen, in the API's words.
type Outcome struct {
	Phase, Error string
	Status       int
	Elapsed      time.Duration
	ConnectTime  time.Duration
	FirstByte    time.Duration
	Bytes        int64
	RetryAfter   string
	ProxyStatus  string
	HTTPS        bool
}

// OK says whether the page came whole.
func (o *Outcome) OK() bool { return o.Error == "" && o.Phase == "body" && o.Status == http.StatusOK }

// Fetch sends the request by hand, so that every phase is known.
func Fetch(ctx context.Context, r FetchRequest) (o Outcome) {
	begin := time.Now()
	defer func() { o.Elapsed = time.Since(begin) }()
	u, err := url.Parse(r.URL)
	if err != nil {
		return Outcome{Phase: "local", Error: "protocol"}
	}
	o.HTTPS = u.Scheme == "https"
	o.Phase = "proxy_dial"
	d := net.Dialer{Deadline: begin.Add(r.Connect)}
	conn, err := d.DialContext(ctx, "tcp", r.Proxy.Host)
	if err != nil {
		o.Error = errorKind(ctx, err)
		return o
	}
	defer conn.Close() //nolint:errcheck // nothing to save
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	f := &fetch{r: r, u: u, o: &o, begin: begin, conn: conn}
	if err := f.run(ctx); err != nil {
		o.Error = errorKind(ctx, err)
	}
	return o
}

type fetch struct {
	r     FetchRequest
	u     *url.URL
	o     *Outcome
	begin time.Time
	conn  net.Conn
}

func (f *fetch) run(ctx context.Context) error {
	if f.o.HTTPS {
		ok, err := f.connect(ctx)
		if err != nil || !ok {
			return err
		}
	}
	f.o.ConnectTime = time.Since(f.begin)
	f.o.Phase = "sent"
	if err := f.conn.SetDeadline(f.begin.Add(f.r.First)); err != nil {
		return err
	}
	target := f.u.RequestURI()
	extra := ""
	if !f.o.HTTPS {
		target = f.u.Scheme + "://" + f.u.Host + f.u.RequestURI()
		extra = f.proxyHeaders()
	}
	if _, err := fmt.Fprintf(f.conn, "GET %s HTTP/1.1\r\nHost: %s\r\n%sConnection: close\r\n\r\n", target, f.u.Host, extra); err != nil {
		return err
	}
	in := bufio.NewReader(f.conn)
	if _, err := in.Peek(1); err != nil {
		return err
	}
	f.o.FirstByte = time.Since(f.begin)
	f.o.Phase = "headers"
	res, err := http.ReadResponse(in, &http.Request{Method: http.MethodGet})
	if err != nil {
		return err
	}
	return f.body(res)
}

func (f *fetch) proxyHeaders() string {
	pass, _ := f.r.Proxy.User.Password()
	credentials := base64.StdEncoding.EncodeToString([]byte(f.r.Proxy.User.Username() + ":" + pass))
	return "Proxy-Authorization: Basic " + credentials + "\r\n"
}

// connect opens a tunnel and speaks TLS in it; ok is false when the proxy said no.
func (f *fetch) connect(ctx context.Context) (ok bool, err error) {
	f.o.Phase = "handshake"
	if err := f.conn.SetDeadline(f.begin.Add(f.r.Connect)); err != nil {
		return false, err
	}
	if _, err := fmt.Fprintf(f.conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", f.u.Host, f.u.Host, f.proxyHeaders()); err != nil {
		return false, err
	}
	res, err := http.ReadResponse(bufio.NewReader(f.conn), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return false, err
	}
	defer res.Body.Close() //nolint:errcheck // there is none
	if res.StatusCode != http.StatusOK {
		f.head(res)
		return false, nil
	}
	f.o.Phase = "target_tls"
	if err := f.conn.SetDeadline(f.begin.Add(f.r.First)); err != nil {
		return false, err
	}
	secure := tls.Client(f.conn, &tls.Config{RootCAs: f.r.RootCAs, ServerName: f.u.Hostname(), MinVersion: tls.VersionTLS12})
	if err := secure.HandshakeContext(ctx); err != nil {
		return false, err
	}
	f.conn = secure
	return true, nil
}

func (f *fetch) head(res *http.Response) {
	f.o.Status = res.StatusCode
	f.o.RetryAfter = res.Header.Get("Retry-After")
	f.o.ProxyStatus = res.Header.Get("Proxy-Status")
}

func (f *fetch) body(res *http.Response) error {
	defer res.Body.Close() //nolint:errcheck // read to its end
	f.head(res)
	if res.StatusCode == http.StatusProxyAuthRequired {
		f.o.Phase, f.o.Error = "handshake", "auth" // only a proxy says this
		return nil
	}
	f.o.Phase = "body"
	if err := f.conn.SetDeadline(f.begin.Add(f.r.Total)); err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
	f.o.Bytes = n
	if errors.Is(err, io.ErrUnexpectedEOF) {
		f.o.Error = "truncated"
		return nil
	}
	return err
}

// errorKind gives the API's word for an error.
func errorKind(ctx context.Context, err error) string {
	var cert *tls.CertificateVerificationError
	var dns *net.DNSError
	var record tls.RecordHeaderError
	switch {
	case ctx.Err() != nil:
		return "cancelled"
	case errors.Is(err, os.ErrDeadlineExceeded) || isTimeout(err):
		return "timeout"
	case errors.As(err, &cert):
		return "cert"
	case errors.As(err, &dns):
		return "dns"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "eof"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "unreachable"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.EADDRNOTAVAIL):
		return "resource"
	case errors.As(err, &record), strings.Contains(err.Error(), "malformed HTTP"):
		return "protocol"
	case strings.HasPrefix(err.Error(), "tls:"):
		return "tls"
	default:
		return "other"
	}
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
