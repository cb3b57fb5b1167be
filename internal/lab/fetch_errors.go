package lab

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// errorWord gives the API's word for an error.
func (f *fetch) errorWord(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(ctx.Err(), context.Canceled):
		return "cancelled"
	case errors.Is(err, os.ErrDeadlineExceeded), ctx.Err() != nil, isTimeout(err):
		return "timeout"
	case errors.Is(err, errLocal):
		return "protocol"
	case errors.Is(err, errTooLarge):
		return "too_large"
	case f.o.Phase == "body" && errors.Is(err, io.ErrUnexpectedEOF):
		return "truncated"
	}
	if word := tlsWord(err); word != "" {
		return word
	}
	if word := socketWord(err); word != "" {
		return word
	}
	if strings.Contains(err.Error(), "malformed") {
		return "protocol" // net/http has no type for it
	}
	return "other"
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

func tlsWord(err error) string {
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &cert):
		return "cert"
	case errors.As(err, &record), errors.As(err, &alert), strings.HasPrefix(err.Error(), "tls: "):
		return "tls"
	default:
		return ""
	}
}

func socketWord(err error) string {
	var dns *net.DNSError
	switch {
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
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.ENOBUFS):
		return "resource"
	default:
		return ""
	}
}
