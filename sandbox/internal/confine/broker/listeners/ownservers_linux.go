//go:build amd64 || arm64

package listeners

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/netlink"
)

// servers are the addresses on which this program listens. No command may
// connect to them, also where the network is open.
var servers ownServers

type ownServers struct {
	mu    sync.Mutex
	ports map[uint16]int  // how many listeners have it
	files []policy.FileID // Unix sockets
}

// Own keeps commands from connecting to the address of a listener of this
// program, until forget is called.
func Own(at net.Addr) (forget func()) {
	s := &servers
	s.mu.Lock()
	defer s.mu.Unlock()
	undo := func() {}
	switch at := at.(type) {
	case *net.TCPAddr:
		if s.ports == nil {
			s.ports = map[uint16]int{}
		}
		port := uint16(at.Port)
		s.ports[port]++
		undo = func() { s.ports[port]-- }
	case *net.UnixAddr:
		var st unix.Stat_t
		if unix.Stat(at.Name, &st) == nil {
			id := policy.FileID{Dev: st.Dev, Ino: st.Ino}
			s.files = append(s.files, id)
			undo = func() { s.files = slices.DeleteFunc(s.files, func(f policy.FileID) bool { return f == id }) }
		}
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		undo()
	})
}

// Owns reports whether a connection to an address could come to one of the
// listeners that Own was told.
func Owns(to netip.AddrPort) bool {
	domain := unix.AF_INET6
	if to.Addr().Unmap().Is4() {
		domain = unix.AF_INET
	}
	return servers.at(kernel.InetAddress(domain, to))
}

// OwnsAddress is Owns for a socket address in the kernel's form.
func OwnsAddress(raw []byte) bool { return servers.at(raw) }

// at reports whether a connection to a socket address could come to one of them.
func (s *ownServers) at(raw []byte) bool {
	to, ok := kernel.ParseInet(raw)
	if !ok {
		return false
	}
	ip := to.Addr().Unmap()
	return s.has(to.Port()) && (ip.IsLoopback() || ip.IsUnspecified() || isLocal(raw))
}

// has reports whether one of them has a port.
func (s *ownServers) has(port uint16) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ports[port] > 0
}

// isLocal reports whether an address is one of this machine, whose routes know: they
// can make whole networks its own, of whose addresses no interface has one. Where
// routes do not tell, it is one to which one can bind.
func isLocal(raw []byte) bool {
	to, ok := kernel.ParseInet(raw)
	if !ok {
		return false
	}
	link := uint32(0)
	if len(raw) >= unix.SizeofSockaddrInet6 && to.Addr().IsLinkLocalUnicast() { // which several links can have; of others the kernel ignores it
		link = binary.NativeEndian.Uint32(raw[24:])
	}
	switch kind, err := netlink.RouteKind(to.Addr().Unmap(), link); {
	case err == nil:
		return kind == unix.RTN_LOCAL || kind == unix.RTN_ANYCAST || kind == unix.RTN_BROADCAST
	case err == unix.ENETUNREACH || err == unix.EHOSTUNREACH:
		return false
	}
	sock, err := unix.Socket(int(binary.NativeEndian.Uint16(raw)), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(sock)
	anyPort := slices.Clone(raw)
	anyPort[2], anyPort[3] = 0, 0
	return kernel.Bind(sock, anyPort) == nil
}

// OwnsFile reports whether an opened Unix socket is that of such a listener.
func OwnsFile(fd int) bool {
	s := &servers
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.files, policy.FileID{Dev: st.Dev, Ino: st.Ino})
}
