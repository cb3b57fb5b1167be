package proxy

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// field is what a column or a key means.
type field uint8

const (
	fieldNone    field = iota // not known
	fieldAside                // known, and of no use here
	fieldHost                 // host, or host:port, or a URL
	fieldProxy                // a whole proxy
	fieldPort                 // .
	fieldScheme               // one or several
	fieldType                 // a scheme, where no field of a better name says one
	fieldUser                 // .
	fieldPass                 // .
	fieldCode                 // country code: the best region
	fieldCountry              // .
	fieldRegion               // .
	fieldGroup                // .
	fieldLabels               // .
	fieldCap                  // .
	fieldExpires              // .
	fieldExit                 // .
	numFields
)

// fieldOf gives the meaning of a name; case, spaces and the signs _ and - do
// not matter.
func fieldOf(name string) field {
	switch plainName(name) {
	case "host", "hostname", "ip", "ipaddress", "address", "addr", "server", "proxyaddress", "proxyhost", "proxyip":
		return fieldHost
	case "proxy", "url", "uri", "proxyurl":
		return fieldProxy
	case "port", "proxyport":
		return fieldPort
	case "scheme", "protocol", "protocols", "proto":
		return fieldScheme
	case "type", "types", "proxytype":
		return fieldType
	case "username", "user", "login", "proxyusername", "proxyuser", "proxylogin":
		return fieldUser
	case "password", "pass", "passwd", "pwd", "proxypassword", "proxypass":
		return fieldPass
	case "countrycode", "cc", "isocode":
		return fieldCode
	case "country":
		return fieldCountry
	case "region":
		return fieldRegion
	case "group":
		return fieldGroup
	case "labels":
		return fieldLabels
	case "cap":
		return fieldCap
	case "expiresat", "expires":
		return fieldExpires
	case "exit":
		return fieldExit
	case "failcount", "source", "state":
		return fieldAside
	}
	return fieldNone
}

func plainName(name string) string {
	plain := func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == '_' || r == '-' || r == ' ':
			return -1
		}
		return r
	}
	return strings.Map(plain, name)
}

// record gathers what the fields of one proxy say; "" = nothing.
type record struct {
	said   [numFields]string
	labels map[string]string
}

// set takes one field. Two fields that mean the same must say the same.
func (r *record) set(f field, value string) error {
	if value == "" || f == fieldNone || f == fieldAside {
		return nil
	}
	if f == fieldPass || f == fieldUser {
		// taken as it is
	} else if value = strings.TrimSpace(value); value == "" {
		return nil
	}
	if r.said[f] != "" && r.said[f] != value {
		return fmt.Errorf("ambiguous: two fields give different values for the %s", f)
	}
	r.said[f] = value
	return nil
}

// String names the field for people.
func (f field) String() string {
	names := [numFields]string{
		fieldHost: "host", fieldProxy: "proxy", fieldPort: "port", fieldScheme: "scheme", fieldType: "type", fieldUser: "username",
		fieldPass: "password", fieldCode: "country code", fieldCountry: "country", fieldRegion: "region", fieldGroup: "group",
		fieldLabels: "labels", fieldCap: "cap", fieldExpires: "expiry", fieldExit: "exit",
	}
	return names[f]
}

// entry gives the proxy that the fields say; more are the schemes under which it
// is listed too.
func (r *record) entry(scheme Scheme) (e Entry, more []Scheme, err error) {
	schemes, err := r.schemes()
	if err != nil {
		return e, nil, err
	}
	if len(schemes) > 0 {
		scheme, more = schemes[0], schemes[1:]
	}
	if e.Proxy, err = r.proxy(scheme, len(schemes) > 0); err != nil {
		return e, nil, err
	}
	e.Region = r.region()
	e.Group, e.Labels = r.said[fieldGroup], r.labels
	if text := r.said[fieldLabels]; text != "" {
		if e.Labels, err = parseLabels(text); err != nil {
			return e, nil, err
		}
	}
	if e.ExpiresAt, err = parseExpiry(r.said[fieldExpires]); err != nil {
		return e, nil, err
	}
	if text := r.said[fieldCap]; text != "" {
		if e.Cap, err = strconv.Atoi(text); err != nil || e.Cap < 0 || e.Cap > 10_000 {
			return e, nil, errors.New("the cap is not a number from 0 to 10000")
		}
	}
	switch e.Exit = r.said[fieldExit]; e.Exit {
	case "", "static", "rotating", "template":
	default:
		return e, nil, errors.New("the exit is not static, rotating or template")
	}
	return e, more, e.checkTexts()
}

