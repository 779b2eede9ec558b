package proc

import "golang.org/x/sys/unix"

// The calls that other architectures have not.
const (
	selectCall = unix.SYS_SELECT
	pollCall   = unix.SYS_POLL
	epollWait  = unix.SYS_EPOLL_WAIT
)
