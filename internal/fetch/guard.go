package fetch

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/hostler-proxy/hostler/internal/proxy"
)

// errSpecial is that a host's address is not to be dialled.
var errSpecial = errors.New("special-purpose address")

// guard decides which addresses one source may be fetched from. Every address is
// looked at when it is dialled, so that a name cannot show one and lead to another.
//
// An operator who writes an address, or localhost, into the source's URL has named
// it and gets it; a name that leads to a special-purpose address needs
// allow_special. Both hold for the URL's own host alone: a redirect elsewhere gets
// public addresses only. Link-local addresses, where clouds keep their metadata,
// and fd00:ec2::254 are never dialled.
type guard struct {
	host    string // of the source's URL, lower case
	trusted bool   // special-purpose addresses of that host are taken
}

func newGuard(host string, allow bool) guard {
	host = canonical(host)
	_, err := netip.ParseAddr(host)
	return guard{host, allow || err == nil || host == "localhost"}
}

func canonical(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// dial connects to an address that is allowed for the host.
func (g guard) dial(resolver *net.Resolver) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		own := g.trusted && canonical(host) == g.host
		d := net.Dialer{Resolver: resolver, Control: func(_, address string, _ syscall.RawConn) error { return check(address, own) }}
		return d.DialContext(ctx, network, address)
	}
}

// check says whether a resolved address may be dialled.
func check(address string, own bool) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return errSpecial
	}
	addr := inner(at.Addr().WithZone("").Unmap())
	switch {
	case addr.IsLinkLocalUnicast(), addr == netip.MustParseAddr("fd00:ec2::254"):
		return errSpecial
	case !own && proxy.Proxy{Host: addr.String()}.Special() != "":
		return errSpecial
	}
	return nil
}

// inner gives the IPv4 address that an address of NAT64 or 6to4 leads to.
func inner(addr netip.Addr) netip.Addr {
	b := addr.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:16]))
	case netip.MustParsePrefix("2002::/16").Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return addr
}
