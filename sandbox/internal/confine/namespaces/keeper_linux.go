//go:build amd64 || arm64

package namespaces

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// A Keeper is the first process of a session's namespaces, which last as long as
// it does. It is made of system calls, has memory of its own (an arena that it
// shares with us, and its code), makes the calls that it is asked for, and ends
// when its line does: then the kernel kills whatever lives in the namespaces.
type Keeper struct {
	PID   int // seen from outside
	arena *arena
	mark  int // how much of the arena stays

	uids, gids string // the ids of its user namespace, as they are mapped

	Starting sync.Mutex // held while the rest of the arena is in use

	mu   sync.Mutex   // one request at a time
	line int          // our end, -1 when it is gone
	owed bool         // it has not answered yet
	recv *kernel.Call // waits for a request; its next is what to do
	tidy *kernel.Call // comes after that: closes what the request brought, and answers
	one  *kernel.Call // the only slot of requests that are one call
	msg  *unix.Msghdr

	own   *arena       // memory of which each reaper has its own copy
	fork  *kernel.Call // makes a reaper
	born  *int32       // its id, seen from inside
	enter *kernel.Call // the first that a leader does; leads to the rest
}

// Descriptors of a keeper: its line, and those that come with a request, in order.
const (
	keeperLine = iota
	givenIn
	givenOut
	givenErr
	givenNotes
	givenGroup
)

var givenSpace = unix.CmsgSpace(givenGroup * 4)

