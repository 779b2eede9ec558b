//go:build amd64 || arm64

package confine

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// namePort is where programs ask for names.
const namePort = 53

// disconnect undoes a connect; what it leaves as the socket's error is read away.
func disconnect(sock int) {
	_ = connectOnce(sock, make([]byte, unix.SizeofSockaddrInet4)) // AF_UNSPEC
	_, _ = unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_ERROR)
}

func connectOnce(sock int, raw []byte) error {
	return ignoringEINTR(func() error { return sockaddrCall(unix.SYS_CONNECT, sock, raw) })
}

func sockaddrCall(nr uintptr, sock int, raw []byte) error {
	if _, _, e := unix.Syscall(nr, uintptr(sock), uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw))); e != 0 {
		return e
	}
	return nil
}
