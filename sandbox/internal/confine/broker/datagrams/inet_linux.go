//go:build amd64 || arm64

package datagrams

import (
	"net/netip"
	"slices"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// Datagrams between commands of one session: what one sends comes to the server, which
// has it delivered to the socket that is bound to the address. Ports are the session's
// own, so nothing of it touches the machine's network.

const (
	MaxUDP       = 65507                    // bytes of a datagram, as UDP has it
	maxQueued    = 128 << 10                // bytes that wait for one socket, with their cost
	maxAllQueued = 32 << 20                 // and for all sockets of all sessions
	queuedCost   = 256                      // that each has beside its bytes
	answerCost   = maxDatagram + queuedCost // up to which a socket gets one in any case: other sessions may have taken the rest
	firstPort    = 32768                    // of those that nobody asked for
	portCount    = 60999 - firstPort
	pairBuffer   = 4 * MaxUDP // what the kernel has to hold of one, with its own cost
)

// Bind gives a socket an address of the session's own.
func (ls *Sockets) Bind(l *Socket, at netip.AddrPort) unix.Errno {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.local.IsValid() || l.over {
		return unix.EINVAL
	}
	port := at.Port()
	for i := 0; at.Port() == 0 && i < portCount; i++ {
		port = uint16(firstPort + (l.Ino+uint64(i))%portCount)
		if len(ls.ports[port]) == 0 {
			break
		}
	}
	if slices.ContainsFunc(ls.ports[port], func(o *Socket) bool { return at.Port() == 0 || o.local.Addr() == at.Addr() }) {
		return unix.EADDRINUSE
	}
	l.local = netip.AddrPortFrom(at.Addr(), port)
	ls.ports[port] = append(ls.ports[port], l)
	return 0
}

// release takes a socket's address from it.
func (ls *Sockets) release(l *Socket) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(ls.byIno, l.Ino)
	port := l.local.Port()
	ls.ports[port] = slices.DeleteFunc(ls.ports[port], func(o *Socket) bool { return o == l })
	if len(ls.ports[port]) == 0 {
		delete(ls.ports, port)
	}
	for len(l.queue) > 0 {
		l.dequeue()
	}
	l.over = true
	ls.releaseUnix(l)
	if l.end >= 0 {
		unix.Close(l.end)
		l.end = -1
	}
}

// At finds the socket that has an address of loopback: one that has this very address
// before one that has any.
func (ls *Sockets) At(to netip.AddrPort) *Socket {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var found *Socket
	for _, l := range ls.ports[to.Port()] {
		switch ip := l.local.Addr(); {
		case ip == to.Addr():
			return l
		case ip.IsUnspecified() && (ip.Is4() == to.Addr().Is4() || ip.Is6() && found == nil):
			found = l
		}
	}
	return found
}

// Forward has a datagram delivered to another socket of the session, if one is there and
// takes it from this.
func (l *Socket) Forward(to netip.AddrPort, data []byte) {
	target := l.Of.At(to)
	if target == nil {
		return
	}
	from := l.sendsFrom(to.Addr())
	if only := target.Connected(); only.IsValid() && only != from {
		return
	}
	target.deliver(datagram{from: kernel.InetAddress(target.Domain, from), data: data})
}

// sendsFrom is the address that a receiver finds.
func (l *Socket) sendsFrom(to netip.Addr) netip.AddrPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.local.Addr().IsUnspecified() {
		return l.local
	}
	return netip.AddrPortFrom(LoopbackLike(to), l.local.Port())
}

// Connected is the only one whose datagrams a socket takes; not valid for all.
func (l *Socket) Connected() netip.AddrPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peer
}

// LoopbackLike is the address of loopback of the family of ip.
func LoopbackLike(ip netip.Addr) netip.Addr {
	if ip.Unmap().Is4() {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.IPv6Loopback()
}
