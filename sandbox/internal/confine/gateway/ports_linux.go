//go:build amd64 || arm64

package gateway

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// A port is one on which the gateway listens.
type port struct {
	listener *net.TCPListener
	forNames bool
	spare    bool // for addresses with every port: closed again when others are wanted
	opened   time.Time

	// What follows is guarded by the gateway's mu.
	gone    bool
	live    int       // connections
	used    time.Time // when the last one came or went
	awaited bool      // the one that it was opened for has not come yet
}

// control does something with the socket of a port.
func (p *port) control(do func(sock int)) {
	if raw, err := p.listener.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { do(int(fd)) })
	}
}

// openPort makes a port one that can be reached. The caller holds mu.
func (g *Gateway) openPort(number uint16) error {
	if p := g.Ports[number]; p != nil && !p.spare {
		return nil
	}
	r := RouteRule{Order: orderPort, Protocol: unix.IPPROTO_TCP, port: number, Table: portTables + uint32(number)}
	if err := g.bothFamilies(g.commands.AddRouteRule, r); err != nil {
		return err
	}
	return g.listenOn(number, false)
}

// listenOn serves a port of the gateway. The caller holds mu.
func (g *Gateway) listenOn(number uint16, spare bool) error {
	if p := g.Ports[number]; p != nil {
		if p.spare && !spare {
			p.spare = false
			g.spare.count--
		}
		return nil
	}
	listener, err := g.listen(number)
	if err != nil {
		return err
	}
	if err := g.bothFamilies(g.outer.AddRouteRule, here(number)); err != nil {
		listener.Close()
		return err
	}
	now := time.Now()
	p := &port{listener: listener, spare: spare, opened: now, used: now, awaited: spare}
	g.Ports[number] = p
	if spare {
		g.spare.count++
	}
	g.work.Go(func() { g.serve(p, g.Relays, g.relay) })
	return nil
}

// here leads what comes into the gateway for a port to whoever listens there.
func here(number uint16) RouteRule {
	return RouteRule{Order: orderPort, from: WayName, Protocol: unix.IPPROTO_TCP, port: number, Table: hereTable}
}
