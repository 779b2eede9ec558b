//go:build amd64 || arm64

package broker

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// restart is the error by which the kernel itself ends a call for a signal: it calls
// anew after the handler, or returns EINTR, as the program has asked for.
const restart = unix.Errno(512) // ERESTARTSYS

// interruption is the error with which a call that waits has to end for a signal, 0 for
// none. While a question is at hand, the kernel has signals wait that do not kill, and
// behind one that waits even such as would.
func (q *Question) interruption() unix.Errno {
	text, err := os.ReadFile(q.inProc("status"))
	if err != nil || !q.valid() {
		return unix.EINTR
	}
	return interruptionOf(string(text))
}

func interruptionOf(status string) unix.Errno {
	var own, shared, blocked, threads uint64
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		base, to := 16, (*uint64)(nil)
		switch name {
		case "SigPnd":
			to = &own
		case "ShdPnd":
			to = &shared
		case "SigBlk":
			to = &blocked
		case "Threads":
			base, to = 10, &threads
		default:
			continue
		}
		*to, _ = strconv.ParseUint(strings.TrimSpace(value), base, 64)
	}
	switch {
	case (own|shared)&^blocked == 0:
		return 0
	case threads == 1:
		return restart
	}
	return unix.EINTR // another thread may take it, and to this the kernel's error would be one of its own
}
