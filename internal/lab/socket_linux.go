package lab

import (
	"fmt"
	"io"
	"net"
	"syscall"
)

// heldPort is a socket that is bound and does not listen: connections to it are
// refused, and nobody else is given its number.
type heldPort int

// Close gives the number back.
func (fd heldPort) Close() error { return syscall.Close(int(fd)) }

// holdPort takes a free port of 127.0.0.1. Listeners may come and go on it while
// it is held, because SO_REUSEADDR lets them share it with a socket that does not
// listen.
func holdPort() (addr string, hold io.Closer, err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("open a socket: %w", err)
	}
	port, err := bindPort(fd)
	if err != nil {
		_ = syscall.Close(fd)
		return "", nil, fmt.Errorf("bind to a port of 127.0.0.1: %w", err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port), heldPort(fd), nil
}

func bindPort(fd int) (int, error) {
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	// only now: a port chosen with SO_REUSEADDR may be one that others hold likewise
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	return name.(*syscall.SockaddrInet4).Port, nil
}

// tcpEstablished is the kernel's TCP_ESTABLISHED.
const tcpEstablished = 1

// alive says whether the peer has not closed its side yet, as the kernel knows
// it. The program learns it later, when it next reads.
func alive(conn net.Conn) bool {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return false
	}
	var state [4]byte // the head of struct tcp_info: its first byte is the state
	var failed error
	err = raw.Control(func(fd uintptr) {
		state, failed = syscall.GetsockoptInet4Addr(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
	})
	return err == nil && failed == nil && state[0] == tcpEstablished
}
