//go:build unix

package capture

import (
	"os"
	"syscall"
)

// Drain hands over what comes through f until its end. It waits before it
// takes a buffer, so a silent stream costs no memory.
func Drain(f *os.File, to *Stream) {
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	for done := false; !done && err == nil; {
		err = conn.Read(func(fd uintptr) bool {
			buf := buffers.Get().(*[]byte)
			defer buffers.Put(buf)
			n, err := syscall.Read(int(fd), *buf)
			switch {
			case err == syscall.EINTR:
			case err == syscall.EAGAIN:
				return false
			case n <= 0:
				done = true
			default:
				_, _ = to.Write((*buf)[:n])
			}
			return true
		})
	}
}
