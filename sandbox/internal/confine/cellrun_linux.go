//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A cellRun is what the three processes of a new cell do, as calls in the
// server's memory: the guard enters the session's namespaces and makes the init
// of a process namespace, which is the cell; that makes the leader and collects
// whatever ends; the leader restricts itself and becomes the program.
type cellRun struct {
	calls  []*call
	start  *call
	exec   *call
	kill   *call // the guard's; the kernel writes the id of init, seen from outside, into it
	leader int32 // its id, seen from inside; the kernel writes it
	keep   []any // what the calls point to
	pin    runtime.Pinner
}

// init is the id of the cell's init, 0 when there is none.
func (r *cellRun) init() int { return int(r.kill.args[0]) }

// add appends a call that follows the last one.
func (r *cellRun) add(nr uintptr, args ...uintptr) *call {
	c := &call{nr: nr, ret: notRun}
	copy(c.args[:], args)
	r.pin.Pin(c)
	r.calls = append(r.calls, c)
	return c
}

// must is add for a call without which nothing may follow.
func (r *cellRun) must(nr uintptr, args ...uintptr) *call {
	c := r.add(nr, args...)
	c.must = 1
	return c
}

// chain makes calls follow one another.
func chain(calls ...*call) {
	for i := range calls[:len(calls)-1] {
		calls[i].then(calls[i+1])
	}
}

// pointer keeps what p points to where it is, until release.
func pointer[T any](r *cellRun, p *T) uintptr {
	r.pin.Pin(p)
	r.keep = append(r.keep, p)
	return uintptr(unsafe.Pointer(p))
}

func (r *cellRun) release() {
	r.pin.Unpin()
	r.keep, r.calls = nil, nil
}

// program writes the leader of a run that executes p.
func (i *Isolator) program(p Program) (r *cellRun, first *call, err error) {
	path, err1 := syscall.BytePtrFromString(p.Path)
	dir, err2 := syscall.BytePtrFromString(p.Dir)
	argv, err3 := syscall.SlicePtrFromStrings(p.Argv)
	env, err4 := syscall.SlicePtrFromStrings(p.Env)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, nil, err
	}
	r = new(cellRun)
	for _, s := range slices.Concat(argv, env) {
		if s != nil {
			pointer(r, s)
		}
	}
	steps := i.leader(r, p.Files, pointer(r, dir))
	r.exec = r.add(unix.SYS_EXECVE, pointer(r, path), pointer(r, &argv[0]), pointer(r, &env[0]))
	chain(append(steps, r.exec)...)
	return r, steps[0], nil
}

// cell writes the guard and the init around a leader that begins with first.
func (i *Isolator) cell(r *cellRun, pipes cellPipes, first *call) {
	guard := []*call{r.add(unix.SYS_SETSID)}
	for _, fd := range i.spaces {
		guard = append(guard, r.must(unix.SYS_SETNS, uintptr(fd), 0))
	}
	r.kill = r.add(unix.SYS_KILL, 0, uintptr(unix.SIGKILL))
	makeInit := r.must(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_PARENT|unix.CLONE_NEWPID|unix.CLONE_NEWNS|
		unix.CLONE_PARENT_SETTID, 0, uintptr(unsafe.Pointer(&r.kill.args[0])))
	chain(append(guard, makeInit)...)
	makeInit.next = r.watch(pipes.line[0].Fd())
	makeInit.orElse = r.must(unix.SYS_MOUNT, cText(r, "proc"), cText(r, "/proc"), cText(r, "proc"), procFlags, 0)
	makeLeader := r.must(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_PARENT_SETTID|uintptr(unix.SIGCHLD), 0, pointer(r, &r.leader))
	makeInit.orElse.then(makeLeader)
	makeLeader.next = r.collect(pipes.notes[1].Fd())
	makeLeader.orElse = first
	r.start = guard[0]
}

func cText(r *cellRun, text string) uintptr {
	b, _ := syscall.BytePtrFromString(text) // constants without NUL
	return pointer(r, b)
}

