package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
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

// quoted gives a short word of letters and digits for reasons that people read.
// Any other text can hold more than the name of a scheme and is not shown.
func quoted(s string) string {
	const most = 12
	word := len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	})
	if s == "" || !word {
		return "of this name"
	}
	return strconv.Quote(s)
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
		return errPortRange
	}
	if err := p.checkCredentials(); err != nil {
		return err
	}
	return checkHost(p.Host)
}

func (p Proxy) checkCredentials() error {
	if len(p.Username) > 1000 || len(p.Password) > 1000 {
		return errors.New("the credentials are longer than 1000 bytes")
	}
	if strings.ContainsFunc(p.Username, control) || strings.ContainsFunc(string(p.Password), control) {
		return errors.New("the credentials hold control characters or are not UTF-8")
	}
	return nil
}

// checkHost says whether a text is an address or can be a name.
func checkHost(host string) error {
	if strings.Contains(host, ":") || strings.Contains(host, "%") {
		addr, err := netip.ParseAddr(host)
		if err != nil || addr.Zone() != "" {
			return errors.New("the host is not an IPv6 address")
		}
		return nil
	}
	if numeric(host) {
		if _, err := netip.ParseAddr(host); err != nil {
			return errOldAddress
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
	// What ends in a number is an address in one of the old spellings, such as
	// 0x7f.1: some resolvers take it for one.
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.Trim(last, "0123456789") == "" || hexNumber(last) {
		return errOldAddress
	}
	return nil
}

var errOldAddress = errors.New("the host looks like an IPv4 address and is none")

func hexNumber(s string) bool {
	return len(s) > 1 && s[0] == '0' && s[1]|0x20 == 'x' && strings.Trim(strings.ToLower(s[2:]), "0123456789abcdef") == ""
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
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved or broadcast"},
	{netip.MustParsePrefix("::/127"), "loopback or unspecified"},
	{netip.MustParsePrefix("::/96"), "IPv4 in IPv6"},
	{netip.MustParsePrefix("64:ff9b::/96"), "translation"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "translation"},
	{netip.MustParsePrefix("100::/64"), "discard"},
	{netip.MustParsePrefix("2001::/23"), "protocol assignments"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("2002::/16"), "6to4"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
	{netip.MustParsePrefix("5f00::/16"), "segment routing"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "site-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

// Special names the special-purpose range that the host's address stands in;
// "" when it stands in none, or the host is a name other than localhost.
func (p Proxy) Special() string {
	host := strings.Trim(p.Host, "[]")
	addr, err := netip.ParseAddr(host)
	if err != nil {
		if name := strings.ToLower(strings.TrimSuffix(host, ".")); name == "localhost" || strings.HasSuffix(name, ".localhost") {
			return "loopback"
		}
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
