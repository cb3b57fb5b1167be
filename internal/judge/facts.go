package judge

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/internal/pool"
)

// Phase is how far a request came: which hop spoke last.
type Phase string

// The phases, in order.
const (
	PhaseLocal     Phase = "local"      // before anything left the worker
	PhaseProxyDial Phase = "proxy_dial" // TCP to the proxy
	PhaseProxyTLS  Phase = "proxy_tls"  // TLS to an https proxy
	PhaseHandshake Phase = "handshake"  // CONNECT or SOCKS: the proxy speaks
	PhaseTargetTLS Phase = "target_tls" // TLS to the target, inside the tunnel
	PhaseSent      Phase = "sent"       // the request is out
	PhaseHeaders   Phase = "headers"    // the answer's head
	PhaseBody      Phase = "body"       // the answer's body
	PhaseValidate  Phase = "validate"   // the caller looked at the data
)

// ErrorKind is what went wrong, from a closed list; "" = nothing.
type ErrorKind string

// The errors.
const (
	ErrorNone        ErrorKind = ""
	ErrorRefused     ErrorKind = "refused"
	ErrorTimeout     ErrorKind = "timeout"
	ErrorReset       ErrorKind = "reset"
	ErrorEOF         ErrorKind = "eof"
	ErrorDNS         ErrorKind = "dns"
	ErrorUnreachable ErrorKind = "unreachable"
	ErrorTLS         ErrorKind = "tls"
	ErrorCert        ErrorKind = "cert"
	ErrorAuth        ErrorKind = "auth"
	ErrorProtocol    ErrorKind = "protocol"
	ErrorTruncated   ErrorKind = "truncated"
	ErrorTooLarge    ErrorKind = "too_large"
	ErrorCancelled   ErrorKind = "cancelled"
	ErrorResource    ErrorKind = "resource"
	ErrorOther       ErrorKind = "other"
)

// Phases lists all phases in order.
func Phases() []Phase {
	return []Phase{
		PhaseLocal, PhaseProxyDial, PhaseProxyTLS, PhaseHandshake, PhaseTargetTLS, PhaseSent, PhaseHeaders, PhaseBody, PhaseValidate,
	}
}

// ErrorKinds lists all errors, none first.
func ErrorKinds() []ErrorKind {
	return []ErrorKind{
		ErrorNone, ErrorRefused, ErrorTimeout, ErrorReset, ErrorEOF, ErrorDNS, ErrorUnreachable, ErrorTLS, ErrorCert, ErrorAuth,
		ErrorProtocol, ErrorTruncated, ErrorTooLarge, ErrorCancelled, ErrorResource, ErrorOther,
	}
}

// Facts are what a worker saw of one request.
type Facts struct {
	Phase        Phase
	Status       int // the target's, or the proxy's when Phase is handshake; 0 = none
	Error        ErrorKind
	Class        pool.Class // the caller's own word, see [Facts.Validate]
	ElapsedMS    int64
	ConnectMS    int64
	FirstByteMS  int64
	Bytes        int64
	BodyBytes    int64
	BodyHash     string
	RedirectHost string
	Matched      []string // names of body rules that matched
	RetryAfter   string   // the header's value
	ProxyStatus  string   // the header's value (RFC 9209)
	VendorError  string   // the value of the provider's own error header
	HTTPS        bool
	Valid        *bool
	Items        int64
	Method       string
	Request      pool.Request
	Final        bool
}

// FieldError is a fact that cannot be.
type FieldError struct{ Field, Text string }

// Error gives the field and the fault.
func (e *FieldError) Error() string { return e.Field + ": " + e.Text }

// overrides are the classes that a caller may name itself: what only the caller
// can know, never what would blame a proxy without a phase.
func overrides() []pool.Class {
	return []pool.Class{
		pool.ClassNone, pool.ClassOK, pool.ClassTargetAnswer, pool.ClassTamper, pool.ClassRateLimited, pool.ClassBlockedHard,
		pool.ClassGeoBlocked, pool.ClassBlockedSoft, pool.ClassSuspectSoft, pool.ClassClientFault, pool.ClassWorkerFault,
		pool.ClassTunnelDone,
	}
}

// maxMatched is more than the rules that a target can have, the default ones included.
const maxMatched = 200

const hourMS = 3_600_000

