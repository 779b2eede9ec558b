//go:build amd64 || arm64

package seccomp

import "golang.org/x/sys/unix"

// terminalClauses send what may be the opening of a terminal to the broker: for
// reading and writing and nothing else, or expressly not as controlling terminal. Compilers
// open each file that they read so, and wait for it: those are no terminals.
func terminalClauses(flags int) []clause {
	return []clause{
		{when: []cond{{arg: flags, mask: ^uint32(unix.O_CLOEXEC | largeFile), val: unix.O_RDWR}}, then: retNotify},
		{when: []cond{{arg: flags, mask: unix.O_NOCTTY, any: true}, {arg: flags, mask: unix.O_CREAT, any: true, not: true},
			{arg: flags, mask: unix.O_ACCMODE | unix.O_NONBLOCK, any: true}}, then: retNotify},
	}
}

// largeFile is what a C library may add to the flags of an open: the bit on one
// architecture, and on the other.
const largeFile = 0x8000 | 0x20000
