//go:build amd64 || arm64

package confine

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// pair gives the asker, for a pair of Unix datagram sockets, one that keeps messages
// apart, too, but is bound to stay a pair: an end of the former can send to any socket of
// the machine.
func (q *question) pair() answer {
	kind := q.arg(1)
	made, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|kind&unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return failed(err)
	}
	defer unix.Close(made[0])
	defer unix.Close(made[1])
	var given []byte
	for _, fd := range made {
		a := q.give(fd, kind&unix.SOCK_CLOEXEC)
		if a.err != 0 {
			return a // what was given before stays open, as nobody can close it
		}
		given = binary.NativeEndian.AppendUint32(given, uint32(a.val))
	}
	if !q.write(q.args[3], given) {
		return fail(unix.EFAULT)
	}
	return answer{}
}
