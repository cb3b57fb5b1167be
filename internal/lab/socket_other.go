//go:build !linux

package lab

import (
	"io"
	"net"
)

// holdPort finds a free port of 127.0.0.1. Only Linux can keep it from being
// given to others while nothing listens.
func holdPort() (addr string, hold io.Closer, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		return "", nil, err
	}
	return ln.Addr().String(), io.NopCloser(nil), ln.Close()
}

// alive cannot be known here before the next read: what was not closed counts.
func alive(net.Conn) bool { return true }
