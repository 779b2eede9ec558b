//go:build amd64 || arm64

package confine

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// A gate is what a [network.Gate] does for the broker.
type gate interface {
	Admit(to netip.AddrPort) network.Verdict
	Answer(ctx context.Context, query []byte, size int) []byte
	RefuseDatagram(to netip.AddrPort)
	Reached(addr netip.Addr) bool
}

// connectOutward connects a TCP socket to where the gate lets it, and to the session's
// own servers.
func (q *question) connectOutward(sock int, raw []byte) answer {
	c := q.broker.session
	to, ok := parseInet(raw)
	if !ok {
		return fail(unix.EINVAL)
	}
	domain := domainOf(sock)
	if is4 := to.Addr().Is4(); is4 != (domain == unix.AF_INET) {
		return fail(unix.EAFNOSUPPORT)
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	inside := to.Addr().IsLoopback() || to.Addr().IsUnspecified()
	if to.Port() == namePort {
		if _, ours, _ := c.ports.find(namePort, to.Addr(), domain); !inside || !ours {
			return q.connectNames(sock, raw)
		}
	}
	if inside {
		return q.connectLoopback(sock, raw)
	}
	if socketType(sock) != unix.SOCK_STREAM || socketOption(sock, unix.SO_PROTOCOL) != unix.IPPROTO_TCP || steered(sock) {
		return q.refuse(unix.EACCES, "connect by a socket that does not send to the address it is given", "")
	}
	raw = inetAddress(domain, to) // without what else was in it
	if servers.at(raw) {
		return q.refuse(unix.EACCES, "connect to "+to.String()+", where the server that runs the commands listens", "")
	}
	// What began before is asked about again, and not a connection more.
	if q.admitted != to && !c.gate.Admit(to).Allowed {
		return fail(unix.ENETUNREACH)
	}
	q.admitted = to
	return failed(q.rawConnect(sock, raw))
}

// connectNames gives the asker, in the place of a TCP socket that it connects to a
// server of names, one end of a connection to this one.
func (q *question) connectNames(sock int, raw []byte) answer {
	switch tcpState(sock) {
	case stateClose:
	case stateSynSent:
		return fail(unix.EALREADY)
	default:
		return fail(unix.EISCONN)
	}
	flags, ok := q.flagsOf(q.arg(0))
	if !ok {
		return fail(unix.EBADF)
	}
	theirs, _, e := q.lookupEnd(unix.SOCK_STREAM, domainOf(sock), raw)
	if e != 0 {
		return fail(e)
	}
	defer unix.Close(theirs)
	_ = unix.SetNonblock(theirs, flags&unix.O_NONBLOCK != 0)
	for _, limit := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if t, err := unix.GetsockoptTimeval(sock, unix.SOL_SOCKET, limit); err == nil {
			_ = unix.SetsockoptTimeval(theirs, unix.SOL_SOCKET, limit, t)
		}
	}
	a := addFD{id: q.id, src: uint32(theirs), flags: unix.SECCOMP_ADDFD_FLAG_SETFD, num: uint32(q.arg(0)), newFlags: uint32(flags & unix.O_CLOEXEC)}
	_, e = q.broker.controlValue(ioctlAddFD, unsafe.Pointer(&a))
	return fail(e)
}

// stateClose is that of a TCP socket which is neither connected nor listens.
const stateClose = 7

// flagsOf reads the flags of a descriptor of the asker and of what it refers to.
func (q *question) flagsOf(fd int) (flags int, ok bool) {
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
