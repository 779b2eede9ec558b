//go:build amd64 || arm64

package confine

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
	get, ctl int32
	use      []int32
	flags    int   // which argument of get
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
	ipcPlaces = 1 << 15
	ipcTurns  = 1 << 16
)

// make makes an object and returns the count at it.
func (c *ipcClock) make(nr int32, args [6]uint64) (id, made int, e unix.Errno) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, e = ipcCall(nr, args); e != 0 {
		return id, 0, e
	}
	turn := id / ipcPlaces
	c.turns += (turn - c.last + ipcTurns) % ipcTurns
	c.last = turn
	return id, c.turns, 0
}

// far reports whether half of the way is behind that leads from the object that was
// made at that count to another with its number. The other half is more objects than
// can be made while a use is on its way.
func (c *ipcClock) far(made int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turns-made > ipcTurns/2
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

var ipcKinds = []ipcKind{
	{get: unix.SYS_SHMGET, ctl: unix.SYS_SHMCTL, use: []int32{unix.SYS_SHMAT}, flags: 2,
		command: 1, commands: []int{ipcRemove, ipcSet, ipcStat, 11, 12}, clock: new(ipcClock)}, // SHM_LOCK, SHM_UNLOCK
	{get: unix.SYS_SEMGET, ctl: unix.SYS_SEMCTL, use: []int32{unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP}, flags: 2,
		command: 2, commands: []int{ipcRemove, ipcSet, ipcStat, 11, 12, 13, 14, 15, 16, 17}, clock: new(ipcClock)}, // GETPID to SETALL
	{get: unix.SYS_MSGGET, ctl: unix.SYS_MSGCTL, use: []int32{unix.SYS_MSGSND, unix.SYS_MSGRCV}, flags: 1,
		command: 1, commands: []int{ipcRemove, ipcSet, ipcStat}, clock: new(ipcClock)},
}

// ipcHandlers say who decides which of their calls.
func ipcHandlers() map[int32]func(*question) answer {
	h := map[int32]func(*question) answer{}
	for i := range ipcKinds {
		kind := &ipcKinds[i]
		h[kind.get] = func(q *question) answer { return q.getIPC(kind) }
		use := func(q *question) answer { return q.useIPC(kind) }
		h[kind.ctl] = use
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
func (q *question) getIPC(kind *ipcKind) answer {
	o := &q.broker.session.ipc
	o.mu.Lock()
	defer o.mu.Unlock()
	args := q.args
	flags := q.arg(kind.flags)
	if q.arg(0) != ipcPrivate {
		args[kind.flags] &^= ipcCreate | ipcNew
		id, e := ipcCall(kind.get, args)
		switch _, known := o.ids[ipcID{kind, id}]; {
		case e == 0 && known && flags&ipcNew == 0:
			return answer{val: int64(id)}
		case e == 0 && !known, e == unix.EACCES:
			return q.refuse(unix.EACCES, "use a System V object of another program", "")
		case e != unix.ENOENT || flags&ipcCreate == 0:
			if e == 0 {
				e = unix.EEXIST
			}
			return fail(e)
		}
	}
	if o.closed {
		return fail(unix.EACCES)
	}
	args[kind.flags] = q.args[kind.flags] | ipcCreate | ipcNew
	id, made, e := kind.clock.make(kind.get, args)
	if e != 0 {
		return fail(e)
	}
	if o.ids == nil {
		o.ids = map[ipcID]int{}
	}
	o.ids[ipcID{kind, id}] = made
	return answer{val: int64(id)}
}

// useIPC lets through what is done with an object of the session. Which one, and
// what, is in registers, so it stays what was judged; that it is the same object
// still, when the kernel goes on, the clock sees to. Removing needs nothing of the
// asker's, so it is done here.
func (q *question) useIPC(kind *ipcKind) answer {
	o := &q.broker.session.ipc
	o.mu.Lock()
	defer o.mu.Unlock()
	object := ipcID{kind, q.arg(0)}
	made, known := o.ids[object]
	if !known {
		return fail(unix.EACCES)
	}
	if q.nr == kind.ctl {
		command := q.arg(kind.command) &^ ipc64
		if !slices.Contains(kind.commands, command) {
			return fail(unix.EACCES)
		}
		if command == ipcRemove { // its id may be given to another
			delete(o.ids, object)
			return fail(object.remove())
		}
	}
	if kind.clock.far(made) {
		return fail(unix.EIDRM)
	}
	return answer{run: true}
}

func (i ipcID) remove() unix.Errno {
	args := [6]uint64{uint64(i.id)}
	args[i.kind.command] = ipcRemove
	_, e := ipcCall(i.kind.ctl, args)
	return e
}

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
