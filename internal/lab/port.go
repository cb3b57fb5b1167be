package lab

import (
	"context"
	"errors"
	"net"
	"time"
)

// port is a port of 127.0.0.1 that takes connections or refuses them, as its
// schedule says. Its number stays its own while it refuses.
type port struct {
	lab   *Lab
	addr  string
	open  func(now time.Time) bool
	serve func(net.Conn)

	listener net.Listener // nil while it refuses; owned by settle's caller
}

// tick is how late a port may follow its schedule. Connections that are taken in
// that time are reset.
const tick = 10 * time.Millisecond

// startPort opens a port; changes says whether its schedule ever changes.
func (l *Lab) startPort(ctx context.Context, p *port, changes bool) error {
	p.lab = l
	if err := p.settle(ctx); err != nil {
		return err
	}
	if changes {
		l.wg.Go(func() { p.follow(l.ctx) })
	}
	return nil
}

// follow opens and closes the port until ctx ends.
func (p *port) follow(ctx context.Context) {
	for pause(ctx, tick) {
		_ = p.settle(ctx) // refused for another tick if the port cannot be had
	}
}

// settle brings the port to what its schedule wants now.
func (p *port) settle(ctx context.Context) error {
	want := p.open(p.lab.now())
	switch {
	case want && p.listener == nil:
		ln, err := new(net.ListenConfig).Listen(ctx, "tcp", p.addr)
		if err != nil {
			return err
		}
		if !p.lab.sockets.add(ln) {
			return net.ErrClosed
		}
		p.listener = ln
		p.lab.wg.Go(func() { p.accept(ln) })
	case !want && p.listener != nil:
		p.lab.sockets.drop(p.listener)
		p.listener = nil
	}
	return nil
}

func (p *port) accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no file descriptor left, say: it passes
			if !pause(p.lab.ctx, tick) {
				return
			}
		case !p.open(p.lab.now()):
			reset(conn)
		default:
			p.lab.wg.Go(func() { p.serve(conn) })
		}
	}
}
