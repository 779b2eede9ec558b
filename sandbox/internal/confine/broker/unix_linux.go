//go:build amd64 || arm64

package broker

import (
	"bytes"
	"encoding/binary"
	"os"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker/listeners"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// bindUnix gives a Unix socket its name. A path is Landlock's to judge, as the
// making of a file. Should the asker swap the socket meanwhile for one of the
// network's, Landlock refuses that too, or listen does.
func (q *Question) bindUnix(sock int, raw []byte) Answer {
	if len(raw) > 2 && raw[2] != 0 {
		return Answer{Run: true}
	}
	return failed(kernel.Bind(sock, raw)) // abstract
}

// connectUnix connects to sockets below writable roots, and to abstract ones on
// which the session listens.
func (q *Question) connectUnix(sock int, raw []byte) Answer {
	c := q.broker.session
	name := raw[2:]
	if len(name) == 0 {
		return Fail(unix.EINVAL)
	}
	if name[0] == 0 {
		who := listeners.Name{Type: kernel.SocketType(sock), Text: string(name)}
		q.still = func() bool { return c.names.Has(who) } // the name may have become another's
		ours := q.still()
		if ours {
			err := q.rawConnect(sock, raw)
			if ours = err != nil || listensForUs(sock) && q.still(); ours {
				return failed(err)
			}
			_ = unix.Shutdown(sock, unix.SHUT_RDWR)
		}
		return q.refuse(unix.ECONNREFUSED, "connect to the abstract socket @"+string(name[1:]), "")
	}
	target := q.opened(q.openPath(unix.AT_FDCWD, cString(name), true))
	if target.e != 0 {
		return Fail(target.e)
	}
	if a := q.outOfReach(target, "connect to"); a.err != 0 {
		unix.Close(target.fd)
		return a
	}
	return q.change(target, "connect to", func() error {
		return q.rawConnect(sock, unixAddress(kernel.FdPath(target.fd)))
	})
}

// outOfReach refuses what an opened socket's place forbids.
func (q *Question) outOfReach(target object, verb string) Answer {
	switch {
	case listeners.OwnsFile(target.fd):
		return q.refuse(unix.EACCES, verb+" "+target.path+", where the server that runs the commands listens", "")
	case onReadOnly(target.fd), !q.broker.session.writable(target.path): // whoever made it is not of the session
		return q.refuse(unix.EACCES, verb+" "+target.path, "--allow-write "+target.path)
	}
	return Answer{}
}

// onReadOnly reports whether a file is where nobody who sees it there can write.
func onReadOnly(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0
}

// listensForUs reports whether the other side of a connected socket listened by the
// broker, as all that the session listens with do.
func listensForUs(sock int) bool {
	peer, err := unix.GetsockoptUcred(sock, unix.SOL_SOCKET, unix.SO_PEERCRED)
	return err == nil && int(peer.Pid) == os.Getpid()
}

func cString(b []byte) string {
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return string(b)
}

// unixAddress writes a struct sockaddr_un.
func unixAddress(path string) []byte {
	return append([]byte{unix.AF_UNIX, 0}, path+"\x00"...)
}

// pair gives the asker, for a pair of Unix datagram sockets, one that keeps messages
// apart, too, but is bound to stay a pair: an end of the former can send to any socket of
// the machine.
func (q *Question) pair() Answer {
	kind := q.Arg(1)
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
	if !q.writeAll([]patch{{q.args[3], given}}) {
		return Fail(unix.EFAULT)
	}
	return Answer{}
}
