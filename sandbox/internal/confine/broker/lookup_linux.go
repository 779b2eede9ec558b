//go:build amd64 || arm64

package broker

import (
	"encoding/binary"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker/datagrams"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// A UDP socket sends wherever each message says, in memory that a command can change
// after the broker has looked. So unless the network is open a command gets in its place
// one end of a pair of Unix sockets that keep messages apart: the kernel ignores the
// addresses of what is sent by these, and the server reads it all. Questions for names it
// answers, what is for other sockets of the session it delivers, and the rest goes nowhere.
// See package datagrams.

// lookupOf returns what a descriptor of the asker is a socket for names of, or nil.
func (q *Question) lookupOf(fd int) *datagrams.Socket {
	ls := q.broker.session.Datagrams
	if ls == nil || ls.None() {
		return nil
	}
	ino, e := kernel.SocketInode(q.inProc("fd/%d", fd))
	if e != 0 || !q.valid() {
		return nil
	}
	return ls.Find(ino)
}

// openLookup makes a socket for names; of the flags some are the descriptor's.
func (q *Question) openLookup(domain, flags int) Answer {
	theirs, l, e := q.lookupEnd(unix.SOCK_SEQPACKET, domain, nil)
	if e != 0 {
		return Fail(e)
	}
	defer unix.Close(theirs)
	defer l.HandOut()
	_ = unix.SetNonblock(theirs, flags&unix.SOCK_NONBLOCK != 0)
	if !q.broker.session.Kernel.GetFD {
		l.Keep(theirs)
	}
	return q.give(theirs, flags&unix.SOCK_CLOEXEC)
}

// lookupEnd makes the end that the asker gets, when a few more have been closed
// where there are too many.
func (q *Question) lookupEnd(kind, domain int, server []byte) (theirs int, l *datagrams.Socket, e unix.Errno) {
	ls := q.broker.session.Datagrams
	had := ls.Take()
	if !had {
		ls.Sweep()
		q.rest(func() { had = ls.TakeWithin(time.Second) })
	}
	if !had {
		return -1, nil, unix.EMFILE
	}
	theirs, l, err := ls.Open(kind, domain, server)
	if err != nil {
		ls.Give()
		return -1, nil, kernel.AsErrno(err)
	}
	return theirs, l, 0
}

// ownName and peerName answer for a socket for names as one of the network would:
// programs that know only those stop at another family.
func (q *Question) ownName() Answer {
	if l := q.lookupOf(q.Arg(0)); l != nil {
		return q.named(l.OwnAddress())
	}
	q.bindAtLast()
	return Answer{Run: true}
}

func (q *Question) peerName() Answer {
	if l := q.lookupOf(q.Arg(0)); l != nil {
		if _, peer := l.UnixNames(); peer != nil {
			return q.named(peer)
		}
		if peer := l.Connected(); peer.IsValid() {
			return q.named(kernel.InetAddress(l.Domain, peer))
		}
		server := l.Asked()
		if server == nil {
			return Fail(unix.ENOTCONN)
		}
		return q.named(server)
	}
	return Answer{Run: true}
}

// named gives the asker an address, as far as it has room.
func (q *Question) named(raw []byte) Answer {
	var room [4]byte
	if !q.read(q.args[2], room[:]) {
		return Fail(unix.EFAULT)
	}
	has := int32(binary.NativeEndian.Uint32(room[:]))
	if has < 0 {
		return Fail(unix.EINVAL)
	}
	binary.NativeEndian.PutUint32(room[:], uint32(len(raw)))
	if !q.writeAll([]patch{{q.args[1], raw[:min(len(raw), int(has))]}, {q.args[2], room[:]}}) {
		return Fail(unix.EFAULT)
	}
	return Answer{}
}
