//go:build amd64 || arm64

package listeners

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// TCP are the sockets on which the session listens. A socket is known
// by its cookie, which the kernel never gives twice, so an entry that outlived
// its socket admits nobody.
type TCP struct {
	mu     sync.Mutex
	byPort map[uint16]map[uint64]bool // port -> cookies
	held   atomic.Int32               // how many of them the broker holds too
	turn   sync.Mutex                 // of those who ask whether a port is taken, and then listen
}

// IsTaken is taken for who does not listen yet.
func (l *TCP) IsTaken(port uint16) bool {
	l.turn.Lock()
	defer l.turn.Unlock()
	return l.Taken(port)
}

// Taken reports whether somebody outside the session listens on a port of this
// machine, by any of its loopback addresses: a client who means that one by the name
// localhost would come to the session's, which has another.
func (l *TCP) Taken(port uint16) bool {
	return port != 0 && (servers.has(port) || slices.ContainsFunc(listening(port), func(s tcpListener) bool {
		ip := s.at.Unmap()
		return (ip.IsLoopback() || ip.IsUnspecified()) && !l.has(port, s.cookie)
	}))
}

func (l *TCP) Add(sock int) {
	at, ok := kernel.LocalAddress(sock)
	cookie, err := unix.GetsockoptUint64(sock, unix.SOL_SOCKET, unix.SO_COOKIE)
	if !ok || err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byPort == nil {
		l.byPort = map[uint16]map[uint64]bool{}
	}
	if l.byPort[at.Port()] == nil {
		l.byPort[at.Port()] = map[uint64]bool{}
	}
	mine := l.byPort[at.Port()]
	if len(mine) >= fewNames { // most have been closed
		alive := map[uint64]bool{}
		for _, s := range listening(at.Port()) {
			alive[s.cookie] = true
		}
		maps.DeleteFunc(mine, func(cookie uint64, _ bool) bool { return !alive[cookie] })
	}
	mine[cookie] = true
}

// InTurn waits for the turn of who asks whether a port is taken, and then listens.
func (l *TCP) InTurn() (done func()) {
	l.turn.Lock()
	return l.turn.Unlock
}

// AreHeld reports whether the broker holds any of them.
func (l *TCP) AreHeld() bool { return l.held.Load() > 0 }

// Find looks for who listens on port at ip (loopback or unspecified) and can be
// reached from a socket of the domain: at is the address to connect to when it
// is the session's own, others says that somebody else's is there.
func (l *TCP) Find(port uint16, ip netip.Addr, domain int) (at netip.Addr, ours, others bool) {
	now := listening(port)
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := l.byPort[port]
	alive := map[uint64]bool{}
	for _, s := range now {
		own := mine[s.cookie]
		if own {
			alive[s.cookie] = true
		}
		there := s.at.Unmap()
		exact := there == ip || there.IsUnspecified()
		switch {
		case !own && exact:
			others = true
		case own && (there.Is4() || domain == unix.AF_INET6) && (!ours || exact):
			at, ours = there, true
		}
	}
	if len(alive) == 0 {
		delete(l.byPort, port)
	} else {
		l.byPort[port] = alive
	}
	return at, ours && !others, others
}

// A tcpListener is a listening TCP socket of the machine.
type tcpListener struct {
	at     netip.Addr
	cookie uint64
	inode  uint64
}

// diagRequest is struct nlmsghdr with struct inet_diag_req_v2.
type diagRequest struct {
	unix.NlMsghdr
	family, protocol, ext, pad uint8
	states                     uint32
	sport, dport               [2]byte
	src, dst                   [16]byte
	iface                      uint32
	cookie                     [2]uint32
}

// The states of a TCP socket that matter here.
const (
	StateSynSent = 2
	StateClose   = 7 // neither connected nor listening
	stateListen  = 10
)

const (
	diagByFamily = 20 // SOCK_DIAG_BY_FAMILY
	diagMsgSize  = 72 // struct inet_diag_msg
)

// listening asks the kernel who listens on a TCP port.
func listening(port uint16) []tcpListener {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil
	}
	defer unix.Close(s)
	var out []tcpListener
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		r := diagRequest{family: family, protocol: unix.IPPROTO_TCP, states: 1 << stateListen}
		r.NlMsghdr = unix.NlMsghdr{Len: uint32(unsafe.Sizeof(r)), Type: diagByFamily,
			Flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP}
		binary.BigEndian.PutUint16(r.sport[:], port)
		b := (*[unsafe.Sizeof(r)]byte)(unsafe.Pointer(&r))
		if unix.Sendto(s, b[:], 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
			return nil
		}
		out = append(out, readListeners(s, port)...)
	}
	return out
}

func readListeners(s int, port uint16) (out []tcpListener) {
	buf := make([]byte, 32<<10)
	for {
		n, _, err := unix.Recvfrom(s, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return out
		}
		for b := buf[:n]; len(b) >= unix.NLMSG_HDRLEN; {
			size := int(binary.NativeEndian.Uint32(b))
			kind := binary.NativeEndian.Uint16(b[4:])
			if kind == unix.NLMSG_DONE || kind == unix.NLMSG_ERROR || size < unix.NLMSG_HDRLEN || size > len(b) {
				return out
			}
			if m := b[unix.NLMSG_HDRLEN:size]; len(m) >= diagMsgSize && binary.BigEndian.Uint16(m[4:]) == port {
				out = append(out, parseListener(m))
			}
			b = b[min((size+3)&^3, len(b)):]
		}
	}
}

// parseListener reads a struct inet_diag_msg.
func parseListener(m []byte) tcpListener {
	l := tcpListener{cookie: uint64(binary.NativeEndian.Uint32(m[44:])) | uint64(binary.NativeEndian.Uint32(m[48:]))<<32,
		inode: uint64(binary.NativeEndian.Uint32(m[68:]))}
	if m[0] == unix.AF_INET {
		l.at = netip.AddrFrom4([4]byte(m[8:12]))
	} else {
		l.at = netip.AddrFrom16([16]byte(m[8:24]))
	}
	return l
}
