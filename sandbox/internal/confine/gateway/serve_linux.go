//go:build amd64 || arm64

package gateway

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// A visitor is a connection of a command with the gateway.
type visitor struct {
	port *port
	way  *Way // nil where the address has none of its own
	to   netip.Prefix
	idle time.Time // since when a question for a name is awaited; zero while it is answered
}

// serve has do serve each connection, as many at a time as there is room for. Others
// are reset: what waits would keep a descriptor.
func (g *Gateway) serve(p *port, room chan struct{}, do func(*net.TCPConn)) {
	for {
		conn, err := p.listener.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // there are no descriptors left, or no memory
			g.DropWaiting(p)
			if !g.pause(50 * time.Millisecond) {
				return
			}
			continue
		}
		if !g.hold(conn, p) {
			resetConn(conn)
			continue
		}
		select {
		case room <- struct{}{}:
		default:
			if !g.makeRoom(conn, p, room) {
				_ = conn.SetLinger(0)
				g.letGo(conn)
				continue
			}
		}
		g.work.Go(func() {
			defer func() { g.letGo(conn); <-room }()
			do(conn)
		})
	}
}

func resetConn(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	conn.Close()
}

// DropWaiting resets the connections that wait at a port, and listens again. It needs
// no descriptor.
func (g *Gateway) DropWaiting(p *port) {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if g.closed || p.gone {
		return
	}
	p.control(func(sock int) {
		if unix.Shutdown(sock, unix.SHUT_RD) == nil {
			_ = unix.Listen(sock, mostWaiting)
		}
	})
}

// pause waits a while, and reports whether the gateway is still open.
func (g *Gateway) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-g.ctx.Done():
		return false
	}
}

// hold counts a connection, and has it closed with the gateway.
func (g *Gateway) hold(conn *net.TCPConn, p *port) bool {
	to := meant(conn).Addr()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if g.closed || p.gone {
		return false
	}
	v := &visitor{port: p, to: netip.PrefixFrom(to, to.BitLen()), idle: time.Now()}
	if v.way = g.Reached[v.to]; v.way != nil {
		v.way.Live++
	}
	p.live++
	p.awaited, p.used = false, time.Now()
	g.Open[conn] = v
	return true
}

func (g *Gateway) letGo(conn *net.TCPConn) {
	conn.Close()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	v := g.Open[conn]
	delete(g.Open, conn)
	v.port.live--
	v.port.used = time.Now()
	if v.way != nil {
		v.way.Live--
		g.GiveUp(v.to, v.way)
	}
}

// makeRoom closes the connection that has asked for no name for the longest time. It
// reports whether there was one, whose room is the caller's now.
func (g *Gateway) makeRoom(wants *net.TCPConn, p *port, room chan struct{}) bool {
	g.Mu.Lock()
	var oldest *net.TCPConn
	for conn, v := range g.Open {
		if conn != wants && v.port == p && p.forNames && !v.idle.IsZero() && (oldest == nil || v.idle.Before(g.Open[oldest].idle)) {
			oldest = conn
		}
	}
	if oldest != nil {
		g.Open[oldest].idle = time.Time{} // nobody closes it twice
		resetConn(oldest)
	}
	g.Mu.Unlock()
	if oldest == nil {
		return false
	}
	select {
	case room <- struct{}{}:
		return true
	case <-g.ctx.Done():
		return false
	}
}

// waits notes whether a connection waits for a question.
func (g *Gateway) waits(conn *net.TCPConn, waits bool) {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if v := g.Open[conn]; v != nil {
		v.idle = time.Time{}
		if waits {
			v.idle = time.Now()
		}
	}
}

// meant is where a command wanted to.
func meant(conn *net.TCPConn) netip.AddrPort {
	to := conn.LocalAddr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(to.Addr().Unmap().WithZone(""), to.Port())
}

// relay has the gate connect a command with whom it meant.
func (g *Gateway) relay(conn *net.TCPConn) { g.gate.Relay(g.ctx, conn, meant(conn)) }
