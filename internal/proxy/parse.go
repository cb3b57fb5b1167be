package proxy

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Parse reads one proxy in any of the forms that lists use:
//
//	host:port
//	host:port:user:pass      (the password is all the rest)
//	user:pass:host:port
//	user:pass@host:port      (split at the last @)
//	scheme://[user:pass@]host:port
//	scheme://host:port:user:pass
//
// An IPv6 host stands in brackets. Percent escapes are decoded once, and only in
// the form with a scheme and an @. A line that can be read in two ways is
// refused. The error says what is wrong and never quotes credentials.
func Parse(line string, defaultScheme Scheme) (Proxy, error) {
	p := Proxy{Scheme: defaultScheme}
	rest := strings.TrimSpace(line)
	isURL := false
	if before, after, ok := strings.Cut(rest, "://"); ok && !strings.ContainsAny(before, ":@/") {
		scheme, err := ParseScheme(before)
		if err != nil {
			return Proxy{}, err
		}
		p.Scheme, rest, isURL = scheme, strings.TrimSuffix(after, "/"), true
	}
	var err error
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		err = p.parseUserinfo(rest[:at], rest[at+1:], isURL)
	} else {
		err = p.parseColons(rest)
	}
	if err != nil {
		return Proxy{}, err
	}
	if err := p.Validate(); err != nil {
		return Proxy{}, err
	}
	return p, nil
}

// parseUserinfo reads user:pass before an @.
func (p *Proxy) parseUserinfo(userinfo, address string, isURL bool) error {
	host, port, rest, err := splitAddress(address)
	switch {
	case err != nil:
		return err
	case rest != "":
		return errors.New("there is more behind host and port")
	}
	user, pass, _ := strings.Cut(userinfo, ":")
	if isURL {
		user, pass = unescape(user), unescape(pass)
	}
	p.Host, p.Port, p.Username, p.Password = host, port, user, Secret(pass)
	return nil
}

// unescape decodes percent escapes once; a malformed one leaves the text as it is.
func unescape(s string) string {
	if decoded, err := url.PathUnescape(s); err == nil {
		return decoded
	}
	return s
}

// parseColons reads the forms that have only colons.
func (p *Proxy) parseColons(s string) error {
	if strings.Count(s, ":") > 3 && !strings.Contains(s, "[") && onlyAddress(s) {
		return errors.New("an IPv6 address must stand in brackets: [2001:db8::1]:8080")
	}
	front, errFront := p.frontForm(s)
	back, errBack := p.backForm(s)
	switch {
	case errFront == nil && errBack == nil && front != back:
		return errors.New("ambiguous: both ends read as host and port; name the format, or write user:pass@host:port")
	case errFront == nil:
		*p = front
		return nil
	case errBack == nil:
		*p = back
		return nil
	default:
		return errFront
	}
}

// onlyAddress says whether a text has only what IPv6 addresses have.
func onlyAddress(s string) bool { return strings.Trim(strings.ToLower(s), "0123456789abcdef:") == "" }

// frontForm reads host:port and host:port:user:pass.
func (p *Proxy) frontForm(s string) (Proxy, error) {
	host, port, rest, err := splitAddress(s)
	if err != nil {
		return *p, err
	}
	out := Proxy{Scheme: p.Scheme, Host: host, Port: port}
	if rest == "" {
		return out, checkHost(host)
	}
	user, pass, _ := strings.Cut(rest[1:], ":")
	if user == "" {
		return *p, errors.New("there is a colon behind the port and no user")
	}
	out.Username, out.Password = user, Secret(pass)
	return out, checkHost(host)
}

// backForm reads user:pass:host:port.
func (p *Proxy) backForm(s string) (Proxy, error) {
	last := strings.LastIndexByte(s, ':')
	if last < 0 {
		return *p, errors.New("no port")
	}
	port, err := parsePort(s[last+1:])
	if err != nil {
		return *p, err
	}
	front := s[:last]
	cut := strings.LastIndexByte(front, ':')
	if strings.HasSuffix(front, "]") {
		cut = strings.LastIndexByte(front, '[') - 1
	}
	if cut < 1 || front[cut] != ':' {
		return *p, errors.New("no user")
	}
	user, pass, ok := strings.Cut(front[:cut], ":")
	if !ok || user == "" {
		return *p, errors.New("no password")
	}
	host := strings.Trim(front[cut+1:], "[]")
	return Proxy{Scheme: p.Scheme, Host: host, Port: port, Username: user, Password: Secret(pass)}, checkHost(host)
}

// splitAddress takes host and port off the front of a text; rest begins with
// the colon behind the port.
func splitAddress(s string) (host string, port uint16, rest string, err error) {
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", 0, "", errors.New("a bracket is not closed")
		}
		host, s = s[1:end], s[end+1:]
		if err := checkHost(host); err != nil || !strings.Contains(host, ":") {
			return "", 0, "", errors.New("what stands in brackets is not an IPv6 address")
		}
	} else {
		colon := strings.IndexByte(s, ':')
		if colon < 0 {
			return "", 0, "", errors.New("no port")
		}
		host, s = s[:colon], s[colon:]
	}
	if !strings.HasPrefix(s, ":") {
		return "", 0, "", errors.New("no port")
	}
	digits := s[1:]
	if end := strings.IndexByte(digits, ':'); end >= 0 {
		digits, rest = digits[:end], digits[end:]
	}
	port, err = parsePort(digits)
	return host, port, rest, err
}

func parsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	switch {
	case s == "":
		return 0, errors.New("no port")
	case err != nil || s[0] == '+':
		return 0, errors.New("the port is not a number")
	case n < 1 || n > 65535:
		return 0, fmt.Errorf("port %d is out of range 1-65535", n)
	}
	return uint16(n), nil
}
