//go:build amd64 || arm64

package kernel

import (
	"fmt"
	"os"
	"strconv"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"golang.org/x/sys/unix"
)

// Bind binds a socket to an address in the kernel's form.
func Bind(sock int, raw []byte) error { return SockaddrCall(unix.SYS_BIND, sock, raw) }

// DomainOf is the address family of a socket.
func DomainOf(sock int) int { return SocketOption(sock, unix.SO_DOMAIN) }

// SocketType is the type of a socket.
func SocketType(sock int) int { return SocketOption(sock, unix.SO_TYPE) }

// SocketOption is the value of an option of a socket, -1 for what cannot be had.
func SocketOption(sock, name int) int {
	v, err := unix.GetsockoptInt(sock, unix.SOL_SOCKET, name)
	if err != nil {
		return -1
	}
	return v
}

// SocketInode is the inode of the socket that an entry of /proc/PID/fd leads to: EBADF where
// there is none, ENOTSOCK for what is no socket.
func SocketInode(entry string) (ino uint64, e unix.Errno) {
	target, err := os.Readlink(entry)
	if err != nil {
		return 0, unix.EBADF
	}
	if _, err := fmt.Sscanf(target, "socket:[%d]", &ino); err != nil {
		return 0, unix.ENOTSOCK
	}
	return ino, 0
}

// A HeldSocket is a socket that a process has open, and as which descriptor.
type HeldSocket struct {
	PID, Num int
	Inode    uint64
}

// SocketsOfOthers are those of all processes that can be looked at but this one.
func SocketsOfOthers(yield func(HeldSocket) bool) {
	for _, p := range proc.All() {
		if p.PID == os.Getpid() {
			continue
		}
		fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID))
		for _, fd := range fds {
			ino, e := SocketInode(fmt.Sprintf("/proc/%d/fd/%s", p.PID, fd.Name()))
			num, err := strconv.Atoi(fd.Name())
			if e == 0 && err == nil && !yield(HeldSocket{p.PID, num, ino}) {
				return
			}
		}
	}
}