// newKeeper makes namespaces and their keeper, whose root is still the machine's.
func newKeeper(spaces uintptr) (*Keeper, error) {
	k, err := makeKeeper(spaces)
	if err != nil {
		return nil, err
	}
	if err = k.mapIDs(); err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

// makeKeeper makes a keeper that has no ids yet.
func makeKeeper(spaces uintptr) (*Keeper, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	k := &Keeper{line: pair[0], owed: true}
	if err = k.make(spaces, pair[1]); err == nil {
		err = k.settle()
	}
	if err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

// make starts the process, by way of another one: that gets a copy of our
// memory, and what it clones without copying anew is free of what the C library
// has registered with the kernel for the thread that we are on.
func (k *Keeper) make(spaces uintptr, line int) (err error) {
	defer unix.Close(line)
	if k.arena, err = newArena(arenaSize, unix.MAP_SHARED); err != nil {
		return err
	}
	if k.own, err = newArena(unix.Getpagesize(), unix.MAP_PRIVATE); err != nil {
		return err
	}
	first := k.write(line)
	made := put(k.arena, int32(0)) // the result of clone is overwritten by the child's
	clone := k.arena.must(unix.SYS_CLONE, spaces|unix.CLONE_VM|unix.CLONE_PARENT|unix.CLONE_PARENT_SETTID, 0, address(made))
	clone.OrElse = first
	limit, err := processLimit()
	if err != nil {
		return err
	}
	reserve := k.arena.Add(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NPROC, pointer(k.arena, limit), 0)
	reserve.Then(clone) // a user namespace takes it over for all that is in it
	k.mark = k.arena.used
	k.PID, err = proc.Start(func() (int, error) {
		pid, err := kernel.Spawn(0, reserve)
		if err != nil {
			return 0, err
		}
		kernel.ReapClone(pid)
		if e := clone.Errno(); e != 0 {
			return 0, fmt.Errorf("the system does not permit them (%w)", e)
		}
		return int(*made), nil
	})
	return err
}

// write sets down what the keeper does: become what nothing of the server can be
// found in, and serve requests.
func (k *Keeper) write(line int) *kernel.Call {
	a := k.arena
	k.msg = put(a, unix.Msghdr{Iov: put(a, unix.Iovec{Base: put(a, byte(0)), Len: 1}), Iovlen: 1,
		Control: (*byte)(a.take(givenSpace))})
	k.one = a.Add(unix.SYS_GETPID)
	k.recv = a.Add(unix.SYS_RECVMSG, keeperLine, address(k.msg), 0)
	k.tidy = a.Add(unix.SYS_CLOSE_RANGE, keeperLine+1, kernel.MaxDescriptor)
	answer := a.Add(unix.SYS_WRITE, keeperLine, a.text(""), 1)
	wake := a.Add(unix.SYS_PPOLL, pointer(a, unix.PollFd{Fd: keeperLine, Events: unix.POLLIN}), 1)
	chain(k.tidy, answer, wake, k.recv) // msg is read when recv begins: not before there is a request
	k.born, k.enter = put(a, int32(0)), a.Add(unix.SYS_SETPGID)
	k.fork = a.Add(unix.SYS_CLONE, unix.CLONE_PARENT_SETTID|uintptr(unix.SIGCHLD), 0, address(k.born))
	k.fork.OrElse = k.writeReaper()

	steps := []*kernel.Call{a.Add(unix.SYS_SETSID), a.Add(unix.SYS_DUP3, uintptr(line), keeperLine, 0), a.Add(unix.SYS_CHDIR, a.text("/"))}
	for sig := uintptr(1); sig <= 64; sig++ {
		steps = append(steps, a.handle(sig, sigDefault))
	}
	steps = append(steps, a.handle(uintptr(unix.SIGCHLD), sigIgnore)) // nobody needs to collect what ends
	for _, gap := range k.foreign() {
		steps = append(steps, a.Add(unix.SYS_MUNMAP, gap.from, gap.to-gap.from))
	}
	steps = append(steps, a.Add(unix.SYS_PRCTL, unix.PR_SET_NAME, a.text("keeper")),
		a.Add(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1), k.tidy) // until seal
	chain(steps...)
	return steps[0]
}

// What handle sets; the kernel's constants.
const sigDefault, sigIgnore = 0, 1

// handle is a call that sets how a signal is handled.
func (a *arena) handle(sig, how uintptr) *kernel.Call {
	return a.Add(unix.SYS_RT_SIGACTION, sig, pointer(a, [4]uintptr{how}), 0, 8)
}

// A note is what a reaper tells: who has ended and how. The first one tells who
// was started, the last one, of nobody, that nothing is left.
type note struct{ status, pid uint64 }

const noteSize = unsafe.Sizeof(note{})

// run has the keeper make the calls from first to last, none of which may end it,
// and returns when it has. The files are open there meanwhile.
func (k *Keeper) run(first, last *kernel.Call, files ...int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return errors.Join(k.request(first, last, files...), k.settle())
}

// begin is run for who learns by other means what came of it.
func (k *Keeper) begin(first, last *kernel.Call, files ...int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.request(first, last, files...)
}

// reset makes room for new calls. The caller holds starting.
func (k *Keeper) reset() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.settle() // it may be about to look what follows the last call
	k.arena.reset(k.mark)
	return err
}

func (k *Keeper) request(first, last *kernel.Call, files ...int) error {
	if err := k.settle(); err != nil {
		return err
	}
	k.recv.Next = first
	last.Next = k.tidy
	if last.OrElse == nil {
		last.OrElse = k.tidy
	} else { // a fork, whose other end goes its own way
		last.Must = address(k.tidy)
	}
	k.msg.SetControllen(givenSpace)
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	err := kernel.IgnoringEINTR(func() error { return unix.Sendmsg(k.line, []byte{0}, rights, nil, unix.MSG_NOSIGNAL) })
	if err != nil {
		return kernel.ErrGone
	}
	k.owed = true
	return nil
}

// settle waits until the keeper has done what it was asked.
func (k *Keeper) settle() error {
	if k.line < 0 {
		return kernel.ErrGone
	}
	if !k.owed {
		return nil
	}
	k.owed = false
	n, err := 0, error(nil)
	err = kernel.IgnoringEINTR(func() error { n, err = unix.Read(k.line, make([]byte, 1)); return err })
	if err != nil || n == 0 {
		return kernel.ErrGone
	}
	return nil
}

// do has the keeper make one call and returns its error.
func (k *Keeper) do(nr uintptr, args ...uintptr) (unix.Errno, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.settle(); err != nil {
		return 0, err
	}
	k.one.Nr, k.one.Args = nr, [6]uintptr{}
	copy(k.one.Args[:], args)
	if err := errors.Join(k.request(k.one, k.one), k.settle()); err != nil {
		return 0, kernel.ErrGone
	}
	return k.one.Errno(), nil
}

// whyNot tells why there is no leader: fork failed for the keeper, or for the
// reaper with e; nil when nobody knows.
func (k *Keeper) whyNot(e unix.Errno) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.settle(); err != nil {
		return err
	}
	if forked := k.fork.Errno(); forked != 0 {
		e = forked
	}
	if e != 0 {
		return fmt.Errorf("another process cannot be started: %w", e)
	}
	return nil
}

