//go:build amd64 || arm64

package broker

import (
	"fmt"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// keptSockets are for places where a child's descriptors cannot be duplicated:
// the broker makes the sockets itself, gives the command a copy, and keeps its
// own until the socket is connected or listens.
type keptSockets struct {
	mu    sync.Mutex
	byIno map[uint64]keptSocket
}

type keptSocket struct {
	fd       int // ours
	tid, num int // the command's
}

// maxKept bounds the sockets kept for one domain.
const maxKept = 256

// addFD is struct seccomp_notif_addfd.
type addFD struct {
	id                        uint64
	flags, src, num, newFlags uint32
}

// make makes a socket and gives the asker a copy.
func (k *keptSockets) make(q *Question, domain, kind, proto int) Answer {
	sock, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return failed(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(sock, &st); err != nil {
		unix.Close(sock)
		return failed(err)
	}
	a := q.give(sock, kind&unix.SOCK_CLOEXEC)
	if a.err != 0 {
		unix.Close(sock)
		return a
	}
	if k.full() {
		k.sweep()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byIno == nil {
		k.byIno = map[uint64]keptSocket{}
	}
	k.byIno[st.Ino] = keptSocket{fd: sock, tid: int(q.tid), num: int(a.val)}
	return a
}

func (k *keptSockets) full() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.byIno) >= maxKept
}

// find duplicates our copy of the asker's socket.
func (k *keptSockets) find(q *Question, fd int) (sock int, release func(bool), e unix.Errno) {
	ino, e := kernel.SocketInode(q.inProc("fd/%d", fd))
	if !q.valid() {
		e = unix.EBADF
	}
	if e != 0 {
		return -1, nil, e
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	own, ok := k.byIno[ino]
	if !ok {
		return -1, nil, unix.EACCES
	}
	sock, err := unix.FcntlInt(uintptr(own.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, nil, unix.EMFILE
	}
	return sock, func(settled bool) {
		unix.Close(sock)
		if settled {
			k.drop(ino)
		}
	}, 0
}

func (k *keptSockets) drop(ino uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s, ok := k.byIno[ino]; ok {
		unix.Close(s.fd)
		delete(k.byIno, ino)
	}
}

// sweep drops the sockets that the commands have closed, or all when they are
// too many, and reports whether there were any.
func (k *keptSockets) sweep() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := len(k.byIno)
	for ino, s := range k.byIno {
		if now, e := kernel.SocketInode(fmt.Sprintf("/proc/%d/fd/%d", s.tid, s.num)); e != 0 || now != ino {
			unix.Close(s.fd)
			delete(k.byIno, ino)
		}
	}
	if len(k.byIno) >= maxKept {
		k.closeAll()
	}
	return len(k.byIno) < before
}

func (k *keptSockets) closeAll() {
	for ino, s := range k.byIno {
		unix.Close(s.fd)
		delete(k.byIno, ino)
	}
}

func (k *keptSockets) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closeAll()
}
