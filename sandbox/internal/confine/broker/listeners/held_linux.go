//go:build amd64 || arm64

package listeners

import (
	"fmt"
	"net/netip"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// A Held is a listening socket of the session, which we hold as well.
type Held struct {
	of       *TCP
	fd       int // ours; -1 where sockets of others cannot be had
	cookie   uint64
	ino      uint64
	pid, num int // a process that has it, and as what
}

// Hold holds what the session listens with at an address; without sockets of others,
// which not all kernels let us have, it only says whose it is.
func (ls *TCP) Hold(at netip.AddrPort, hasSockets bool) (l *Held, ok bool) {
	l = &Held{fd: -1, of: ls}
	for _, s := range listening(at.Port()) {
		if ls.has(at.Port(), s.cookie) && s.at.Unmap() == at.Addr() {
			l.cookie, l.ino = s.cookie, s.inode
		}
	}
	if l.cookie == 0 {
		return nil, false
	}
	if !hasSockets {
		return l, true
	}
	ls.held.Add(1)
	if l.Owned() {
		l.fd = l.take()
	}
	if l.fd < 0 {
		l.Release()
		return nil, false
	}
	return l, true
}

// take duplicates the socket from the process that has it.
func (l *Held) take() int {
	pidfd, err := unix.PidfdOpen(l.pid, 0)
	if err != nil {
		return -1
	}
	defer unix.Close(pidfd)
	fd, err := unix.PidfdGetfd(pidfd, l.num, 0)
	if err != nil {
		return -1
	}
	if cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE); err != nil || cookie != l.cookie {
		unix.Close(fd)
		return -1
	}
	return fd
}

// Release lets go of it.
func (l *Held) Release() {
	if l.fd >= 0 {
		unix.Close(l.fd)
	}
	l.of.held.Add(-1)
}

// Owned reports whether it listens still, and not for us alone.
func (l *Held) Owned() bool {
	if l.fd >= 0 && TCPState(l.fd) != stateListen {
		return false
	}
	if ino, e := kernel.SocketInode(fmt.Sprintf("/proc/%d/fd/%d", l.pid, l.num)); e == 0 && ino == l.ino {
		return true
	}
	for other := range kernel.SocketsOfOthers {
		if other.Inode == l.ino {
			l.pid, l.num = other.PID, other.Num
			return true
		}
	}
	return false
}

// IsHeld reports whether it is held, and not only looked at.
func (l *Held) IsHeld() bool { return l.fd >= 0 }

// TCPState is the state of a TCP socket, 0 for none.
func TCPState(sock int) uint8 {
	info, err := unix.GetsockoptTCPInfo(sock, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0
	}
	return info.State
}

// has reports whether the session listens with a socket.
func (l *TCP) has(port uint16, cookie uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byPort[port][cookie]
}
