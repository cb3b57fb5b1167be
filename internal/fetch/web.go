package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hostler-proxy/hostler/internal/source"
)

// maxHops bounds redirects.
const maxHops = 5

// visit is one fetch of one source over the network.
type visit struct {
	source *source.Source
	req    *source.Request
	client *http.Client
	left   int64 // bytes that may still come
}

func (f *Fetcher) web(ctx context.Context, s *source.Source, last Mark) (*Result, error) {
	req, err := s.Request(f.Environment())
	if err != nil {
		return nil, faultf("%v", err)
	}
	transport := &http.Transport{
		// no proxy: it would resolve names itself, past the guard
		DialContext:            newGuard(req.URL.Hostname(), s.AllowSpecial).dial(f.Resolver),
		DisableCompression:     true, // unpacked here, within the bound
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	defer transport.CloseIdleConnections()
	v := &visit{source: s, req: req, left: s.MaxBytes, client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if s.Kind == source.KindJSON {
		return v.pages(ctx, last)
	}
	body, mark, unchanged, err := v.get(ctx, req.URL, last)
	if err != nil || unchanged {
		return &Result{Unchanged: unchanged, Mark: mark}, err
	}
	res, err := list(body, s)
	if err == nil {
		res.Mark = mark
	}
	return res, err
}

// get fetches one URL through its redirects.
func (v *visit) get(ctx context.Context, at *url.URL, last Mark) (body []byte, mark Mark, unchanged bool, err error) {
	for range maxHops + 1 {
		res, err := v.send(ctx, at, last)
		if err != nil {
			return nil, mark, false, sentence(err)
		}
		if next := res.Header.Get("Location"); next != "" && redirects(res.StatusCode) {
			_ = res.Body.Close()
			if at, err = follow(at, next); err != nil {
				return nil, mark, false, err
			}
			continue
		}
		body, mark, unchanged, err = v.answer(res, last)
		_ = res.Body.Close()
		return body, mark, unchanged, err
	}
	return nil, mark, false, faultf("more than %d redirects", maxHops)
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow says where a redirect leads.
func follow(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	switch {
	case err != nil || to.Hostname() == "" || to.User != nil:
		return nil, faultf("a redirect leads to what is no plain URL")
	case to.Scheme != "http" && to.Scheme != "https":
		return nil, faultf("a redirect leads away from http and https")
	case from.Scheme == "https" && to.Scheme == "http":
		return nil, faultf("a redirect leads from https to http, which is not followed")
	}
	return to, nil
}

// sameOrigin says whether two URLs have scheme, host and port in common.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && canonical(a.Hostname()) == canonical(b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// send sends one request: with credentials only to the source's own origin.
func (v *visit) send(ctx context.Context, at *url.URL, last Mark) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "gzip")
	req.Header.Set("User-Agent", "hostler")
	if sameOrigin(at, v.req.URL) {
		for name, value := range v.req.Headers {
			req.Header.Set(name, value.Reveal())
		}
		if v.req.Username != "" {
			req.SetBasicAuth(v.req.Username.Reveal(), v.req.Password.Reveal())
		}
	}
	if last.ETag != "" {
		req.Header.Set("If-None-Match", last.ETag)
	}
	if last.LastModified != "" {
		req.Header.Set("If-Modified-Since", last.LastModified)
	}
	return v.client.Do(req)
}

// answer reads an answer whole, or says why it is none.
func (v *visit) answer(res *http.Response, last Mark) (body []byte, mark Mark, unchanged bool, err error) {
	switch {
	case res.StatusCode == http.StatusNotModified && last != (Mark{}):
		return nil, last, true, nil
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden, res.StatusCode == http.StatusProxyAuthRequired:
		return nil, mark, false, faultf("the server answers %d: are the credentials right?", res.StatusCode)
	case res.StatusCode != http.StatusOK:
		return nil, mark, false, &Error{"the server answers " + strconv.Itoa(res.StatusCode), retryAfter(res)}
	}
	if body, err = v.read(res); err != nil {
		return nil, mark, false, err
	}
	return body, Mark{ETag: short(res.Header.Get("ETag")), LastModified: short(res.Header.Get("Last-Modified"))}, false, nil
}

// short leaves out what is too long to be kept.
func short(s string) string {
	if len(s) > 200 {
		return ""
	}
	return s
}

func retryAfter(res *http.Response) time.Duration {
	text := res.Header.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return time.Duration(min(n, 86400)) * time.Second
	}
	at, err := http.ParseTime(text)
	date, err2 := http.ParseTime(res.Header.Get("Date")) // the server's clock, not ours
	if err != nil || err2 != nil {
		return 0
	}
	return max(0, at.Sub(date))
}

// read reads and unpacks a body within what is left of the bound.
func (v *visit) read(res *http.Response) ([]byte, error) {
	raw, err := v.take(res.Body)
	if err != nil {
		return nil, err
	}
	switch encoding := strings.ToLower(res.Header.Get("Content-Encoding")); {
	case encoding != "" && encoding != "identity" && encoding != "gzip" && encoding != "x-gzip":
		return nil, faultf("the answer is packed in a way that nobody asked for")
	case strings.HasSuffix(encoding, "gzip") || bytes.HasPrefix(raw, []byte("\x1f\x8b")): // a .gz file is one too
		v.left += int64(len(raw))
		unpack, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, faultf("the answer says gzip and is not")
		}
		return v.take(unpack)
	}
	return raw, nil
}

func (v *visit) take(in io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(in, v.left+1))
	switch {
	case int64(len(body)) > v.left:
		return nil, faultf("the answer is larger than max_bytes, %d", v.source.MaxBytes)
	case errors.Is(err, io.ErrUnexpectedEOF), err != nil && unpacking(in):
		return nil, faultf("the answer was cut off or is damaged")
	case err != nil:
		return nil, sentence(err)
	}
	v.left -= int64(len(body))
	return body, nil
}

func unpacking(in io.Reader) bool { _, ok := in.(*gzip.Reader); return ok }

// sentence makes a fault of an error: of its kind, since its text can hold the
// URL or what a server said.
func sentence(err error) error {
	var fault *Error
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.Is(err, errSpecial):
		return faultf("the host leads to a special-purpose address, such as a private one: set allow_special if it is your own, and never for a redirect to another host")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return faultf("no whole answer within the timeout")
	case errors.As(err, &dns):
		return faultf("the name of the host cannot be resolved")
	case errors.Is(err, syscall.ECONNREFUSED):
		return faultf("the host refuses the connection")
	case errors.As(err, &cert):
		return faultf("the certificate of the server is not valid for it")
	case errors.As(err, &record):
		return faultf("the server does not speak TLS on this port")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return faultf("the connection broke off")
	}
	return faultf("the request failed: the server does not speak HTTP, or cannot be reached")
}