// Validate checks the facts; its error is a *FieldError.
func (f *Facts) Validate() error {
	switch {
	case f.Phase != "" && !slices.Contains(Phases(), f.Phase):
		return &FieldError{"phase", fmt.Sprintf("%.40q is not a phase", string(f.Phase))}
	case !slices.Contains(ErrorKinds(), f.Error):
		return &FieldError{"error", fmt.Sprintf("%.40q is not in the list of errors", string(f.Error))}
	case f.Status != 0 && (f.Status < 100 || f.Status > 999):
		return &FieldError{"status", "must be 100 to 999"}
	case !slices.Contains(overrides(), f.Class):
		return &FieldError{"class", f.Class.String() + " cannot be named by a caller: send phase and error"}
	case len(f.Matched) > maxMatched:
		return &FieldError{"matched", fmt.Sprintf("has more than %d entries", maxMatched)}
	case f.Request.Attempt < 0 || f.Request.Attempt > 1_000_000:
		return &FieldError{"request.attempt", "must be 0 to 1000000"}
	}
	if err := f.validateNumbers(); err != nil {
		return err
	}
	return f.validateTexts()
}

func (f *Facts) validateNumbers() error {
	for _, n := range []struct {
		field string
		value int64
		most  int64
	}{
		{"elapsed_ms", f.ElapsedMS, 24 * hourMS},
		{"connect_ms", f.ConnectMS, hourMS},
		{"first_byte_ms", f.FirstByteMS, hourMS},
		{"bytes", f.Bytes, 1 << 50},
		{"body_bytes", f.BodyBytes, 1 << 50},
		{"items", f.Items, 1 << 40},
	} {
		if n.value < 0 || n.value > n.most {
			return &FieldError{n.field, fmt.Sprintf("must be 0 to %d", n.most)}
		}
	}
	return nil
}

func (f *Facts) validateTexts() error {
	texts := []struct {
		field string
		value string
		most  int
	}{
		{"body_hash", f.BodyHash, 200},
		{"redirect_host", f.RedirectHost, 300},
		{"retry_after", f.RetryAfter, 200},
		{"proxy_status", f.ProxyStatus, 2000},
		{"vendor_error", f.VendorError, 2000},
		{"method", f.Method, 40},
		{"request.fingerprint", f.Request.Fingerprint, 200},
		{"request.url", f.Request.URL, 8192},
	}
	for _, m := range f.Matched {
		texts = append(texts, struct {
			field string
			value string
			most  int
		}{"matched", m, 200})
	}
	for _, t := range texts {
		if len(t.value) > t.most {
			return &FieldError{t.field, fmt.Sprintf("is longer than %d bytes", t.most)}
		}
	}
	return nil
}

// Observe classifies the facts into what the store settles.
func Observe(f Facts, b Budgets, now pool.Time) pool.Outcome {
	o := pool.Outcome{
		Class: Classify(&f, b), Status: f.Status, Phase: string(f.Phase), Error: string(f.Error), Timeout: f.Error == ErrorTimeout,
		Elapsed: ms(f.ElapsedMS), Connect: ms(f.ConnectMS), FirstByte: ms(f.FirstByteMS), Bytes: max(f.Bytes, f.BodyBytes),
		Items: f.Items, Request: f.Request, Final: f.Final,
	}
	if f.Method != "" {
		o.Request.Method = f.Method
	}
	if f.Valid != nil {
		o.Valid = pool.Invalid
		if *f.Valid {
			o.Valid = pool.Valid
		}
	}
	if o.Class == pool.ClassRateLimited || o.Class == pool.ClassProxyQuota {
		o.RetryAfter, _ = RetryAfter(f.RetryAfter, now)
	}
	return o
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// RetryAfter reads a Retry-After value (RFC 9110, 10.2.3): seconds, or a date.
// It is held within 1 s and 1 h; ok is false for anything else.
func RetryAfter(value string, now pool.Time) (d time.Duration, ok bool) {
	value = strings.TrimSpace(value)
	if n, err := strconv.ParseUint(value, 10, 62); err == nil {
		return min(max(time.Duration(min(n, 3600))*time.Second, time.Second), time.Hour), true
	}
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} { // RFC 9110, 5.6.7
		if date, err := time.Parse(layout, value); err == nil {
			return min(max(pool.At(date).Sub(now), time.Second), time.Hour), true
		}
	}
	return 0, false
}
