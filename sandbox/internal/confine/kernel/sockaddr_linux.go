//go:build amd64 || arm64

package kernel

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// NamePort is where programs ask for names.
const NamePort = 53

// Disconnect undoes a connect; what it leaves as the socket's error is read away.
func Disconnect(sock int) {
	_ = ConnectOnce(sock, make([]byte, unix.SizeofSockaddrInet4)) // AF_UNSPEC
	_, _ = unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_ERROR)
}

// ConnectOnce connects a socket to an address in the kernel's form.
func ConnectOnce(sock int, raw []byte) error {
	return IgnoringEINTR(func() error { return SockaddrCall(unix.SYS_CONNECT, sock, raw) })
}

// SockaddrCall makes a system call that takes a socket and an address in the kernel's form.
func SockaddrCall(nr uintptr, sock int, raw []byte) error {
	if _, _, e := unix.Syscall(nr, uintptr(sock), uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw))); e != 0 {
		return e
	}
	return nil
}
