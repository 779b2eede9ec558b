package proc

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds are what a program, and all that descends from it, is put under before its
// first instruction. They lower limits and raise none.
type Bounds struct {
	Group  *os.File            // takes who writes "0" there into its control group; nil for none
	Limits map[int]unix.Rlimit // by resource
}

// Reserved are the bounds that leave this program some processes of its user's limit.
func Reserved() Bounds {
	limit := ownLimit()
	if !shared(limit) {
		return Bounds{}
	}
	limit.Cur -= reserved(limit.Cur)
	limit.Max = limit.Cur
	return Bounds{Limits: map[int]unix.Rlimit{unix.RLIMIT_NPROC: limit}}
}

// With is b and other bounds, the lower of two limits.
func (b Bounds) With(other Bounds) Bounds {
	both := Bounds{Group: b.Group, Limits: map[int]unix.Rlimit{}}
	if other.Group != nil {
		both.Group = other.Group
	}
	for _, limits := range []map[int]unix.Rlimit{b.Limits, other.Limits} {
		for resource, limit := range limits {
			if has, found := both.Limits[resource]; found {
				limit = lower(limit, has)
			}
			both.Limits[resource] = limit
		}
	}
	return both
}

func lower(a, b unix.Rlimit) unix.Rlimit {
	return unix.Rlimit{Cur: min(a.Cur, b.Cur), Max: min(a.Max, b.Max)}
}

// unstoppable is set where programs cannot be made to wait where they begin.
var unstoppable atomic.Bool

// Stoppable reports whether programs can be made to wait where they begin, as far as
// the system tells and was tried. Otherwise bounds come a moment later.
func Stoppable() bool {
	most := 1
	if os.Geteuid() == 0 {
		most = 2 // then only who has CAP_SYS_PTRACE traces, and from 3 on nobody
	}
	scope, err := readNumber("/proc/sys/kernel/yama/ptrace_scope")
	return !unstoppable.Load() && (err != nil || scope <= most)
}

// Start has fork start a program that stops where it begins (traced by this thread),
// puts it under b, and has it go on. Where the system does not permit that, fork is
// called again, to start one that does not stop.
func (b Bounds) Start(fork func(stopped bool) (pid int, err error)) (pid int, err error) {
	if b.Group == nil && len(b.Limits) == 0 {
		return fork(false)
	}
	if !unstoppable.Load() {
		runtime.LockOSThread() // who traces is a thread
		defer runtime.UnlockOSThread()
		pid, err = b.startStopped(fork)
		if err != unix.EPERM && err != unix.ENOSYS {
			return pid, err
		}
	}
	if pid, err = fork(false); err == nil {
		unstoppable.Store(true) // it was not the program that is not permitted
		_ = b.putFree(pid)      // it may have ended
	}
	return pid, err
}

// stuckAfter is how long a fork may take. A signal that arrives at the wrong moment
// would stop the child for ever, and this program's forks with it.
const stuckAfter = time.Second

func (b Bounds) startStopped(fork func(stopped bool) (int, error)) (int, error) {
	rescue := time.AfterFunc(stuckAfter, killStuck)
	pid, err := fork(true)
	rescue.Stop()
	if err != nil {
		return pid, err
	}
	if !stops(pid) {
		return pid, nil // it has ended; its parent learns how
	}
	if err := b.putFree(pid); err != nil {
		_ = Signal(pid, unix.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, unix.WALL, nil)
		return 0, err
	}
	if err := unix.PtraceDetach(pid); err != nil && err != unix.ESRCH {
		return pid, fmt.Errorf("letting the program go on: %w", err)
	}
	return pid, nil
}

// stops waits until a child has stopped; false when it has ended instead. Its status
// is left to whom it belongs.
func stops(pid int) bool {
	var info unix.Siginfo
	err := error(unix.EINTR)
	for err == unix.EINTR {
		err = unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT|unix.WALL, nil)
	}
	const trapped, stopped = 4, 5 // CLD_TRAPPED, CLD_STOPPED
	return err == nil && (info.Code == trapped || info.Code == stopped)
}

// killStuck ends children that stand still before their program has begun.
func killStuck() {
	for _, p := range All() {
		if p.Parent == os.Getpid() && p.Stopped && !Known(p.PID) && StatusField(p.PID, "TracerPid") != "0" {
			_ = Signal(p.PID, unix.SIGKILL)
		}
	}
}

// putFree is put by another thread: one that is confined may not.
func (b Bounds) putFree(pid int) error {
	put := make(chan error)
	go func() { put <- b.put(pid) }()
	return <-put
}

// put puts a process under b.
func (b Bounds) put(pid int) error {
	for resource, limit := range b.Limits {
		var has unix.Rlimit
		if err := unix.Prlimit(pid, resource, nil, &has); err != nil {
			return fmt.Errorf("prlimit: %w", err)
		}
		limit = lower(limit, has)
		if err := unix.Prlimit(pid, resource, &limit, nil); err != nil {
			return fmt.Errorf("prlimit: %w", err)
		}
	}
	if b.Group != nil {
		if _, err := fmt.Fprint(b.Group, pid); err != nil {
			return fmt.Errorf("the session's control group: %w", err)
		}
	}
	return nil
}
