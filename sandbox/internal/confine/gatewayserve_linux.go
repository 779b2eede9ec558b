//go:build amd64 || arm64

package confine

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
	way  *way // nil where the address has none of its own
	to   netip.Prefix
	idle time.Time // since when a question for a name is awaited; zero while it is answered
}

// serve has do serve each connection, as many at a time as there is room for. Others
// are reset: what waits would keep a descriptor.
func (g *gateway) serve(p *port, room chan struct{}, do func(*net.TCPConn)) {
	for {
		conn, err := p.listener.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // there are no descriptors left, or no memory
			g.dropWaiting(p)
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

// dropWaiting resets the connections that wait at a port, and listens again. It needs
// no descriptor.
func (g *gateway) dropWaiting(p *port) {
	g.mu.Lock()
	defer g.mu.Unlock()
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
func (g *gateway) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-g.ctx.Done():
		return false
	}
}

// hold counts a connection, and has it closed with the gateway.
func (g *gateway) hold(conn *net.TCPConn, p *port) bool {
	to := meant(conn).Addr()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || p.gone {
		return false
	}
	v := &visitor{port: p, to: netip.PrefixFrom(to, to.BitLen()), idle: time.Now()}
	if v.way = g.reached[v.to]; v.way != nil {
		v.way.live++
	}
	p.live++
	p.awaited, p.used = false, time.Now()
	g.open[conn] = v
	return true
}

func (g *gateway) letGo(conn *net.TCPConn) {
	conn.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.open[conn]
	delete(g.open, conn)
	v.port.live--
	v.port.used = time.Now()
	if v.way != nil {
		v.way.live--
		g.giveUp(v.to, v.way)
	}
}

// makeRoom closes the connection that has asked for no name for the longest time. It
// reports whether there was one, whose room is the caller's now.
func (g *gateway) makeRoom(wants *net.TCPConn, p *port, room chan struct{}) bool {
	g.mu.Lock()
	var oldest *net.TCPConn
	for conn, v := range g.open {
		if conn != wants && v.port == p && p.forNames && !v.idle.IsZero() && (oldest == nil || v.idle.Before(g.open[oldest].idle)) {
			oldest = conn
		}
	}
	if oldest != nil {
		g.open[oldest].idle = time.Time{} // nobody closes it twice
		resetConn(oldest)
	}
	g.mu.Unlock()
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
func (g *gateway) waits(conn *net.TCPConn, waits bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if v := g.open[conn]; v != nil {
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
func (g *gateway) relay(conn *net.TCPConn) { g.gate.Relay(g.ctx, conn, meant(conn)) }
