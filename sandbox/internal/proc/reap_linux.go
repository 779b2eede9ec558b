package proc

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// look asks for a look at ended children. One question stands for many.
var look = make(chan os.Signal, 1)

var adopted sync.Once

// Adopt makes this process the parent of every orphan that its commands leave
// (as PID 1 it is anyway) and collects them when they have ended.
//
// It never takes the status of a child that other code of this program waits
// for: one begun by Start; one that os/exec or os.StartProcess started, which
// are known by the descriptor (pidfd) that package os holds of them; one in this
// program's own process group. Where the system has no such descriptors, only
// what is confined is taken for an orphan. What remains are children that other
// code forks by package syscall into a group of their own.
func Adopt() {
	adopted.Do(func() {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // fails on no system that Go runs on
		signal.Notify(look, unix.SIGCHLD)
		go reap()
	})
}

// lookSoon has the reaper look without a signal: a child that was collected may
// have hidden others.
func lookSoon() {
	select {
	case look <- unix.SIGCHLD:
	default:
	}
}

// Wait collects a child and returns how it ended.
func Wait(pid int) (status syscall.WaitStatus, err error) {
	err = awaitEnd(pid)
	err = children.collect(pid, func() error {
		if err == nil {
			_, err = syscall.Wait4(pid, &status, unix.WNOHANG|unix.WALL, nil)
		}
		return err
	})
	lookSoon()
	return status, err
}

// awaitEnd waits until a child has ended, and does not collect it. A child that has itself
// traced by this process is shown when it stops, too, which is then taken as seen.
func awaitEnd(pid int) error {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WALL, nil)
		switch {
		case err == unix.EINTR:
		case err != nil, info.Code == childExited, info.Code == childKilled, info.Code == childDumped:
			return err
		default:
			_ = unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOHANG|unix.WALL, nil)
		}
	}
}

// Why a child is shown, of those that package unix does not name: it has ended.
const (
	childExited = 1 + iota // CLD_EXITED
	childKilled            // CLD_KILLED
	childDumped            // CLD_DUMPED
)

// rest is how long a child that somebody is about to collect may hide the others.
const rest = time.Second

// reap collects orphans as they end. The system shows one ended child at a time;
// when that one is not ours to take, all are looked at a little later, again and
// again: what looks like somebody else's now may turn out to be nobody's, and no
// signal tells of that.
func reap() {
	var all <-chan time.Time
	for {
		select {
		case <-look:
		case <-all:
			all = nil
			takeAll()
		}
		if !takeShown() && all == nil {
			all = time.After(rest)
		}
	}
}

// takeShown takes what the system shows, and reports whether that was everything.
func takeShown() bool {
	taken := false
	pid := endedChild()
	for ; pid != 0 && take(pid); pid = endedChild() {
		taken = true
	}
	if taken {
		children.tell()
	}
	return pid == 0
}

func takeAll() {
	taken := false
	for _, p := range All() {
		if p.Parent == os.Getpid() && p.Dead {
			taken = take(p.PID) || taken
		}
	}
	if taken {
		children.tell()
	}
}

// take collects an ended child unless somebody else will.
func take(pid int) bool {
	Settle()
	if Known(pid) || !Orphan(pid) {
		return false
	}
	got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return err == nil && got == pid
}

// Orphan reports whether a child of this process was left to it, rather than
// started by other code of this program.
func Orphan(pid int) bool {
	held, sure := heldElsewhere()
	if held[pid] {
		return false
	}
	if Confined(pid) {
		return true
	}
	group, err := unix.Getpgid(pid)
	return sure && err == nil && group != unix.Getpgrp()
}

// Confined reports whether a process runs under more seccomp filters than this
// one, which only our commands do. It holds for ended processes too. Kernels
// that do not count filters (before 5.9) know no Landlock either.
func Confined(pid int) bool {
	filters, err := strconv.Atoi(StatusField(living(pid), "Seccomp_filters"))
	ours, err2 := strconv.Atoi(StatusField(os.Getpid(), "Seccomp_filters"))
	return err == nil && err2 == nil && filters > ours
}

// heldElsewhere lists the processes of which this program holds a pidfd. It is
// not sure when it could not look, or when the system has none.
func heldElsewhere() (pids map[int]bool, sure bool) {
	own, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return nil, false
	}
	defer unix.Close(own)
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, false
	}
	pids, sure = map[int]bool{}, true
	for _, entry := range fds {
		fd, _ := strconv.Atoi(entry.Name())
		if link, err := os.Readlink("/proc/self/fd/" + entry.Name()); err != nil || !strings.Contains(link, "pidfd") {
			continue
		}
		if pid := pidOf(fd); pid != 0 {
			pids[pid] = true
		} else {
			sure = false
		}
	}
	return pids, sure
}

// pidOf is whom a pidfd of this process stands for: -1 for somebody who is gone,
// 0 when that cannot be found out.
func pidOf(fd int) int {
	if info := ended(unix.P_PIDFD, fd); info != 0 {
		return info
	}
	return PidfdTarget("/proc/self/fdinfo/" + strconv.Itoa(fd))
}

// PidfdTarget reads in a fdinfo file whom a pidfd stands for: -1 for somebody who
// is gone or out of sight, 0 when the file does not tell.
func PidfdTarget(fdinfo string) int {
	pid, err := strconv.Atoi(FileField(fdinfo, "Pid"))
	if err == nil && pid == 0 {
		return -1
	}
	return pid
}

// endedChild is a child whose status waits to be collected, 0 when there is none.
func endedChild() int { return ended(unix.P_ALL, 0) }

// ended looks at, and does not collect, a child that has ended.
func ended(kind, id int) int {
	var info unix.Siginfo
	err := unix.Waitid(kind, id, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil || info.Signo == 0 {
		return 0
	}
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), 16))) // si_pid on every 64-bit Linux
}
