package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hostler-proxy/hostler/internal/judge"
	"github.com/hostler-proxy/hostler/internal/keeper"
	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/store"
)

// problem is an RFC 9457 problem; as an error it goes to the caller as it is.
type problem struct {
	Type         string         `json:"type"`
	Title        string         `json:"title"`
	Status       int            `json:"status"`
	Detail       string         `json:"detail,omitempty"`
	Field        string         `json:"field,omitempty"`
	Reasons      map[string]int `json:"reasons,omitempty"`
	Exact        *bool          `json:"exact,omitempty"`
	RetryAfterMS int64          `json:"retry_after_ms,omitempty"`
	Advice       *adviceBody    `json:"advice,omitempty"`
}

// Error gives the detail.
func (p *problem) Error() string { return p.Detail }

var titles = map[string]string{
	"no-proxy":               "No proxy is free",
	"store-unavailable":      "The store is not available",
	"request-ended":          "The leases of this request have ended",
	"request-conflict":       "The request id was used with another body",
	"invalid-request":        "The request is not valid",
	"unknown-lease":          "The lease is not known",
	"unknown-proxy":          "The proxy is not known",
	"unknown-pool":           "The pool is not known",
	"unknown-target":         "The target is not known",
	"unknown-session":        "The session is not known",
	"unknown-token":          "The token is not known",
	"unknown-group":          "The group is not known",
	"unknown-source":         "The source is not known",
	"unauthorized":           "Who asks is not known",
	"forbidden":              "The role is not enough",
	"misdirected-host":       "The host name is not ours",
	"cross-origin":           "The request comes from another site",
	"too-large":              "The body is too large",
	"unsupported-media-type": "The content type is not supported",
	"method-not-allowed":     "The method is not possible here",
	"not-found":              "There is no such path",
	"conflict":               "The record was changed meanwhile",
	"timeout":                "The request took too long",
	"internal":               "Internal error",
}

func problemOf(status int, slug, detail string) *problem {
	return &problem{Type: "/problems/" + slug, Title: titles[slug], Status: status, Detail: detail}
}

func invalid(field, text string) *problem {
	p := problemOf(http.StatusBadRequest, "invalid-request", field+": "+text)
	p.Field = field
	return p
}

// toProblem is the one table from errors to problems. Anything that is not in
// it is our fault, and its text stays in the log.
func toProblem(err error) *problem {
	var p *problem
	var input *keeper.InputError
	var field *judge.FieldError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &input):
		return invalid(input.Field, input.Text)
	case errors.As(err, &field):
		return invalid(field.Field, field.Text)
	case errors.As(err, &tooLarge):
		return problemOf(http.StatusRequestEntityTooLarge, "too-large", "the body may have "+strconv.FormatInt(tooLarge.Limit, 10)+" bytes")
	case errors.Is(err, pool.ErrCallEnded):
		return problemOf(http.StatusConflict, "request-ended", "the lease of this request_id has ended; a new attempt needs a new request_id")
	case errors.Is(err, pool.ErrCallConflict):
		return problemOf(http.StatusUnprocessableEntity, "request-conflict", "this request_id was used with another body")
	case errors.Is(err, keeper.ErrUnknownLease):
		return problemOf(http.StatusNotFound, "unknown-lease", "this is not a lease id of this daemon's store")
	case errors.Is(err, store.ErrNoProxy):
		return problemOf(http.StatusNotFound, "unknown-proxy", "the pool has no proxy of this id")
	case errors.Is(err, store.ErrNoGroup):
		return problemOf(http.StatusNotFound, "unknown-group", "the pool has no group of this name; GET /v1/groups lists them")
	case errors.Is(err, store.ErrNoSession):
		return problemOf(http.StatusNotFound, "unknown-session", "there is no session of this name")
	case errors.Is(err, store.ErrNoPool):
		return problemOf(http.StatusNotFound, "unknown-pool", "there is no pool of this name; PUT /v1/pools/NAME or an import makes one")
	case errors.Is(err, store.ErrNoSource):
		return problemOf(http.StatusNotFound, "unknown-source", "there is no source of this name; GET /v1/sources lists them")
	case errors.Is(err, keeper.ErrNoHeldSet):
		return problemOf(http.StatusConflict, "conflict", "this source holds no set back: there is nothing to accept")
	case errors.Is(err, store.ErrConflict):
		return problemOf(http.StatusConflict, "conflict", "somebody else changed it meanwhile; look at it again")
	case errors.Is(err, store.ErrPoolInUse):
		return problemOf(http.StatusConflict, "conflict", "the pool still has proxies; remove them first")
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, keeper.ErrStopping):
		p := problemOf(http.StatusServiceUnavailable, "store-unavailable", err.Error())
		p.RetryAfterMS = 1000
		return p
	case errors.Is(err, context.DeadlineExceeded):
		return problemOf(http.StatusServiceUnavailable, "timeout", "the request took too long")
	default:
		return problemOf(http.StatusInternalServerError, "internal", "see the daemon's log")
	}
}

// fail answers with a problem. A caller that went away gets nothing.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return
	}
	p := toProblem(err)
	if p.Status == http.StatusInternalServerError {
		s.log.ErrorContext(r.Context(), "a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="hostler"`)
	}
	if p.RetryAfterMS > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt((p.RetryAfterMS+999)/1000, 10))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the caller went away: nobody to tell
}

func writeJSON(w http.ResponseWriter, status int, body any) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(body); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the caller went away: nobody to tell
	return nil
}

// Limits of JSON bodies.
const (
	maxBody  = 256 << 10
	maxBatch = 8 << 20
)

// decode reads a JSON body strictly: unknown fields and wrong types are refused
// by name. An empty body is an empty object.
func decode(w http.ResponseWriter, r *http.Request, limit int64, into any) error {
	if kind := r.Header.Get("Content-Type"); kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return problemOf(http.StatusUnsupportedMediaType, "unsupported-media-type", "send Content-Type: application/json")
		}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return decodeError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid("body", "there is more behind the JSON object")
	}
	return nil
}

func decodeError(err error) error {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	var when *time.ParseError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return err
	case errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &wrong):
		return invalid(wrong.Field, "is a "+wrong.Value+" and must be a "+kindName(wrong.Type.Kind().String()))
	case errors.As(err, &syntax):
		return invalid("body", "is not valid JSON (at byte "+strconv.FormatInt(syntax.Offset, 10)+")")
	case errors.As(err, &when):
		return invalid("body", "a time must be RFC 3339, such as 2026-01-31T12:00:00Z")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return invalid("body", "ends too early")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return invalid(strings.Trim(name, `"`), "is not a field of this call")
	}
	return invalid("body", "cannot be read: "+err.Error())
}

func kindName(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "whole number"
	case strings.HasPrefix(kind, "float"):
		return "number"
	case kind == "slice":
		return "list"
	case kind == "struct", kind == "map":
		return "object"
	default:
		return kind
	}
}
