//go:build amd64 || arm64

package broker

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// System V objects (shared memory, semaphores, message queues) are settled by
// user id alone. The broker makes them for the commands, and lets through what
// is done with those that the session has; they end with it.

// An ipcKind is one of the three, by its calls.
type ipcKind struct {
	Get, Ctl int32
	use      []int32
	Flags    int   // which argument of get
	command  int   // which argument of ctl
	commands []int // of ctl, that concern the object named: not all, nor one by its place in a table
	clock    *ipcClock
}

// An ipcClock counts how far the numbers of a kind have moved on. A number is made of
// a place in a table and of how often the table has been gone through, modulo
// ipcTurns. After that many the number of an object that is gone returns as that of
// somebody else's, for which a use that was let through before must not arrive.
type ipcClock struct {
	mu    sync.Mutex
	last  int
	turns int
}

const (
	IPCPlaces = 1 << 15
	IPCTurns  = 1 << 16
)

// make makes an object and returns the count at it.
func (c *ipcClock) make(nr int32, args [6]uint64) (id, made int, e unix.Errno) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, e = ipcCall(nr, args); e != 0 {
		return id, 0, e
	}
	turn := id / IPCPlaces
	c.turns += (turn - c.last + IPCTurns) % IPCTurns
	c.last = turn
	return id, c.turns, 0
}

// far reports whether half of the way is behind that leads from the object that was
// made at that count to another with its number. The other half is more objects than
// can be made while a use is on its way.
func (c *ipcClock) far(made int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turns-made > IPCTurns/2
}

// The names of linux/ipc.h.
const (
	ipcPrivate = 0
	ipcCreate  = 0o1000
	ipcNew     = 0o2000 // IPC_EXCL
	ipcRemove  = 0
	ipcSet     = 1
	ipcStat    = 2
	ipc64      = 0x100 // a flag that C libraries add to commands
)

// IPCKinds are all three.
var IPCKinds = []ipcKind{
	{Get: unix.SYS_SHMGET, Ctl: unix.SYS_SHMCTL, use: []int32{unix.SYS_SHMAT}, Flags: 2,
		command: 1, commands: []int{ipcRemove, ipcSet, ipcStat, 11, 12}, clock: new(ipcClock)}, // SHM_LOCK, SHM_UNLOCK
	{Get: unix.SYS_SEMGET, Ctl: unix.SYS_SEMCTL, use: []int32{unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP}, Flags: 2,
		command: 2, commands: []int{ipcRemove, ipcSet, ipcStat, 11, 12, 13, 14, 15, 16, 17}, clock: new(ipcClock)}, // GETPID to SETALL
	{Get: unix.SYS_MSGGET, Ctl: unix.SYS_MSGCTL, use: []int32{unix.SYS_MSGSND, unix.SYS_MSGRCV}, Flags: 1,
		command: 1, commands: []int{ipcRemove, ipcSet, ipcStat}, clock: new(ipcClock)},
}

// ipcHandlers say who decides which of their calls.
func ipcHandlers() map[int32]func(*Question) Answer {
	h := map[int32]func(*Question) Answer{}
	for i := range IPCKinds {
		kind := &IPCKinds[i]
		h[kind.Get] = func(q *Question) Answer { return q.getIPC(kind) }
		use := func(q *Question) Answer { return q.useIPC(kind) }
		h[kind.Ctl] = use
		for _, nr := range kind.use {
			h[nr] = use
		}
	}
	return h
}

// ipcObjects are those of one session.
type ipcObjects struct {
	mu     sync.Mutex
	ids    map[ipcID]int // by the clock when it was made
	closed bool
}

type ipcID struct {
	kind *ipcKind
	id   int
}

// getIPC finds or makes an object. One that somebody else has made is not there
// for the session, and its key is taken.
func (q *Question) getIPC(kind *ipcKind) Answer {
	o := &q.broker.session.ipc
	o.mu.Lock()
	defer o.mu.Unlock()
	args := q.args
	flags := q.Arg(kind.Flags)
	if q.Arg(0) != ipcPrivate {
		args[kind.Flags] &^= ipcCreate | ipcNew
		id, e := ipcCall(kind.Get, args)
		switch _, known := o.ids[ipcID{kind, id}]; {
		case e == 0 && known && flags&ipcNew == 0:
			return Answer{val: int64(id)}
		case e == 0 && !known, e == unix.EACCES:
			return q.refuse(unix.EACCES, "use a System V object of another program", "")
		case e != unix.ENOENT || flags&ipcCreate == 0:
			if e == 0 {
				e = unix.EEXIST
			}
			return Fail(e)
		}
	}
	if o.closed {
		return Fail(unix.EACCES)
	}
	args[kind.Flags] = q.args[kind.Flags] | ipcCreate | ipcNew
	id, made, e := kind.clock.make(kind.Get, args)
	if e != 0 {
		return Fail(e)
	}
	if o.ids == nil {
		o.ids = map[ipcID]int{}
	}
	o.ids[ipcID{kind, id}] = made
	return Answer{val: int64(id)}
}

// useIPC lets through what is done with an object of the session. Which one, and
// what, is in registers, so it stays what was judged; that it is the same object
// still, when the kernel goes on, the clock sees to. Removing needs nothing of the
// asker's, so it is done here.
func (q *Question) useIPC(kind *ipcKind) Answer {
	o := &q.broker.session.ipc
	o.mu.Lock()
	defer o.mu.Unlock()
	object := ipcID{kind, q.Arg(0)}
	made, known := o.ids[object]
	if !known {
		return Fail(unix.EACCES)
	}
	if q.nr == kind.Ctl {
		command := q.Arg(kind.command) &^ ipc64
		if !slices.Contains(kind.commands, command) {
			return Fail(unix.EACCES)
		}
		if command == ipcRemove { // its id may be given to another
			delete(o.ids, object)
			return Fail(object.remove())
		}
	}
	if kind.clock.far(made) {
		return Fail(unix.EIDRM)
	}
	return Answer{Run: true}
}

func (i ipcID) remove() unix.Errno {
	args := [6]uint64{uint64(i.id)}
	args[i.kind.command] = ipcRemove
	_, e := ipcCall(i.kind.Ctl, args)
	return e
}

// ipcCall makes one of their calls.
func ipcCall(nr int32, args [6]uint64) (int, unix.Errno) {
	r, _, e := unix.Syscall6(uintptr(nr), uintptr(args[0]), uintptr(args[1]), uintptr(args[2]), uintptr(args[3]), 0, 0)
	return int(r), e
}

// close removes all of them.
func (o *ipcObjects) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for object := range o.ids {
		_ = object.remove() // another program of this user may have removed it
	}
	o.ids = nil
}
