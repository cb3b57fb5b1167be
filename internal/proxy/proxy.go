// Package proxy says what a proxy is: its parts, its identity, the list formats
// it is written in, and how it is shown without its password. It is pure.
package proxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Scheme is the protocol spoken to the proxy itself.
type Scheme string

// The schemes.
const (
	SchemeHTTP    Scheme = "http"
	SchemeHTTPS   Scheme = "https" // TLS to the proxy
	SchemeSOCKS4  Scheme = "socks4"
	SchemeSOCKS4A Scheme = "socks4a"
	SchemeSOCKS5  Scheme = "socks5" // names are resolved by the proxy
)

// Secret is a text that must not be shown: it prints as "***".
type Secret string

// Reveal gives the text itself.
func (s Secret) Reveal() string { return string(s) }

// String hides the text.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "***"
}

// GoString hides the text from %#v.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// MarshalText hides the text from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the text from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Proxy is how to reach one proxy.
type Proxy struct {
	Scheme   Scheme
	Host     string // a name, or an address without brackets
	Port     uint16
	Username string
	Password Secret
}

// Address is host:port, an IPv6 host in brackets.
func (p Proxy) Address() string { return net.JoinHostPort(p.Host, strconv.Itoa(int(p.Port))) }

// URL is the proxy's URL with its credentials.
func (p Proxy) URL() *url.URL {
	u := &url.URL{Scheme: string(p.Scheme), Host: p.Address()}
	if p.Username != "" || p.Password != "" {
		u.User = url.UserPassword(p.Username, p.Password.Reveal())
	}
	return u
}

// ID is the identity of a proxy: scheme, host, port, username and a keyed hash
// of the password.
type ID [16]byte

// String gives 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsZero says whether the id names nothing.
func (id ID) IsZero() bool { return id == ID{} }

// ParseID reads 32 hexadecimal digits.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 2*len(id) {
		return id, fmt.Errorf("a proxy id has %d hexadecimal digits", 2*len(id))
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("a proxy id has %d hexadecimal digits", 2*len(id))
	}
	return id, nil
}

// ID gives the identity under a key of the store.
func (p Proxy) ID(key []byte) ID {
	mac := hmac.New(sha256.New, key)
	var room [256]byte
	text := room[:0]
	for _, part := range []string{string(p.Scheme), p.Host, strconv.Itoa(int(p.Port)), p.Username, p.Password.Reveal()} {
		text = strconv.AppendInt(text, int64(len(part)), 10)
		text = append(append(text, ':'), part...)
	}
	_, _ = mac.Write(text) // a hash takes everything
	var id ID
	copy(id[:], mac.Sum(room[:0]))
	return id
}

// IsTemplate says whether username or password holds a placeholder.
func (p Proxy) IsTemplate() bool {
	for _, s := range []string{p.Username, p.Password.Reveal()} {
		if strings.Contains(s, "{session}") || strings.Contains(s, "{country}") {
			return true
		}
	}
	return false
}

// Fill replaces the placeholders.
func (p Proxy) Fill(session, country string) Proxy {
	r := strings.NewReplacer("{session}", session, "{country}", country)
	p.Username, p.Password = r.Replace(p.Username), Secret(r.Replace(p.Password.Reveal()))
	return p
}
