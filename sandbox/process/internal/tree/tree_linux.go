package tree

import (
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
)

// stopWhenBegun has a program stop before its first instruction; see [proc.Bounds].
func stopWhenBegun(stopped bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Ptrace: stopped} }

// throughShell is how a program is started that stops where it begins: one that has rights
// of its own (sudo, ping), or that cannot be read, by a shell which stops in its place.
// Linux gives no such rights to what somebody traces, and hides what cannot be read.
func throughShell(path string, argv []string) (string, []string) {
	if !privileged(path) && unix.Access(path, unix.R_OK) == nil || !environ.MayExecute(shell) {
		return path, argv
	}
	return shell, append([]string{shell, "-c", `exec "$0" "$@"`, path}, argv[1:]...)
}

// shell is where every system has one.
const shell = "/bin/sh"

// privileged reports whether a program gets another user, group or capabilities when it
// is executed.
func privileged(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	_, absent := unix.Getxattr(path, "security.capability", nil)
	return info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 || absent == nil
}

// Marked reports whether p was started with the private TMPDIR tmp.
func Marked(p proc.Process, tmp string) bool {
	return slices.Contains(proc.Environ(p.PID), "TMPDIR="+tmp)
}

// orphan reports whether p was left to this process by a command and belongs to no group that is not over.
func orphan(p proc.Process) bool {
	_, grouped := Groups.Load(p.Group)
	return !grouped && p.Parent == os.Getpid() && !proc.Known(p.PID) && proc.Orphan(p.PID)
}

// Processes are those of the machine, with all of our own children among them known.
func Processes() []proc.Process {
	all := proc.All()
	proc.Settle()
	return all
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
func (g *group) members() []proc.Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.among(Processes())
}

// seen are the members but for those that begin meanwhile: enough to look at, and found sooner.
func (g *group) seen() []proc.Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	near := proc.Near(append(slices.Collect(maps.Keys(g.known)), g.pid)...)
	proc.Settle()
	return g.among(near)
}

// among picks the members, and keeps in mind which they are.
func (g *group) among(all []proc.Process) []proc.Process {
	here := make(map[int]bool)
	for _, p := range proc.Family(all, func(p proc.Process) bool { return p.Parent == os.Getpid() }) {
		here[p.PID] = true // numbers are used again: only own descendants are ever signalled
	}
	alone := g.Alone()
	found := proc.Family(all, func(p proc.Process) bool {
		born, known := g.known[p.PID]
		return here[p.PID] && (p.Group == g.pid || known && born == p.Born ||
			alone && p.Born >= g.born && orphan(p) && Marked(p, g.Mark()))
	})
	g.known = make(map[int]uint64, len(found))
	living := found[:0]
	for _, p := range found {
		if !p.Dead {
			g.known[p.PID] = p.Born
			living = append(living, p)
		}
	}
	return living
}

func (g *group) Alive() bool { return len(g.members()) > 0 }

// reach signals every member; false when there is none.
func (g *group) reach(sig syscall.Signal) bool {
	members := g.members()
	if !g.reaped.Load() {
		_ = proc.Signal(-g.pid, sig)
	}
	return signalAll(members, sig)
}

func signalAll(members []proc.Process, sig syscall.Signal) bool {
	for _, p := range members {
		_ = proc.Signal(p.PID, sig)
	}
	return len(members) > 0
}

// Strays are what the commands of a session left behind outside all groups.
type Strays struct {
	Tmp string
	All bool // no other session is open, so every orphan is this one's
}

func (s Strays) members() []proc.Process {
	var living []proc.Process
	for _, p := range proc.Family(Processes(), func(p proc.Process) bool { return orphan(p) && (s.All || Marked(p, s.Tmp)) }) {
		if !p.Dead {
			living = append(living, p)
		}
	}
	return living
}

func (s Strays) Wait() Ending              { return Ending{} }
func (s Strays) Signal(sig syscall.Signal) { signalAll(s.members(), sig) }
func (s Strays) Alive() bool               { return len(s.members()) > 0 }
func (s Strays) Survivors() bool           { return s.Alive() }
func (s Strays) Release()                  {}

func (s Strays) Kill() {
	for range 50 {
		if !signalAll(s.members(), unix.SIGKILL) {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// KillMarked ends, from another process, everything that was started with one of these TMPDIRs.
func KillMarked(tmps []string, sig syscall.Signal) {
	for _, p := range Processes() {
		for _, tmp := range tmps {
			if p.PID != os.Getpid() && Marked(p, tmp) {
				_ = proc.Signal(p.PID, sig)
			}
		}
	}
}