// watch is what the guard does then: nothing until its line breaks.
func (r *cellRun) watch(line uintptr) *call {
	read := r.add(unix.SYS_READ, line, pointer(r, new(byte)), 1)
	low := r.closeBut(line)
	read.next, read.orElse = read, r.kill
	low[1].then(read)
	return low[0]
}

// closeBut closes every descriptor but one.
func (r *cellRun) closeBut(fd uintptr) [2]*call {
	low := r.add(unix.SYS_CLOSE_RANGE, 0, fd-1)
	high := r.add(unix.SYS_CLOSE_RANGE, fd+1, uintptr(^uint32(0)))
	low.then(high)
	return [2]*call{low, high}
}

// collect is what the init does then: it tells of each process that ends, by the
// last argument of wait, which the kernel ignores and uses for the status, and
// its result, which is the id. Without processes it ends, and with it the cell.
func (r *cellRun) collect(notes uintptr) *call {
	all := ^uintptr(0)
	wait := r.add(unix.SYS_WAIT4, all, 0, unix.WALL, 0)
	status := uintptr(unsafe.Pointer(&wait.args[5])) // calls are pinned
	wait.args[1] = status
	tell := r.add(unix.SYS_WRITE, notes, status, unsafe.Sizeof(wait.args[5])+unsafe.Sizeof(wait.ret))
	wait.next = tell
	tell.then(wait)
	low := r.closeBut(notes)
	low[1].then(wait)
	return low[0]
}

// leader writes how the program's process is prepared: streams, directory, and
// all that restricts it.
func (i *Isolator) leader(r *cellRun, files [3]uintptr, dir uintptr) []*call {
	steps := []*call{r.must(unix.SYS_SETPGID, 0, 0)}
	for to, from := range files {
		if from == uintptr(to) {
			steps = append(steps, r.must(unix.SYS_FCNTL, from, unix.F_SETFD, 0))
			continue
		}
		steps = append(steps, r.must(unix.SYS_DUP3, from, uintptr(to), 0))
	}
	steps = append(steps,
		r.must(unix.SYS_CLOSE_RANGE, 3, uintptr(^uint32(0)), unix.CLOSE_RANGE_CLOEXEC),
		r.must(unix.SYS_CHDIR, dir),
		r.must(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	steps = append(steps, i.dropAll(r)...)
	if i.ruleset >= 0 {
		steps = append(steps, r.must(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(i.ruleset), 0))
	}
	limit := i.files
	prog := &unix.SockFprog{Len: uint16(len(i.filter)), Filter: &i.filter[0]}
	r.pin.Pin(&i.filter[0])
	return append(steps,
		r.must(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, pointer(r, &limit), 0),
		r.must(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, pointer(r, prog)),
		r.must(unix.SYS_RT_SIGPROCMASK, 2, pointer(r, new(uint64)), 0, 8))
}

// dropAll takes every capability that commands do not keep.
func (i *Isolator) dropAll(r *cellRun) (steps []*call) {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if keptCaps&(1<<c) == 0 { // one that this kernel does not know cannot be had
			steps = append(steps, r.add(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0))
		}
	}
	hdr := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	kept := &[2]unix.CapUserData{{Effective: keptCaps, Permitted: keptCaps}}
	return append(steps,
		r.add(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0),
		r.must(unix.SYS_CAPSET, pointer(r, hdr), pointer(r, kept)))
}

// failure tells why the program was not executed: the system's reason for that
// alone, or the step before it that failed.
func (r *cellRun) failure() error {
	if r.exec != nil && r.exec.ret != notRun {
		return r.exec.errno()
	}
	for _, c := range r.calls {
		if c.must == 0 || c.errno() == 0 {
			continue
		}
		if c.nr == unix.SYS_CHDIR {
			return c.errno()
		}
		return fmt.Errorf("isolating the command: system call %d: %w", c.nr, c.errno())
	}
	return nil
}
