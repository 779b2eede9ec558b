//go:build amd64 || arm64

package gateway

import (
	"cmp"
	"encoding/binary"
	"os"
	"slices"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// MostSpare is how many ports are listened on because somebody wanted one of an
// address with every port. Tests have fewer.
var MostSpare = 256

const (
	mostWanted = 64          // connections that wait for a port to be opened
	spareTime  = time.Second // for a connection to arrive at a port that was opened for it
)

// A spare listens for who wants a port that nobody listens on yet.
type spare struct {
	frames *os.File
	wanted chan frame
	count  int // of the ports, guarded by the gateway's mu
}

func (s *spare) close() {
	if s != nil {
		s.frames.Close()
	}
}

// openAny makes every port of some addresses one that can be reached. There cannot be
// sockets for all: the gateway drops what asks for another, which is noticed, listens
// there, and has it come once more. The caller holds mu.
func (g *Gateway) openAny() error {
	if g.spare != nil {
		return nil
	}
	if err := attachFilter(g.framesSeen, askingFrames()); err != nil {
		return err
	}
	const every = unix.ETH_P_ALL
	network := func(n uint16) uint16 { return binary.NativeEndian.Uint16([]byte{byte(n >> 8), byte(n)}) }
	err := cmp.Or(unix.Bind(g.framesSeen, &unix.SockaddrLinklayer{Protocol: network(every), Ifindex: gatewayIndex}),
		unix.Bind(g.replay, &unix.SockaddrLinklayer{Ifindex: WayIndex}),
		g.bothFamilies(g.outer.AddRouteRule, RouteRule{Order: orderAny, from: WayName, Protocol: unix.IPPROTO_TCP, drop: true}),
		g.bothFamilies(g.commands.AddRouteRule, RouteRule{Order: orderAny, Protocol: unix.IPPROTO_TCP, Table: portTables}))
	if err != nil {
		return err
	}
	fd, err := unix.FcntlInt(uintptr(g.framesSeen), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return err
	}
	g.spare = &spare{frames: os.NewFile(uintptr(fd), "frames"), wanted: make(chan frame, mostWanted)}
	g.work.Go(func() { g.watch(g.spare) })
	g.work.Go(func() { g.openWanted(g.spare) })
	return nil
}

// watch looks at what begins a connection. It never waits, or a flood would have the
// kernel drop what others ask for.
func (g *Gateway) watch(s *spare) {
	buffer := make([]byte, offloadHeader+largestAsking)
	for {
		n, err := s.frames.Read(buffer)
		if err != nil {
			return
		}
		f := frame(buffer[:n])
		if !f.asks() || f.isAgain() {
			continue
		}
		select {
		case s.wanted <- slices.Clone(f):
		default:
			g.Mu.Lock()
			again, open := g.isOpen(f.to().Port())
			g.Mu.Unlock()
			g.settle(f, again, open)
		}
	}
}

// openWanted opens the ports that somebody asks for.
func (g *Gateway) openWanted(s *spare) {
	for {
		select {
		case <-g.ctx.Done():
			return
		case f := <-s.wanted:
			again, open := g.openSpare(s, f.to().Port())
			g.settle(f, again, open)
		}
	}
}

// settle has a connection come once more, or refuses it where no port can be opened.
func (g *Gateway) settle(f frame, again, open bool) {
	switch {
	case again:
		_, _ = unix.Write(g.replay, f.again())
	case !open:
		_, _ = unix.Write(g.framesSeen, f.refusal())
		g.gate.RefuseBusy(f.to())
	}
}

// isOpen reports whether a port is listened on, and whether it has been for so short a
// time that what asked for it came too early. The caller holds mu.
func (g *Gateway) isOpen(number uint16) (again, open bool) {
	if g.closed || number == 0 || number == kernel.NamePort {
		return false, true
	}
	p := g.Ports[number]
	return p != nil && time.Since(p.opened) < spareTime, p != nil
}

// openSpare listens on a port, or finds it open.
func (g *Gateway) openSpare(s *spare, number uint16) (again, open bool) {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if again, open := g.isOpen(number); open {
		return again, true
	}
	if s.count >= MostSpare && !g.closeSpare() || g.listenOn(number, true) != nil {
		return false, false
	}
	return true, true
}

// closeSpare listens no more on the port that nobody has used for the longest time. It
// reports whether there was one without connections: these would hang. The caller
// holds mu.
func (g *Gateway) closeSpare() bool {
	var oldest uint16
	for number, p := range g.Ports {
		awaits := p.awaited && time.Since(p.opened) < spareTime
		if p.spare && p.live == 0 && !awaits && (oldest == 0 || p.used.Before(g.Ports[oldest].used)) {
			oldest = number
		}
	}
	p := g.Ports[oldest]
	if p == nil {
		return false
	}
	p.gone = true
	p.control(func(sock int) { _ = unix.Shutdown(sock, unix.SHUT_RD) }) // what was just coming is reset
	_ = g.bothFamilies(g.outer.removeRouteRule, here(oldest))
	p.listener.Close()
	delete(g.Ports, oldest)
	g.spare.count--
	return true
}
