package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// ParseScheme reads a scheme in any case. socks5h and socks mean socks5, whose
// names the proxy resolves here in any case.
func ParseScheme(s string) (Scheme, error) {
	switch low := strings.ToLower(s); low {
	case "http", "https", "socks4", "socks4a", "socks5":
		return Scheme(low), nil
	case "socks5h", "socks":
		return SchemeSOCKS5, nil
	default:
		return "", fmt.Errorf("scheme %s is not supported: use http, https, socks4, socks4a or socks5", quoted(s))
	}
}

// quoted gives a short text without control bytes, for reasons that people read.
func quoted(s string) string {
	const most = 20
	if len(s) > most {
		s = s[:most] + "..."
	}
	return fmt.Sprintf("%q", s)
}

// Canonical gives the same proxy in the one form that is stored: lower case,
// no trailing dot, addresses in their shortest text.
func (p Proxy) Canonical() Proxy {
	p.Scheme = Scheme(strings.ToLower(string(p.Scheme)))
	host := strings.TrimSuffix(strings.ToLower(strings.Trim(p.Host, "[]")), ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.Unmap().String()
	}
	p.Host = host
	return p
}

// String is the proxy's URL with *** for the password; it is safe to show.
func (p Proxy) String() string {
	user := ""
	if p.Username != "" || p.Password != "" {
		user = clean(p.Username)
		if p.Password != "" {
			user += ":***"
		}
		user += "@"
	}
	return string(p.Scheme) + "://" + user + clean(p.Address())
}

// clean replaces control bytes, which must not reach a terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

// Validate says whether the proxy can be used. Its error never quotes
// credentials.
func (p Proxy) Validate() error {
	if _, err := ParseScheme(string(p.Scheme)); err != nil {
		return err
	}
	if p.Port == 0 {
		return errors.New("port 0 is out of range 1-65535")
	}
	for _, text := range []string{p.Username, p.Password.Reveal()} {
		if strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
			return errors.New("the credentials hold control characters")
		}
		if len(text) > 1000 {
			return errors.New("the credentials are longer than 1000 bytes")
		}
	}
	return checkHost(p.Host)
}

// checkHost says whether a text is an address or can be a name.
func checkHost(host string) error {
	host = strings.Trim(host, "[]")
	if strings.Contains(host, ":") || strings.Contains(host, "%") {
		addr, err := netip.ParseAddr(host)
		if err != nil || addr.Zone() != "" {
			return errors.New("the host is not an IPv6 address")
		}
		return nil
	}
	if numeric(host) {
		if _, err := netip.ParseAddr(host); err != nil {
			return errors.New("the host looks like an IPv4 address and is none")
		}
		return nil
	}
	return checkName(strings.TrimSuffix(host, "."))
}

// numeric says whether only digits and dots make up the host.
func numeric(host string) bool {
	return host != "" && strings.Trim(host, "0123456789.") == ""
}

func checkName(name string) error {
	if name == "" {
		return errors.New("no host")
	}
	if len(name) > 253 {
		return errors.New("the host is longer than 253 characters")
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return errors.New("the host is not a name: a label is empty or longer than 63 characters")
		}
		for _, c := range []byte(label) {
			if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return errors.New("the host is not a name or an address")
			}
		}
	}
	return nil
}

// special lists the special-purpose ranges of the IANA registries (RFC 6890 and
// its successors) in which no proxy of a public list can stand.
var special = []struct {
	prefix netip.Prefix
	name   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared (carrier NAT)"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "protocol assignments"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved or broadcast"},
	{netip.MustParsePrefix("::/127"), "loopback or unspecified"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "translation"},
	{netip.MustParsePrefix("100::/64"), "discard"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

// Special names the special-purpose range that the host's address stands in;
// "" when it stands in none, or the host is a name.
func (p Proxy) Special() string {
	addr, err := netip.ParseAddr(strings.Trim(p.Host, "[]"))
	if err != nil {
		return ""
	}
	addr = addr.Unmap()
	for _, s := range special {
		if s.prefix.Contains(addr) {
			return s.name
		}
	}
	return ""
}