// signal sends sig as kill(2) does in the namespace: to one process or, by -1,
// to all but the keeper.
func (k *Keeper) signal(pid int, sig unix.Signal) error {
	e, err := k.do(unix.SYS_KILL, uintptr(pid), uintptr(sig))
	if err == nil && e != 0 {
		err = e
	}
	return err
}

// close ends the keeper and all that lives in its namespaces, and waits for that,
// but not for what sleeps in the kernel.
func (k *Keeper) close() {
	k.mu.Lock()
	line := k.line
	k.line = -1
	k.mu.Unlock()
	if line < 0 {
		return
	}
	unix.Close(line)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if k.PID != 0 {
			_, _ = proc.Wait(k.PID)
		}
		k.Starting.Lock()
		defer k.Starting.Unlock()
		k.arena.free()
		k.own.free()
	}()
	select {
	case <-ended:
	case <-time.After(2 * time.Second):
	}
}

// ended reports whether the keeper has: somebody outside has killed it, or memory was
// short; under gVisor a command inside can as well. One that is at work has not.
func (k *Keeper) ended() bool {
	if !k.mu.TryLock() {
		return false
	}
	defer k.mu.Unlock()
	line := []unix.PollFd{{Fd: int32(k.line)}} // below 0 it is ignored
	n, err := unix.Poll(line, 0)
	return err == nil && n > 0 && line[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}

// awaitEnd waits for the end of a keeper that does not answer any more, which the
// kernel puts after the end of all others in its namespaces.
func (k *Keeper) awaitEnd() {
	_ = kernel.IgnoringEINTR(func() error {
		return unix.Waitid(unix.P_PID, k.PID, nil, unix.WEXITED|unix.WNOWAIT|unix.WALL, nil)
	})
}

// seal puts the keeper, and so all that comes from it, below what restricts
// commands (a ruleset of Landlock's, -1 for none, and a filter), and makes it as
// untouchable for them as the server is.
func (k *Keeper) seal(ruleset int, filter []unix.SockFilter) error {
	if err := k.writeProc("oom_score_adj", "1000"); err != nil {
		return err
	}
	k.Starting.Lock()
	defer k.Starting.Unlock()
	a := k.arena
	if err := k.reset(); err != nil {
		return err
	}
	steps := a.dropBounding()
	var files []int
	restrict := a.Add(unix.SYS_LANDLOCK_RESTRICT_SELF, givenIn, 0)
	if ruleset >= 0 {
		steps, files = append(steps, restrict), []int{ruleset}
	}
	prog := address(put(a, unix.SockFprog{Len: uint16(len(filter)), Filter: slice(a, filter)}))
	strict := a.Add(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, prog)
	plain := a.Add(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, prog) // where the flag is unknown
	last := a.Add(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0)
	chain(append(steps, strict)...)
	strict.Then(last)
	strict.Must = address(plain)
	plain.Then(last)
	if err := k.run(steps[0], last, files...); err != nil {
		return err
	}
	if e := restrict.Errno(); e != 0 {
		return fmt.Errorf("landlock: %w", e)
	}
	if strict.Errno() != 0 && plain.Ret != 0 {
		return fmt.Errorf("seccomp: %w", plain.Errno())
	}
	return nil
}

// dropBounding keeps every capability that commands may not have out of what
// they execute.
func (a *arena) dropBounding() (steps []*kernel.Call) {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if kernel.KeptCaps&(1<<c) == 0 { // one that this kernel does not know cannot be had
			steps = append(steps, a.Add(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0))
		}
	}
	return steps
}
