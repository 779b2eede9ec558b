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

// everyKept counts the sockets kept for each domain: all are descriptors of this process.
var everyKept = struct {
	mu  sync.Mutex
	of  map[*keptSockets]int
	sum int
}{of: map[*keptSockets]int{}}

// count counts sockets more, or less.
func (k *keptSockets) count(more int) {
	e := &everyKept
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sum += more
	if e.of[k] += more; e.of[k] == 0 {
		delete(e.of, k)
	}
}

// tooManyKept returns the domain with the most sockets when all have too many together,
// else nil.
func tooManyKept() (fullest *keptSockets) {
	limit := unix.Rlimit{Cur: maxEveryKept}
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	e := &everyKept
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sum <= int(min(limit.Cur/4, maxEveryKept)) {
		return nil
	}
	for k, n := range e.of {
		if n > e.of[fullest] {
			fullest = k
		}
	}
	return fullest
}

type keptSocket struct {
	fd       int // ours
	tid, num int // the command's
}

const (
	maxKept      = 256  // sockets that are kept for one domain
	maxEveryKept = 4096 // and for all, if they may take that many descriptors
)

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
	k.add(st.Ino, keptSocket{fd: sock, tid: int(q.tid), num: int(a.val)})
	for many := tooManyKept(); many != nil; many = tooManyKept() {
		if !many.sweep() {
			many.close() // its commands can make others
		}
	}
	return a
}

func (k *keptSockets) add(ino uint64, s keptSocket) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byIno == nil {
		k.byIno = map[uint64]keptSocket{}
	}
	k.byIno[ino] = s
	k.count(1)
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
	k.remove(ino)
}

func (k *keptSockets) remove(ino uint64) {
	if s, ok := k.byIno[ino]; ok {
		unix.Close(s.fd)
		delete(k.byIno, ino)
		k.count(-1)
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
			k.remove(ino)
		}
	}
	if len(k.byIno) >= maxKept {
		k.closeAll()
	}
	return len(k.byIno) < before
}

func (k *keptSockets) closeAll() {
	for ino := range k.byIno {
		k.remove(ino)
	}
}

func (k *keptSockets) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closeAll()
}
