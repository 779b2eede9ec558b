//go:build amd64 || arm64

package kernel

import (
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
