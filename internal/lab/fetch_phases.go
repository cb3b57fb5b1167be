package lab

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

var (
	errLocal    = errors.New("not a URL of http or https, or no HTTP proxy")
	errTooLarge = errors.New("larger than is read")
)

func (f *fetch) prepare() error {
	u, err := url.Parse(f.r.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || f.r.Proxy == nil || f.r.Proxy.Scheme != "http" {
		return errLocal
	}
	f.u, f.o.HTTPS = u, u.Scheme == "https"
	return nil
}

// deadline is when a budget ends, which the total budget bounds.
func (f *fetch) deadline(budget time.Duration) time.Time {
	if total := f.r.Total; total > 0 && (budget <= 0 || total < budget) {
		budget = total
	}
	if budget <= 0 {
		return time.Time{}
	}
	return f.begin.Add(budget)
}

// within gives the next phase its budget.
func (f *fetch) within(phase string, budget time.Duration) error {
	f.o.Phase = phase
	return f.conn.SetDeadline(f.deadline(budget))
}

func (f *fetch) dial(ctx context.Context) error {
	d := net.Dialer{Deadline: f.deadline(f.r.Connect)}
	conn, err := d.DialContext(ctx, "tcp", withPort(f.r.Proxy, "80"))
	if err != nil {
		return err
	}
	f.conn, f.in = conn, bufio.NewReader(io.LimitReader(conn, maxRaw))
	return nil
}

// withPort gives host:port of a URL.
func withPort(u *url.URL, port string) string {
	if u.Port() != "" {
		port = u.Port()
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// connect asks for a tunnel; false when the proxy said no.
func (f *fetch) connect() (stands bool, err error) {
	if err := f.within("handshake", f.r.Connect); err != nil {
		return false, err
	}
	host := withPort(f.u, "443")
	if _, err := fmt.Fprintf(f.conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", host, host, f.toProxy()); err != nil {
		return false, err
	}
	res, err := f.head(http.MethodConnect)
	if err != nil {
		return false, err
	}
	if res.StatusCode/100 == 2 {
		return true, nil
	}
	f.note(res)
	return false, res.Body.Close()
}

// toProxy are the headers that are for the proxy.
func (f *fetch) toProxy() string {
	lines := ""
	if user := f.r.Proxy.User; user != nil {
		password, _ := user.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
		lines = "Proxy-Authorization: Basic " + credentials + "\r\n"
	}
	if attempt := f.r.Header.Get(AttemptHeader); attempt != "" && f.o.HTTPS {
		lines += AttemptHeader + ": " + attempt + "\r\n"
	}
	return lines
}

// secure speaks TLS with the target, in the tunnel.
func (f *fetch) secure(ctx context.Context) error {
	if err := f.within("target_tls", f.r.First); err != nil {
		return err
	}
	conn := tls.Client(prefixed{f.conn, f.in}, &tls.Config{
		RootCAs: f.r.RootCAs, ServerName: f.u.Hostname(), MinVersion: tls.VersionTLS12,
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}
	f.conn, f.in = conn, bufio.NewReader(conn)
	return nil
}

// exchange sends the request and reads the answer.
func (f *fetch) exchange() error {
	if err := f.within("sent", f.r.First); err != nil {
		return err
	}
	if err := f.send(); err != nil {
		return err
	}
	if _, err := f.in.Peek(1); err != nil {
		return err
	}
	f.o.FirstByte, f.o.Phase = f.since(), "headers"
	res, err := f.head(http.MethodGet)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // read as far as it is wanted
	f.note(res)
	return f.body(res)
}

func (f *fetch) send() error {
	where, extra := f.u.RequestURI(), ""
	if !f.o.HTTPS {
		where, extra = "http://"+f.u.Host+where, f.toProxy()
	}
	out := bufio.NewWriter(f.conn)
	_, _ = fmt.Fprintf(out, "GET %s HTTP/1.1\r\nHost: %s\r\n%s", where, f.u.Host, extra)
	_ = f.r.Header.WriteSubset(out, map[string]bool{
		"Host": true, "Connection": true, "Proxy-Authorization": true, "Content-Length": true, "Transfer-Encoding": true,
	})
	_, _ = io.WriteString(out, "Connection: close\r\n\r\n")
	return out.Flush() // a bufio.Writer keeps the first error
}

// head reads the head of the final answer.
func (f *fetch) head(method string) (*http.Response, error) {
	for {
		res, err := http.ReadResponse(f.in, &http.Request{Method: method})
		if err != nil || res.StatusCode/100 != 1 {
			return res, err
		}
	}
}

func (f *fetch) note(res *http.Response) {
	f.o.Status = res.StatusCode
	f.o.RetryAfter = res.Header.Get("Retry-After")
	f.o.ProxyStatus = res.Header.Get("Proxy-Status")
}

// body reads the answer to its end.
func (f *fetch) body(res *http.Response) error {
	switch {
	case res.StatusCode == http.StatusProxyAuthRequired:
		f.o.Phase = "handshake" // only a proxy says this
		return nil
	case !f.o.HTTPS && (res.StatusCode == http.StatusForbidden || res.StatusCode == http.StatusBadGateway):
		return nil // whose word it was, nobody knows
	}
	if err := f.within("body", f.r.Total); err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, io.LimitReader(res.Body, maxBody+1))
	f.o.Bytes = min(n, maxBody)
	if err == nil && n > maxBody {
		return errTooLarge
	}
	return err
}
