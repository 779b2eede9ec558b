//go:build unix

package tree

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// StartGroup starts a program in a session, and so a process group, of its own: in
// the server's session it could join the groups of other programs. inside: in a
// container, whose files are this machine's in part.
//
// Pdeathsig would be the obvious way to bind children to the server, but it
// fires when the thread that forked ends, and Go ends threads at will. The
// watchdog does it instead.
func StartGroup(l Launch, guard *Watchdog, inside bool) (Tree, error) {
	g := newGroup(l, guard)
	begin := g.begin
	if inside {
		begin = confine.WithoutSetID(begin)
	}
	if _, err := proc.Start(begin); err != nil {
		return nil, err
	}
	guard.groupBegins(g.pid)
	return g, nil
}

// newGroup prepares a group; guard is nil where something else ends it with the server.
func newGroup(l Launch, guard *Watchdog) *group {
	return &group{Launch: l, guard: guard, born: proc.Ticks()}
}

// Groups are those that are not over, by their ids.
var Groups sync.Map

// begin starts the leader from the calling thread.
func (g *group) begin() (pid int, err error) {
	fds := [3]uintptr{g.Files[0].Fd(), g.Files[1].Fd(), g.Files[2].Fd()}
	bounds := proc.Reserved().With(g.Bounds)
	bounds.Expendable = true
	g.pid, err = bounds.Start(func(stopped bool) (int, error) {
		attr := &syscall.ProcAttr{Dir: g.Dir, Env: g.Env, Files: fds[:], Sys: stopWhenBegun(stopped)}
		attr.Sys.Setsid, attr.Sys.Setctty = true, g.Terminal // which is stdin
		path, argv := g.Path, g.Argv
		if stopped && !g.confined { // who is confined gains no rights anyway
			path, argv = throughShell(path, argv)
		}
		return forkExec(path, argv, attr)
	})
	if err == nil {
		Groups.Store(g.pid, g)
	}
	return g.pid, err
}

// forkExec starts a program. A file that was written a moment ago can be busy
// for as long as some other fork still holds its descriptor.
func forkExec(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	for pause := time.Millisecond; ; pause *= 2 {
		pid, err := syscall.ForkExec(path, argv, attr)
		if err != unix.ETXTBSY || pause > 64*time.Millisecond {
			return pid, err
		}
		time.Sleep(pause)
	}
}

// A group is a tree known by its process group, and on Linux by descent.
type group struct {
	Launch
	pid    int
	born   uint64 // when, in ticks since boot
	guard  *Watchdog
	reaped atomic.Bool
	once   sync.Once
	escapees
}

func (g *group) Wait() Ending {
	status, err := proc.Wait(g.pid)
	g.reaped.Store(true)
	if err != nil {
		return Ending{Code: -1} // how it ended is lost; it must not look like success
	}
	return endingOf(status)
}

func endingOf(status syscall.WaitStatus) Ending {
	if status.Signaled() {
		n := status.Signal()
		return Ending{Code: 128 + int(n), Signal: signalName(n)}
	}
	return Ending{Code: status.ExitStatus()}
}

func signalName(n syscall.Signal) string {
	if name := unix.SignalName(n); name != "" {
		return name
	}
	return n.String()
}

func (g *group) Signal(sig syscall.Signal) { g.reach(sig) }

// Kill goes on until a look at the processes finds none of the tree.
func (g *group) Kill() {
	for range 50 {
		if !g.reach(unix.SIGKILL) {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (g *group) Survivors() bool { return proc.Signal(-g.pid, 0) == nil }

func (g *group) Release() {
	g.once.Do(func() {
		Groups.CompareAndDelete(g.pid, g)
		if g.guard != nil {
			g.guard.groupEnds(g.pid)
		}
		g.forget()
	})
}
