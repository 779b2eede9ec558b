//go:build amd64 || arm64

package namespaces

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// A CellRun is what the leader of a new cell does, as calls in the keeper's arena:
// it restricts itself and becomes the program.
type CellRun struct {
	*arena
	Exec *kernel.Call // nil when the leader executes nothing
}

// writeProgram writes a leader that executes p.
func (i *Isolator) writeProgram(r *CellRun, p Program) (first *kernel.Call) {
	r.Exec = r.Add(unix.SYS_EXECVE, r.text(p.Path), r.texts(p.Argv), r.texts(p.Env))
	steps := append(i.bound(r, p.Bounds), i.leader(r, p.Dir)...)
	for at, file := range p.Files {
		if isNull(int(file)) {
			steps = append(steps, r.null(at)...)
		}
	}
	if p.Terminal {
		i.Keeper.enter.Nr = unix.SYS_SETSID // only who leads a session takes a terminal
		steps = append(steps, r.must(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0))
	}
	steps = append(steps, r.Exec)
	chain(steps...)
	return steps[0]
}

// isNull reports whether a descriptor is of the null device.
func isNull(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(1, 3)
}

// null opens the session's own null device at a descriptor below which all are open. By
// one that the server has opened its mode could be changed, which is the machine's.
func (r *CellRun) null(at int) []*kernel.Call {
	return []*kernel.Call{r.must(unix.SYS_CLOSE, uintptr(at)),
		r.must(unix.SYS_OPENAT, atWorkingDir, r.text("/dev/null"), unix.O_RDWR)}
}

const atWorkingDir = ^uintptr(99) // AT_FDCWD, -100

// bound writes how the program's process is put under bounds, which what watches
// over it in the session is not.
func (i *Isolator) bound(r *CellRun, b proc.Bounds) (steps []*kernel.Call) {
	if b.Group != nil {
		steps = append(steps, r.must(unix.SYS_WRITE, givenGroup, r.text("0"), 1))
	}
	for resource, limit := range b.Limits {
		steps = append(steps, r.must(unix.SYS_PRLIMIT64, 0, uintptr(resource), pointer(r.arena, i.Keeper.lowered(resource, limit)), 0))
	}
	return steps
}

// lowered is a limit, or what the keeper has where that is lower.
func (k *Keeper) lowered(resource int, limit unix.Rlimit) unix.Rlimit {
	var has unix.Rlimit
	if unix.Prlimit(k.PID, resource, nil, &has) != nil { // it has ended, and nothing starts
		return limit
	}
	return unix.Rlimit{Cur: min(limit.Cur, has.Cur), Max: min(limit.Max, has.Max)}
}

// writeReaper sets down what a reaper does, in memory of which each has a copy of
// its own: make the leader and wait until that is executed or has failed; tell so;
// then tell of each process that ends, until none is left. Notes are taken from the
// calls themselves, whose last argument the kernel ignores.
func (k *Keeper) writeReaper() *kernel.Call {
	a := k.own
	leader := a.Add(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_VFORK|uintptr(unix.SIGCHLD))
	leader.OrElse = k.enter
	began := a.Add(unix.SYS_WRITE, givenNotes, address(&leader.Args[5]), noteSize)
	leader.Must = address(began)
	wait := a.Add(unix.SYS_WAIT4, ^uintptr(0), 0, unix.WALL)
	wait.Args[1] = address(&wait.Args[5]) // the status
	ended := a.Add(unix.SYS_WRITE, givenNotes, address(&wait.Args[5]), noteSize)
	empty := a.Add(unix.SYS_WRITE, givenNotes, pointer(a, note{}), noteSize)
	low := a.Add(unix.SYS_CLOSE_RANGE, 0, givenNotes-1)
	first := a.must(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1)
	chain(first, a.handle(uintptr(unix.SIGCHLD), sigDefault), a.Add(unix.SYS_PRCTL, unix.PR_SET_NAME, a.text("reaper")), leader)
	leader.Next = low
	chain(low, a.Add(unix.SYS_CLOSE_RANGE, givenNotes+1, kernel.MaxDescriptor), began, wait)
	wait.Next, wait.OrElse = ended, empty
	ended.Then(wait)
	return first
}

// leader writes how the program's process is prepared: streams, directory, and
// what the keeper's seal has not restricted already.
func (i *Isolator) leader(r *CellRun, dir string) []*kernel.Call {
	return []*kernel.Call{r.must(unix.SYS_DUP3, givenIn, 0, 0),
		r.must(unix.SYS_DUP3, givenOut, 1, 0),
		r.must(unix.SYS_DUP3, givenErr, 2, 0),
		r.must(unix.SYS_CLOSE_RANGE, 3, kernel.MaxDescriptor, unix.CLOSE_RANGE_CLOEXEC),
		r.must(unix.SYS_CHDIR, r.text(dir)),
		r.must(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, pointer(r.arena, i.files), 0),
		r.must(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
		r.must(unix.SYS_CAPSET, pointer(r.arena, unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}),
			pointer(r.arena, [2]unix.CapUserData{{Effective: kernel.KeptCaps, Permitted: kernel.KeptCaps}})),
		r.must(unix.SYS_RT_SIGPROCMASK, 2, pointer(r.arena, uint64(0)), 0, 8)}
}

// failure tells why the program was not executed: the system's reason for that
// alone, or the step before it that failed.
func (r *CellRun) failure() error {
	if r.Exec != nil && r.Exec.Ret != kernel.NotRun {
		return r.Exec.Errno()
	}
	if c := r.failed(); c != nil {
		if c.Nr == unix.SYS_CHDIR {
			return c.Errno()
		}
		return fmt.Errorf("isolating the command: system call %d: %w", c.Nr, c.Errno())
	}
	return nil
}