// proxy puts the parts together. An address that holds more than the host is
// read like a line.
func (r *record) proxy(scheme Scheme, named bool) (Proxy, error) {
	address, port := r.said[fieldHost], r.said[fieldPort]
	whole := r.said[fieldProxy]
	if whole == "" && (port == "" || strings.Contains(address, "://")) {
		whole, address = address, ""
	}
	p := Proxy{Scheme: scheme, Host: unbracket(address)}
	var err error
	switch {
	case whole != "":
		if p, err = parse(whole, scheme, formAny); err != nil {
			return p, err
		}
		if err := r.agrees(p, address, scheme, named); err != nil {
			return p, err
		}
	case address == "":
		return p, errNoHost
	default:
		if p.Port, err = parsePort(port); err != nil {
			return p, err
		}
	}
	if user := r.said[fieldUser]; user != "" {
		p.Username = user
	}
	if pass := r.said[fieldPass]; pass != "" {
		p.Password = Secret(pass)
	}
	return p, p.Validate()
}

var errNoHost = errors.New("no host: known names are host, ip, address, server, proxy and url")

// agrees compares a whole proxy with the parts that stand beside it.
func (r *record) agrees(p Proxy, address string, scheme Scheme, named bool) error {
	c := p.Canonical()
	differs := ""
	switch {
	case address != "" && (Proxy{Host: address}).Canonical().Host != c.Host && address != c.Address():
		differs = "host"
	case r.said[fieldPort] != "" && r.said[fieldPort] != strconv.Itoa(int(p.Port)):
		differs = "port"
	case named && scheme != p.Scheme:
		differs = "scheme"
	case r.said[fieldUser] != "" && p.Username != "" && r.said[fieldUser] != p.Username:
		differs = "username"
	case r.said[fieldPass] != "" && p.Password != "" && r.said[fieldPass] != p.Password.Reveal():
		differs = "password"
	default:
		return nil
	}
	return fmt.Errorf("ambiguous: two fields give different values for the %s", differs)
}

// schemes reads the schemes that a record names. https beside http means that
// the proxy takes CONNECT, as lists use the word, and not TLS to the proxy.
func (r *record) schemes() ([]Scheme, error) {
	text := r.said[fieldScheme]
	if text == "" {
		text = r.said[fieldType]
	}
	if text == "" {
		return nil, nil
	}
	if s, err := ParseScheme(text); err == nil {
		return []Scheme{s}, nil
	}
	var list []Scheme
	seen := map[Scheme]bool{}
	for _, word := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(", /+|;", c) }) {
		s, err := ParseScheme(word)
		if err != nil {
			return nil, err
		}
		if !seen[s] {
			list = append(list, s)
		}
		seen[s] = true
	}
	if seen[SchemeHTTP] && seen[SchemeHTTPS] {
		kept := list[:0]
		for _, s := range list {
			if s != SchemeHTTPS {
				kept = append(kept, s)
			}
		}
		list = kept
	}
	return list, nil
}

// region is the best word for where the proxy is.
func (r *record) region() string {
	for _, f := range []field{fieldCode, fieldCountry, fieldRegion} {
		if text := r.said[f]; text != "" && text != "?" && text != "-" {
			return text
		}
	}
	return ""
}

// maxSeconds bounds expiry times: the year 9999.
const maxSeconds = 253_402_300_799

func parseExpiry(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil && at.Unix() > 0 && at.Unix() <= maxSeconds {
		return at.UTC(), nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= maxSeconds) {
		return time.Time{}, errors.New("the expiry is neither seconds since 1970 nor RFC 3339, such as 2026-01-31T12:00:00Z")
	}
	if n < 1 {
		return time.Time{}, nil // 0, however it is written, is how lists say never
	}
	return time.Unix(int64(n), 0).UTC(), nil
}

// parseLabels reads k=v,k=v.
func parseLabels(text string) (map[string]string, error) {
	labels := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, errors.New("the labels are not key=value, several with commas between")
		}
		labels[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	return labels, nil
}

// checkTexts bounds what the entry carries beside the proxy.
func (e *Entry) checkTexts() error {
	if err := checkText("region", e.Region, 200); err != nil {
		return err
	}
	if err := checkText("group", e.Group, 200); err != nil {
		return err
	}
	if len(e.Labels) > 20 {
		return errors.New("there are more than 20 labels")
	}
	for key, value := range maps.All(e.Labels) {
		if err := errors.Join(checkText("label", key, 100), checkText("label", value, 100)); err != nil {
			return errors.New("a label is longer than 100 bytes or holds control characters")
		}
		if key == "" || strings.ContainsAny(key+value, "=,") {
			return errors.New("a label has no name, or holds = or a comma")
		}
	}
	return nil
}

func checkText(name, text string, most int) error {
	if len(text) > most {
		return fmt.Errorf("the %s is longer than %d bytes", name, most)
	}
	if strings.ContainsFunc(text, control) {
		return fmt.Errorf("the %s holds control characters or is not UTF-8", name)
	}
	return nil
}

// control says whether a character must not reach a terminal.
func control(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 || r == utf8.RuneError }
