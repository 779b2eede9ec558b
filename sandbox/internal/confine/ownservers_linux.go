//go:build amd64 || arm64

package confine

import (
	"net"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// servers are the addresses on which this program listens. No command may
// connect to them, also where the network is open.
var servers ownServers

type ownServers struct {
	mu    sync.Mutex
	ports map[uint16]int // how many listeners have it
	files []fileID       // Unix sockets
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
			id := fileID{st.Dev, st.Ino}
			s.files = append(s.files, id)
			undo = func() { s.files = slices.DeleteFunc(s.files, func(f fileID) bool { return f == id }) }
		}
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		undo()
	})
}

// at reports whether a connection to a socket address could come to one of them.
func (s *ownServers) at(raw []byte) bool {
	to, ok := parseInet(raw)
	if !ok {
		return false
	}
	s.mu.Lock()
	has := s.ports[to.Port()] > 0
	s.mu.Unlock()
	ip := to.Addr().Unmap()
	return has && (ip.IsLoopback() || ip.IsUnspecified() || isLocal(raw))
}

// isLocal reports whether an address is one of this machine, to which one can bind.
func isLocal(raw []byte) bool {
	sock, err := unix.Socket(int(raw[0])|int(raw[1])<<8, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(sock)
	anyPort := slices.Clone(raw)
	anyPort[2], anyPort[3] = 0, 0
	return rawBind(sock, anyPort) == nil
}

// isFile reports whether an opened Unix socket is one of them.
func (s *ownServers) isFile(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.files, fileID{st.Dev, st.Ino})
}
