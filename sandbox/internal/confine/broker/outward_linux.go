//go:build amd64 || arm64

package broker

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker/listeners"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// A Gate is what a [network.Gate] does for the broker.
type Gate interface {
	Admit(to netip.AddrPort) network.Verdict
	Answer(ctx context.Context, query []byte, size int) []byte
	RefuseDatagram(to netip.AddrPort)
	Reached(addr netip.Addr) bool
}

// connectOutward connects a TCP socket to where the gate lets it, and to the session's
// own servers.
func (q *Question) connectOutward(sock int, raw []byte) Answer {
	c := q.broker.session
	to, ok := kernel.ParseInet(raw)
	if !ok {
		return Fail(unix.EINVAL)
	}
	domain := kernel.DomainOf(sock)
	if is4 := to.Addr().Is4(); is4 != (domain == unix.AF_INET) {
		return Fail(unix.EAFNOSUPPORT)
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	inside := to.Addr().IsLoopback() || to.Addr().IsUnspecified()
	if to.Port() == kernel.NamePort {
		if _, ours, _ := c.ports.Find(kernel.NamePort, to.Addr(), domain); !inside || !ours {
			return q.connectNames(sock, raw)
		}
	}
	if inside {
		return q.connectLoopback(sock, raw)
	}
	if kernel.SocketType(sock) != unix.SOCK_STREAM || kernel.SocketOption(sock, unix.SO_PROTOCOL) != unix.IPPROTO_TCP || steered(sock) {
		return q.refuse(unix.EACCES, "connect by a socket that does not send to the address it is given", "")
	}
	raw = kernel.InetAddress(domain, to) // without what else was in it
	if listeners.OwnsAddress(raw) {
		return q.refuse(unix.EACCES, "connect to "+to.String()+", where the server that runs the commands listens", "")
	}
	// What began before is asked about again, and not a connection more.
	if q.admitted != to && !c.gate.Admit(to).Allowed {
		return Fail(unix.ENETUNREACH)
	}
	q.admitted = to
	return failed(q.rawConnect(sock, raw))
}

// connectNames gives the asker, in the place of a TCP socket that it connects to a
// server of names, one end of a connection to this one.
func (q *Question) connectNames(sock int, raw []byte) Answer {
	switch listeners.TCPState(sock) {
	case listeners.StateClose:
	case listeners.StateSynSent:
		return Fail(unix.EALREADY)
	default:
		return Fail(unix.EISCONN)
	}
	flags, ok := q.flagsOf(q.Arg(0))
	if !ok {
		return Fail(unix.EBADF)
	}
	theirs, _, e := q.lookupEnd(unix.SOCK_STREAM, kernel.DomainOf(sock), raw)
	if e != 0 {
		return Fail(e)
	}
	defer unix.Close(theirs)
	_ = unix.SetNonblock(theirs, flags&unix.O_NONBLOCK != 0)
	for _, limit := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if t, err := unix.GetsockoptTimeval(sock, unix.SOL_SOCKET, limit); err == nil {
			_ = unix.SetsockoptTimeval(theirs, unix.SOL_SOCKET, limit, t)
		}
	}
	a := addFD{id: q.id, src: uint32(theirs), flags: unix.SECCOMP_ADDFD_FLAG_SETFD, num: uint32(q.Arg(0)), newFlags: uint32(flags & unix.O_CLOEXEC)}
	_, e = q.broker.controlValue(ioctlAddFD, unsafe.Pointer(&a))
	return Fail(e)
}

// flagsOf reads the flags of a descriptor of the asker and of what it refers to.
func (q *Question) flagsOf(fd int) (flags int, ok bool) {
	text, err := os.ReadFile(q.inProc("fdinfo/%d", fd))
	if err != nil || !q.valid() {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "flags: %o", &flags); err == nil {
			return flags, true
		}
	}
	return 0, false
}
