package proxy

import (
	"errors"
	"net/url"
	"strings"
)

// form is one way to read a line.
type form uint8

const (
	formAny  form = iota // whichever fits; several that fit are ambiguous
	formURL              // [scheme://][user:pass@]host:port
	formHost             // [scheme://]host:port[:user[:pass]]
	formUser             // [scheme://]user:pass:host:port
)

var (
	errAmbiguous = errors.New("ambiguous: it can be read in two ways; name the format (hostport or userpass), or write scheme://user:pass@host:port")
	errBare6     = errors.New("an IPv6 address must stand in brackets: [2001:db8::1]:8080")
	errNoPort    = errors.New("no port")
	errPort      = errors.New("the port is not a number")
	errPortRange = errors.New("the port is out of range 1-65535")
	errNoUser    = errors.New("no user")
	errNoPass    = errors.New("no password")
	errMore      = errors.New("there is more behind host and port")
)

// Parse reads one proxy in any of the forms that lists use:
//
//	host:port
//	host:port:user:pass      (the password is all the rest)
//	user:pass:host:port
//	user:pass@host:port      (split at the last @)
//	scheme://[user:pass@]host:port[#note]
//	scheme://host:port:user:pass
//
// An IPv6 host stands in brackets. Percent escapes are decoded once, and only in
// the form with a scheme and an @. A line that can be read in two ways is
// refused. The error says what is wrong and never quotes credentials.
func Parse(line string, defaultScheme Scheme) (Proxy, error) {
	return parse(strings.TrimSpace(line), defaultScheme, formAny)
}

// parse reads a line that begins and ends with what belongs to the proxy.
func parse(text string, scheme Scheme, as form) (Proxy, error) {
	isURL := false
	if before, after, ok := strings.Cut(text, "://"); ok && !strings.ContainsAny(before, ":@/") {
		named, err := ParseScheme(before)
		if err != nil {
			return Proxy{}, err
		}
		scheme, text, isURL = named, strings.TrimSuffix(after, "/"), true
	}
	p, err := read(text, isURL, as)
	if err != nil {
		return Proxy{}, err
	}
	p.Scheme = scheme
	if isURL && strings.IndexByte(text, '#') >= 0 { // a long note must not stay in memory with the proxy
		p.Host, p.Username, p.Password = strings.Clone(p.Host), strings.Clone(p.Username), Secret(strings.Clone(string(p.Password)))
	}
	return p, p.checkCredentials()
}

// read tries the forms that a text can have.
func read(text string, isURL bool, as form) (Proxy, error) {
	colons, at := strings.Count(text, ":"), strings.LastIndexByte(text, '@')
	if as == formAny && colons > 3 && at < 0 && onlyAddress(text) {
		return Proxy{}, errBare6
	}
	var r readings
	if at >= 0 && (as == formAny || as == formURL) {
		r.add(userinfo(text, at, isURL))
	}
	if as != formUser && (at < 0 || colons > 2 && as != formURL || as == formHost) {
		r.add(hostFirst(text, isURL, as))
	}
	if colons > 2 && (as == formAny || as == formUser) {
		r.add(userFirst(text))
	}
	if r.n == 0 && r.err == nil {
		r.err = errNoPort
	}
	return r.result()
}

// readings gathers what a text can mean.
type readings struct {
	list [3]Proxy
	n    int
	err  error // of the first that failed
}

func (r *readings) add(p Proxy, err error) {
	if err == nil {
		r.list[r.n] = p
		r.n++
	} else if r.err == nil {
		r.err = err
	}
}

// result is the one reading there is, or the one with a plausible host: an
// address, or a name with a dot.
func (r *readings) result() (Proxy, error) {
	switch r.n {
	case 0:
		return Proxy{}, r.err
	case 1:
		return r.list[0], nil
	}
	best := -1
	for i, p := range r.list[:r.n] {
		if !strings.ContainsAny(p.Host, ".:") {
			continue
		}
		if best >= 0 {
			return Proxy{}, errAmbiguous
		}
		best = i
	}
	if best < 0 {
		return Proxy{}, errAmbiguous
	}
	return r.list[best], nil
}

// userinfo reads user:pass before the last @.
func userinfo(text string, at int, isURL bool) (p Proxy, err error) {
	address := text[at+1:]
	if isURL {
		address, _, _ = strings.Cut(address, "#")
	}
	var rest string
	if p.Host, p.Port, rest, err = splitAddress(address); err != nil {
		return p, err
	}
	if rest != "" {
		return p, errMore
	}
	user, pass, _ := strings.Cut(text[:at], ":")
	if isURL {
		user, pass = unescape(user), unescape(pass)
	}
	p.Username, p.Password = user, Secret(pass)
	return p, checkHost(p.Host)
}

// unescape decodes percent escapes once; a malformed one leaves the text as it is.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	if decoded, err := url.PathUnescape(s); err == nil {
		return decoded
	}
	return s
}

// onlyAddress says whether a text has only what IPv6 addresses have.
func onlyAddress(s string) bool { return strings.Trim(strings.ToLower(s), "0123456789abcdef:") == "" }

// hostFirst reads host:port and host:port:user:pass.
func hostFirst(text string, isURL bool, as form) (p Proxy, err error) {
	address := text
	if isURL && strings.Count(text, ":") == 1 {
		address, _, _ = strings.Cut(text, "#")
	}
	var rest string
	if p.Host, p.Port, rest, err = splitAddress(address); err != nil {
		return p, err
	}
	if rest != "" {
		if as == formURL {
			return p, errMore
		}
		user, pass, _ := strings.Cut(rest[1:], ":")
		if user == "" {
			return p, errors.New("there is a colon behind the port and no user")
		}
		p.Username, p.Password = user, Secret(pass)
	}
	return p, checkHost(p.Host)
}

// userFirst reads user:pass:host:port; the user is all before the first colon,
// and the password all from there to the host.
func userFirst(text string) (p Proxy, err error) {
	last := strings.LastIndexByte(text, ':')
	if p.Port, err = parsePort(text[last+1:]); err != nil {
		return p, err
	}
	front := text[:last]
	cut := strings.LastIndexByte(front, ':')
	if strings.HasSuffix(front, "]") {
		cut = strings.LastIndexByte(front, '[') - 1
	}
	if cut < 1 || front[cut] != ':' {
		return p, errNoUser
	}
	user, pass, ok := strings.Cut(front[:cut], ":")
	if !ok || user == "" {
		return p, errNoPass
	}
	p.Host, p.Username, p.Password = unbracket(front[cut+1:]), user, Secret(pass)
	return p, checkHost(p.Host)
}

// unbracket takes one pair of brackets off.
func unbracket(host string) string {
	if inner, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inner, "]") {
		return inner[:len(inner)-1]
	}
	return host
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
			return "", 0, "", errNoPort
		}
		host, s = s[:colon], s[colon:]
	}
	if !strings.HasPrefix(s, ":") {
		return "", 0, "", errNoPort
	}
	digits := s[1:]
	if end := strings.IndexByte(digits, ':'); end >= 0 {
		digits, rest = digits[:end], digits[end:]
	}
	port, err = parsePort(digits)
	return host, port, rest, err
}

func parsePort(s string) (uint16, error) {
	if s == "" {
		return 0, errNoPort
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, errPort
		}
		n = min(n*10+int(c-'0'), 1<<20)
	}
	if n < 1 || n > 65535 {
		return 0, errPortRange // the number is not quoted: in another reading it is a password
	}
	return uint16(n), nil
}
