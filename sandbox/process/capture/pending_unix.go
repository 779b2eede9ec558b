//go:build unix

package capture

import (
	"os"

	"golang.org/x/sys/unix"
)

// Pending says whether the pipe holds bytes that nobody has read yet.
func Pending(pipe *os.File) (some bool) {
	conn, err := pipe.SyscallConn()
	if err != nil {
		return false
	}
	_ = conn.Control(func(fd uintptr) {
		at := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(at, 0)
		some = err == nil && n == 1 && at[0].Revents&unix.POLLIN != 0
	})
	return some
}
