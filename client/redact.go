package client

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"unicode"
)

// cleaned prints without secrets and still is the error that it was made of.
type cleaned struct {
	text string
	err  error
}

// Error gives the text without secrets.
func (e *cleaned) Error() string { return e.text }

// Unwrap gives the cause.
func (e *cleaned) Unwrap() error { return e.err }

// maxText bounds what a server says in an error.
const maxText = 4096

// clean takes the token, and credentials and queries of URLs, out of a text
// that will be shown, and control characters that a terminal would obey.
func (c *Client) clean(text string) string {
	if c.token != "" {
		text = strings.ReplaceAll(text, c.token, "***")
	}
	text = anyURL.ReplaceAllStringFunc(text, cleanURL)
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + " ..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

var anyURL = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`)

// cleanURL drops everything up to the last @, since a password may hold any of
// the signs that end it, and everything behind a question mark.
func cleanURL(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = "***@" + rest[i+1:]
	}
	if i := strings.IndexByte(rest, '?'); i >= 0 {
		rest = rest[:i] + "?***"
	}
	return scheme + "://" + rest
}

// String names the proxy without its credentials.
func (p LeasedProxy) String() string { return p.Scheme + " proxy " + p.ID }

// Format names the proxy without its credentials, whatever the verb.
func (p LeasedProxy) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(p.String())) }

// LogValue names the proxy without its credentials.
func (p LeasedProxy) LogValue() slog.Value { return slog.StringValue(p.String()) }

// Short is the part of the id that may be shown: its first eight characters.
func (l Lease) Short() string { return l.ID[:min(8, len(l.ID))] }

// String names the lease without its id and credentials: who knows the id can
// report and end it.
func (l Lease) String() string {
	return fmt.Sprintf("lease %s of %s for %s", l.Short(), l.Proxy, l.Target)
}

// Format names the lease without its id and credentials, whatever the verb.
func (l Lease) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(l.String())) }

// LogValue names the lease without its id and credentials.
func (l Lease) LogValue() slog.Value {
	return slog.GroupValue(slog.String("lease", l.Short()), slog.String("proxy", l.Proxy.ID), slog.String("target", l.Target))
}

// LogValue names the leases without their ids and credentials.
func (a Acquired) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(a.Leases)) }

// String names the token without its text.
func (t Token) String() string { return t.Role + " token " + t.Name }

// Format names the token without its text, whatever the verb.
func (t Token) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(t.String())) }

// LogValue names the token without its text.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }
