//go:build amd64 || arm64

package broker

import (
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/seccomp"
	"golang.org/x/sys/unix"
)

// setOption comes here for these. A datagram socket accepts them all,
// because programs insist, and heeds none. For others it is what the filter says.
func (q *Question) setOption() Answer {
	if q.lookupOf(q.Arg(0)) != nil {
		return Answer{}
	}
	at, option := uint32(q.args[1]), uint32(q.args[2])
	if seccomp.IsSettable(at, option) {
		return Answer{Run: true}
	}
	return Fail(unix.ENOPROTOOPT)
}

// steered reports whether a socket would not send to where its address says. The
// filter keeps commands from making one; this is what the broker sees for itself.
func steered(sock int) bool {
	for _, l := range steering {
		for _, option := range l.Options {
			if isSet(sock, l.Level, option) {
				return true
			}
		}
	}
	return false
}

// isSet reports whether an option has a value other than nothing.
func isSet(sock int, level, option uint32) bool {
	var value [256]byte
	size := uint32(len(value))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(sock), uintptr(level), uintptr(option),
		uintptr(unsafe.Pointer(&value)), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return false
	}
	for _, b := range value[:size] {
		if b != 0 {
			return true
		}
	}
	return false
}

// steering are the options that send packets elsewhere than their address says.
var steering = []seccomp.Level{
	{Level: unix.SOL_SOCKET, Options: []uint32{unix.SO_BINDTODEVICE, unix.SO_BINDTOIFINDEX, unix.SO_MARK, unix.SO_DONTROUTE}},
	{Level: unix.IPPROTO_IP, Options: []uint32{unix.IP_OPTIONS, unix.IP_UNICAST_IF}},
	{Level: unix.IPPROTO_IPV6, Options: []uint32{
		unix.IPV6_RTHDR, unix.IPV6_HOPOPTS, unix.IPV6_DSTOPTS, unix.IPV6_RTHDRDSTOPTS, unix.IPV6_PKTINFO,
		unix.IPV6_2292PKTOPTIONS, unix.IPV6_UNICAST_IF}},
}
