//go:build amd64 || arm64

package broker

import (
	"net/netip"
	"slices"
	"sync/atomic"

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

// allQueued counts the bytes that wait in this process.
var allQueued atomic.Int64

// A datagram waits to be received.
type datagram struct {
	from []byte // the sender's address, as the receiver's kind of socket has it
	data []byte
}

func (d datagram) cost() int { return len(d.data) + queuedCost }

// deliver queues a datagram for the command that has the other end, and reports whether
// there was room. As with UDP, what finds none is lost.
func (l *lookup) deliver(d datagram) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.queued+d.cost() > maxQueued {
		return false
	}
	if allQueued.Add(int64(d.cost())) > maxAllQueued && (l.queued > 0 || d.cost() > answerCost) {
		allQueued.Add(-int64(d.cost()))
		return false
	}
	l.queue, l.queued = append(l.queue, d), l.queued+d.cost()
	if !l.pumping {
		l.pumping = true
		go l.pump()
	}
	return true
}

// pump hands over one datagram at a time: so it is known who sent the one that the
// command receives next, however it does.
func (l *lookup) pump() {
	for l.awaitTaken() && l.handOver() {
		select {
		case l.arrived <- struct{}{}:
		default:
		}
	}
}

// handOver hands over the next. If there is none, the pump has ended.
func (l *lookup) handOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.pumping = false
		return false
	}
	d := l.dequeue()
	l.from = d.from
	_ = l.conn.Control(func(fd uintptr) { // fails where the command has closed its end
		_ = kernel.IgnoringEINTR(func() error { return unix.Send(int(fd), d.data, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL) })
	})
	return true
}

// dequeue needs the lock.
func (l *lookup) dequeue() datagram {
	d := l.queue[0]
	l.queue, l.queued = l.queue[1:], l.queued-d.cost()
	allQueued.Add(-int64(d.cost()))
	return d
}

// awaitTaken waits until the command has received what was handed over; false means that
// it never will.
func (l *lookup) awaitTaken() bool {
	const tellsEarly = 1 // the kernel wakes us before it has subtracted the last byte
	err := l.conn.Write(func(fd uintptr) bool {
		left, err := unix.IoctlGetInt(int(fd), unix.TIOCOUTQ)
		return err != nil || left <= tellsEarly
	})
	return err == nil
}

// receive takes what the command would receive next, and says whom it is from. end is
// the command's end. The size is that of the datagram, of which some may be cut off.
func (l *lookup) receive(end int, b []byte, flags int) (size int, from []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	flags = flags&unix.MSG_PEEK | unix.MSG_DONTWAIT | unix.MSG_TRUNC
	err = kernel.IgnoringEINTR(func() (err error) { size, _, err = unix.Recvfrom(end, b, flags); return err })
	return size, l.from, err
}

// bind gives a socket an address of the session's own.
func (ls *Lookups) bind(l *lookup, at netip.AddrPort) unix.Errno {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.local.IsValid() || l.over {
		return unix.EINVAL
	}
	port := at.Port()
	for i := 0; at.Port() == 0 && i < portCount; i++ {
		port = uint16(firstPort + (l.ino+uint64(i))%portCount)
		if len(ls.Ports[port]) == 0 {
			break
		}
	}
	if slices.ContainsFunc(ls.Ports[port], func(o *lookup) bool { return at.Port() == 0 || o.local.Addr() == at.Addr() }) {
		return unix.EADDRINUSE
	}
	l.local = netip.AddrPortFrom(at.Addr(), port)
	ls.Ports[port] = append(ls.Ports[port], l)
	return 0
}

// release takes a socket's address from it.
func (ls *Lookups) release(l *lookup) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(ls.byIno, l.ino)
	port := l.local.Port()
	ls.Ports[port] = slices.DeleteFunc(ls.Ports[port], func(o *lookup) bool { return o == l })
	if len(ls.Ports[port]) == 0 {
		delete(ls.Ports, port)
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

// at finds the socket that has an address of loopback: one that has this very address
// before one that has any.
func (ls *Lookups) at(to netip.AddrPort) *lookup {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var found *lookup
	for _, l := range ls.Ports[to.Port()] {
		switch ip := l.local.Addr(); {
		case ip == to.Addr():
			return l
		case ip.IsUnspecified() && (ip.Is4() == to.Addr().Is4() || ip.Is6() && found == nil):
			found = l
		}
	}
	return found
}

// forward has a datagram delivered to another socket of the session, if one is there and
// takes it from this.
func (l *lookup) forward(to netip.AddrPort, data []byte) {
	target := l.of.at(to)
	if target == nil {
		return
	}
	from := l.sendsFrom(to.Addr())
	if only := target.connected(); only.IsValid() && only != from {
		return
	}
	target.deliver(datagram{from: InetAddress(target.domain, from), data: data})
}

// sendsFrom is the address that a receiver finds.
func (l *lookup) sendsFrom(to netip.Addr) netip.AddrPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.local.Addr().IsUnspecified() {
		return l.local
	}
	return netip.AddrPortFrom(loopbackLike(to), l.local.Port())
}

// connected is the only one whose datagrams a socket takes; not valid for all.
func (l *lookup) connected() netip.AddrPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peer
}

func loopbackLike(ip netip.Addr) netip.Addr {
	if ip.Unmap().Is4() {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.IPv6Loopback()
}
