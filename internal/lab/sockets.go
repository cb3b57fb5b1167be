package lab

import (
	"io"
	"net"
	"sync"
)

// sockets are the open listeners and connections, so that Close can end them.
type sockets struct {
	mu     sync.Mutex
	closed bool
	open   map[io.Closer]struct{}
}

// add remembers a socket until it is dropped; false when all is over, and the
// socket is closed.
func (s *sockets) add(socket io.Closer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = socket.Close()
		return false
	}
	s.open[socket] = struct{}{}
	return true
}

// drop closes a socket.
func (s *sockets) drop(socket io.Closer) {
	s.mu.Lock()
	delete(s.open, socket)
	s.mu.Unlock()
	_ = socket.Close()
}

// closeAll closes what is open and what is still to come.
func (s *sockets) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for socket := range s.open {
		_ = socket.Close()
	}
	clear(s.open)
}

// reset closes a connection in the hard way: the peer reads "connection reset".
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
