//go:build amd64 || arm64

package gateway

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// RaiseLoopback starts the only interface that a new network namespace has.
func RaiseLoopback() error {
	sock, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(sock)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	err = unix.IoctlIfreq(sock, unix.SIOCSIFFLAGS, req)
	if err == unix.ENOTTY { // gVisor knows no such call: there it is up from the start
		return tryLoopback()
	}
	return err
}

// tryLoopback connects to itself.
func tryLoopback() error {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	conn, err := net.DialTimeout("tcp4", listener.Addr().String(), time.Second)
	if err == nil {
		conn.Close()
	}
	return err
}
