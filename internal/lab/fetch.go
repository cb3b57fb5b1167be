package lab

import (
	"bufio"
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"time"
)

// FetchRequest is one GET through one HTTP proxy.
type FetchRequest struct {
	Proxy   *url.URL
	URL     string
	Header  http.Header // to the target; [AttemptHeader] also goes with CONNECT
	RootCAs *x509.CertPool

	// Budgets since the start of the fetch; 0 = none.
	Connect time.Duration // for reaching and greeting the proxy
	First   time.Duration // until the head of the answer
	Total   time.Duration // for all
}

// Outcome is what was seen, in the API's words.
type Outcome struct {
	Phase, Error string
	Status       int // the target's, or the proxy's when Phase is handshake
	Elapsed      time.Duration
	ConnectTime  time.Duration // until the way to the target stood
	FirstByte    time.Duration
	Bytes        int64
	RetryAfter   string
	ProxyStatus  string
	HTTPS        bool
}

// OK says whether the page came whole.
func (o *Outcome) OK() bool { return o.Error == "" && o.Phase == "body" && o.Status == http.StatusOK }

// maxBody is how much of a body is read.
const maxBody = 1 << 20

// maxRaw bounds what a connection may bring, heads, framing and TLS included.
const maxRaw = 4 * maxBody

// Fetch sends the request by hand, on a connection of its own, so that every phase
// is known. No text of an error leaves it, only words of the API's list: what is
// said of a failure cannot hold a password.
//
// Over plain HTTP nobody can tell a proxy's 403 or 502 from the target's: those end
// in the phase headers with their status. A 407 is always the proxy's.
func Fetch(ctx context.Context, r FetchRequest) Outcome {
	f := &fetch{r: r, begin: wallClock()}
	f.o.Error = f.errorWord(ctx, f.run(ctx))
	if f.o.Error == "" && f.o.Status == http.StatusProxyAuthRequired && f.o.Phase == "handshake" {
		f.o.Error = "auth"
	}
	if f.conn != nil {
		_ = f.conn.Close()
	}
	f.o.Elapsed = f.since()
	return f.o
}

// fetch is a request under way.
type fetch struct {
	r     FetchRequest
	u     *url.URL
	o     Outcome
	begin time.Time
	conn  net.Conn
	in    *bufio.Reader
}

func (f *fetch) since() time.Duration { return wallClock().Sub(f.begin) }

// run goes through the phases, as far as it comes.
func (f *fetch) run(ctx context.Context) error {
	f.o.Phase = "local"
	if err := f.prepare(); err != nil {
		return err
	}
	f.o.Phase = "proxy_dial"
	if err := f.dial(ctx); err != nil {
		return err
	}
	raw := f.conn
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	if f.o.HTTPS {
		if stands, err := f.connect(); err != nil || !stands {
			return err
		}
		if err := f.secure(ctx); err != nil {
			return err
		}
	}
	f.o.ConnectTime = f.since()
	return f.exchange()
}
