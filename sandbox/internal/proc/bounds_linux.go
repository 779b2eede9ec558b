package proc

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bounds are what a program, and all that descends from it, is put under before its
// first instruction. They lower limits and raise none.
type Bounds struct {
	Group  *os.File            // takes who writes "0" there into its control group; nil for none
	Limits map[int]unix.Rlimit // by resource

	Expendable bool // it is the first to be ended when memory runs out, and has the mark of commands

	Late func() Bounds // asked when the program is about to begin, for more limits; may be nil
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
	both := Bounds{Group: b.Group, Limits: map[int]unix.Rlimit{}, Expendable: b.Expendable || other.Expendable}
	if other.Group != nil {
		both.Group = other.Group
	}
	if both.Late = b.Late; other.Late != nil {
		both.Late = other.Late
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
	if b.Group == nil && len(b.Limits) == 0 && !b.Expendable && b.Late == nil {
		return fork(false)
	}
	if _, marked := b.Limits[unix.RLIMIT_LOCKS]; b.Expendable && !marked {
		b = b.With(OwnMark().Bounds())
	}
	if !unstoppable.Load() {
		runtime.LockOSThread() // who traces is a thread
		defer runtime.UnlockOSThread()
		pid, err = b.startStopped(fork)
		if err != unix.EPERM && err != unix.ENOSYS {
			return pid, err
		}
	}
	free := func() error { pid, err = fork(false); return err }
	if b.Expendable {
		_ = Expendable(free)
	} else {
		_ = free()
	}
	if err == nil {
		unstoppable.Store(true) // it was not the program that is not permitted
		_ = b.putFree(pid)      // it may have ended
	}
	return pid, err
}

// stuckAfter is how long a fork may take. A signal that arrives at the wrong moment
// would stop the child for ever, and this program's forks with it.
const stuckAfter = time.Second

// mostTries bounds how often a program is started again that stood still: somebody
// stops whatever begins.
const mostTries = 3

// startStopped starts a program from the calling thread. What stood still before its
// program began is ended, and started again.
func (b Bounds) startStopped(fork func(stopped bool) (int, error)) (int, error) {
	for try := 1; ; try++ {
		rescue := watchFork(unix.Gettid())
		pid, err := fork(true)
		stuck := rescue.end()
		if err != nil {
			return pid, err
		}
		if stopped(pid) {
			return pid, b.release(pid)
		}
		if !stuck || try == mostTries {
			return pid, nil // it has ended; its parent learns how
		}
		_, _ = syscall.Wait4(pid, nil, unix.WALL, nil)
	}
}

// release puts a stopped child under b and has it go on, or ends it.
func (b Bounds) release(pid int) error {
	err := b.putFree(pid)
	if errors.Is(err, unix.EPERM) { // for that there is this thread, which traces it
		err = b.put(pid, prlimitBy)
	}
	if err != nil {
		_ = Signal(pid, unix.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, unix.WALL, nil)
		return err
	}
	if err := unix.PtraceDetach(pid); err != nil && err != unix.ESRCH {
		return fmt.Errorf("letting the program go on: %w", err)
	}
	return nil
}

// stopped waits until a child has stopped at its program's first instruction, and gives
// it the signals that come before; false when it has ended instead. Its status is left
// to whom it belongs.
func stopped(pid int) bool {
	for {
		sig, stops := nextStop(pid)
		if !stops || sig == unix.SIGTRAP {
			return stops
		}
		if err := unix.PtraceCont(pid, int(sig)); err != nil && err != unix.ESRCH {
			return false
		}
	}
}

// nextStop waits until a child has stopped, and tells for which signal; false when it
// has ended instead.
func nextStop(pid int) (sig syscall.Signal, stops bool) {
	var info unix.Siginfo
	err := error(unix.EINTR)
	for err == unix.EINTR {
		err = unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT|unix.WALL, nil)
	}
	const trapped = 4                                          // CLD_TRAPPED
	status := *(*int32)(unsafe.Add(unsafe.Pointer(&info), 24)) // si_status on every 64-bit Linux
	return syscall.Signal(status), err == nil && info.Code == trapped
}

// A rescue ends the child that a thread is starting when that stands still before its
// program has begun.
type rescue struct {
	mu    sync.Mutex
	timer *time.Timer
	over  bool
	stuck bool
}

// watchFork looks after the next child of a thread until that has been started, which
// may have to wait for other forks first.
func watchFork(thread int) *rescue {
	r := &rescue{}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer = time.AfterFunc(stuckAfter, func() { r.look(thread) })
	return r
}

func (r *rescue) look(thread int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	for _, p := range All() {
		if p.Parent == os.Getpid() && p.Stopped && StatusField(p.PID, "TracerPid") == strconv.Itoa(thread) {
			r.stuck = Signal(p.PID, unix.SIGKILL) == nil
		}
	}
	r.timer.Reset(stuckAfter)
}

// end ends the watch, and reports whether a child was ended.
func (r *rescue) end() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.timer.Stop()
	return r.stuck
}

// putFree is put by another thread: one that is confined may not.
func (b Bounds) putFree(pid int) error {
	put := make(chan error)
	go func() { put <- b.put(pid, unix.Prlimit) }()
	return <-put
}

// A limiter sets a limit of a process and tells which it had, as unix.Prlimit does.
type limiter func(pid, resource int, limit, old *unix.Rlimit) error

// put puts a process under b.
func (b Bounds) put(pid int, prlimit limiter) error {
	if b.Expendable {
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(firstToGo), 0) // not a plain user's where the program cannot be read
	}
	limits := b.Limits
	if b.Late != nil {
		limits = b.With(b.Late()).Limits
	}
	for resource, limit := range limits {
		var has unix.Rlimit
		if err := prlimit(pid, resource, nil, &has); err != nil {
			return fmt.Errorf("setting the limits of the program: %w", err)
		}
		limit = lower(limit, has)
		if err := prlimit(pid, resource, &limit, nil); err != nil {
			return fmt.Errorf("setting the limits of the program: %w", err)
		}
	}
	if b.Group != nil {
		if _, err := fmt.Fprint(b.Group, pid); err != nil {
			return fmt.Errorf("the session's control group: %w", err)
		}
	}
	return nil
}
