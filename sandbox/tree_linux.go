package sandbox

import (
	"bytes"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// children knows which children of this process somebody waits for, and reaps
// the others: orphans of commands, which the kernel hands to this process
// because it is a subreaper (or PID 1).
var children = &reaper{owned: map[int]bool{}}

type reaper struct {
	starting sync.RWMutex // held for reading from fork to own, so that no newborn looks like an orphan
	once     sync.Once
	mu       sync.Mutex
	owned    map[int]bool // leaders of groups, as long as the group may be signalled
	after    []func()     // told when an orphan has ended
}

// adopt makes this process the parent of every orphan that its commands leave.
func (r *reaper) adopt() {
	r.once.Do(func() {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, unix.SIGCHLD)
		go func() {
			for range ended {
				r.reap()
			}
		}()
	})
}

func (r *reaper) own(pid int)       { r.mu.Lock(); r.owned[pid] = true; r.mu.Unlock() }
func (r *reaper) disown(pid int)    { r.mu.Lock(); delete(r.owned, pid); r.mu.Unlock() }
func (r *reaper) owns(pid int) bool { r.mu.Lock(); defer r.mu.Unlock(); return r.owned[pid] }
func (r *reaper) onReap(f func())   { r.mu.Lock(); r.after = append(r.after, f); r.mu.Unlock() }

// reap collects orphans that have ended. It looks without collecting first, so
// the status of a process that somebody waits for is never stolen: neither a
// leader's, nor that of a child which other code of this program started in
// the program's own process group.
func (r *reaper) reap() {
	reaped := false
	for r.reapOne() {
		reaped = true
	}
	if !reaped {
		return
	}
	r.mu.Lock()
	after := r.after
	r.mu.Unlock()
	for _, f := range after {
		f()
	}
}

func (r *reaper) reapOne() bool {
	r.starting.Lock()
	defer r.starting.Unlock()
	pid := endedChild()
	if pid == 0 || r.owns(pid) {
		return false
	}
	if pgid, err := unix.Getpgid(pid); err != nil || pgid == unix.Getpgrp() {
		return false
	}
	_, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return err == nil
}

// endedChild is a child whose status waits to be collected, 0 when there is none.
func endedChild() int {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil || info.Signo == 0 {
		return 0
	}
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), 16))) // si_pid on every 64-bit Linux
}

// ticks is the time since boot as the kernel dates processes, 100 to the second.
func ticks() uint64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return uint64(now.Nano() / int64(10*time.Millisecond))
}

// A proc is one line of the kernel's table of processes.
type proc struct {
	pid, ppid, pgrp int
	born            uint64
	dead            bool
}

// processes reads that table.
func processes() []proc {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	all := make([]proc, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readProc(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

// exiting is the flag of a process that runs no code of its own any more: its
// end has begun in the kernel (PF_EXITING).
const exiting = 0x4

func readProc(pid int) (proc, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	at := bytes.LastIndexByte(stat, ')') // the name before it may hold anything
	if err != nil || at < 0 {
		return proc{}, false
	}
	fields := bytes.Fields(stat[at+1:])
	if len(fields) < 20 {
		return proc{}, false
	}
	number := func(i int) uint64 { n, _ := strconv.ParseUint(string(fields[i]), 10, 64); return n }
	state := fields[0][0]
	return proc{pid: pid, ppid: int(number(1)), pgrp: int(number(2)), born: number(19),
		dead: state == 'Z' || state == 'X' || number(6)&exiting != 0}, true
}

// family is every process for which root holds, and all descendants of those.
func family(all []proc, root func(proc) bool) []proc {
	in := make(map[int]bool)
	var members []proc
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !in[p.pid] && (in[p.ppid] || root(p)) {
				in[p.pid], grown = true, true
				members = append(members, p)
			}
		}
	}
	return members
}

// marked reports whether p was started with the private TMPDIR tmp.
func marked(p proc, tmp string) bool {
	env, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if string(entry) == "TMPDIR="+tmp {
			return true
		}
	}
	return false
}

// orphan reports whether p was left to this process by a command and belongs to no known group.
func orphan(p proc) bool {
	return p.ppid == os.Getpid() && !children.owns(p.pid) && !children.owns(p.pgrp) && p.pgrp != unix.Getpgrp()
}

// escapees are members seen so far, which may leave the group.
type escapees struct {
	mu    sync.Mutex
	known map[int]uint64 // pid, when born
}

func (e *escapees) forget() { e.mu.Lock(); e.known = nil; e.mu.Unlock() }

// members are the living processes of the group, those that left it, and all
// their descendants. A daemon that left the group and was orphaned is known by
// its TMPDIR and its age, unless another command of the session could be its
// origin too; then it ends with the session.
func (g *group) members() []proc {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := processes()
	here := make(map[int]bool)
	for _, p := range family(all, func(p proc) bool { return p.ppid == os.Getpid() }) {
		here[p.pid] = true // numbers are used again: only own descendants are ever signalled
	}
	alone := g.alone()
	found := family(all, func(p proc) bool {
		born, known := g.known[p.pid]
		return here[p.pid] && (p.pgrp == g.pid || known && born == p.born ||
			alone && p.born >= g.born && orphan(p) && marked(p, g.owner.mark()))
	})
	g.known = make(map[int]uint64, len(found))
	living := found[:0]
	for _, p := range found {
		if !p.dead {
			g.known[p.pid] = p.born
			living = append(living, p)
		}
	}
	return living
}

func (g *group) alive() bool { return len(g.members()) > 0 }

// signal reaches every member; false when there is none.
func (g *group) signal(sig syscall.Signal) bool {
	members := g.members()
	if !g.reaped.Load() {
		_ = unix.Kill(-g.pid, sig)
	}
	return signalAll(members, sig)
}

func signalAll(members []proc, sig syscall.Signal) bool {
	for _, p := range members {
		_ = unix.Kill(p.pid, sig)
	}
	return len(members) > 0
}

// strays are what the commands of a session left behind outside all groups.
type strays struct {
	tmp string
	all bool // no other session is open, so every orphan is this one's
}

func (s strays) members() []proc {
	var living []proc
	for _, p := range family(processes(), func(p proc) bool { return orphan(p) && (s.all || marked(p, s.tmp)) }) {
		if !p.dead {
			living = append(living, p)
		}
	}
	return living
}

func (s strays) wait() ending    { return ending{} }
func (s strays) terminate()      { signalAll(s.members(), unix.SIGTERM) }
func (s strays) alive() bool     { return len(s.members()) > 0 }
func (s strays) survivors() bool { return s.alive() }
func (s strays) release()        {}

func (s strays) kill() {
	for range 50 {
		if !signalAll(s.members(), unix.SIGKILL) {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// killMarked ends, from another process, everything that was started with one of these TMPDIRs.
func killMarked(tmps []string, sig syscall.Signal) {
	for _, p := range processes() {
		for _, tmp := range tmps {
			if p.pid != os.Getpid() && marked(p, tmp) {
				_ = unix.Kill(p.pid, sig)
			}
		}
	}
}
