//go:build amd64 || arm64

package namespaces

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// A Program is what an Isolator starts. All paths are those of the host; the
// program sees the same ones.
type Program struct {
	Path  string // absolute
	Argv  []string
	Env   []string
	Dir   string
	Files [3]uintptr // descriptors of stdin, stdout, stderr

	Terminal bool // stdin becomes the controlling terminal of a session of the program's own

	Cancel <-chan struct{} // closed: a start that takes long is given up

	Bounds proc.Bounds // what it is put under
}

// A Cell is one program and everything it started, which cannot leave the reaper
// that all of it descends from. Others of the session see it and may signal it.
// It ends with the server.
type Cell struct {
	isolator *Isolator
	reaper   int      // seen from inside, like all ids here
	program  int      // the leader
	notes    *os.File // who has ended in the cell

	mu     sync.Mutex    // held while the reaper's id must stay its own
	ended  bool          // the reaper has
	leader chan struct{} // closed when the program has ended
	over   bool          // it is closed: follow's
	status syscall.WaitStatus
	done   chan struct{} // closed when nothing is left
	dying  atomic.Bool   // strikeOn is at it
}

// Start runs a program in a new cell. An error is the system's reason why it
// could not be executed, or says which step before that failed.
func (i *Isolator) Start(p Program) (*Cell, error) {
	if err := noNUL(append(append([]string{p.Path, p.Dir}, p.Argv...), p.Env...)...); err != nil {
		return nil, err
	}
	i.Keeper.Starting.Lock()
	defer i.Keeper.Starting.Unlock()
	select {
	case <-p.Cancel: // while others started
		return nil, ErrCancelled
	default:
	}
	return i.StartCalls(p.Files, p.Bounds.Group, p.Cancel, func(r *CellRun) *kernel.Call { return i.writeProgram(r, p) })
}

// StartCalls makes a cell whose leader makes the calls that write writes. The caller
// holds starting until it needs their results no more.
func (i *Isolator) StartCalls(files [3]uintptr, group *os.File, cancel <-chan struct{}, write func(*CellRun) *kernel.Call) (*Cell, error) {
	k := i.Keeper
	if k.arena.mem == nil {
		return nil, errors.New("the isolator is closed")
	}
	notes, told, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if err := k.reset(); err != nil {
		closeFiles(notes, told)
		return nil, err
	}
	r := &CellRun{arena: k.arena}
	k.enter.Nr = unix.SYS_SETPGID
	k.enter.Then(write(r))
	if k.arena.full() {
		closeFiles(notes, told)
		return nil, unix.E2BIG
	}
	given := []int{int(files[0]), int(files[1]), int(files[2]), int(told.Fd())}
	if group != nil {
		given = append(given, int(group.Fd()))
	}
	err = k.begin(k.fork, k.fork, given...)
	told.Close()
	if err != nil {
		notes.Close()
		return nil, err
	}
	return i.begin(r, notes, cancel)
}

// begin waits until the program is executed or cannot be.
func (i *Isolator) begin(r *CellRun, notes *os.File, cancel <-chan struct{}) (*Cell, error) {
	c := &Cell{isolator: i, notes: notes, leader: make(chan struct{}), done: make(chan struct{}),
		status: syscall.WaitStatus(unix.SIGKILL)}
	n, err := c.began(cancel)
	if err == ErrCancelled || err == errSlowStart {
		c.forked()
		go c.follow(false)
		c.giveUp()
		return nil, err
	}
	c.reaper, c.program = int(*i.Keeper.born), int(n.pid)
	go c.follow(err != nil)
	failure := r.failure()
	if err == nil && c.program > 0 && failure == nil {
		return c, nil
	}
	<-c.done // none of it makes calls from the arena any more
	if failure == nil {
		failure = i.Keeper.whyNot(unix.Errno(-c.program))
	}
	if failure != nil {
		return nil, failure
	}
	return c, nil // it was quick, and has killed its reaper
}

// follow takes down who ends, until the cell is empty. A reaper that ends before
// that was killed, and what it held together falls to the keeper.
func (c *Cell) follow(killed bool) {
	for !killed {
		n, err := c.next()
		if killed = err != nil; killed || n.pid == 0 {
			break
		}
		if int(n.pid) == c.program && c.takeEnd(syscall.WaitStatus(n.status)) {
			c.isolator.mend()
			close(c.leader)
		}
	}
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	if killed {
		c.isolator.sweep()
	}
	c.isolator.mend()
	c.notes.Close()
	if !c.over {
		close(c.leader)
	}
	close(c.done)
}

// takeEnd takes down how the program has ended, and reports whether it has now. Who has
// itself traced by the reaper is told of when it stops, too; and later the program's
// number can be that of another process, which falls to the reaper.
func (c *Cell) takeEnd(status syscall.WaitStatus) bool {
	if c.over || !status.Exited() && !status.Signaled() {
		return false
	}
	c.status, c.over = status, true
	return true
}

// Wait blocks until the program has ended and returns how; others of the cell
// may go on.
func (c *Cell) Wait() syscall.WaitStatus {
	<-c.leader
	return c.status
}

// Alive reports whether a process of the cell is left.
func (c *Cell) Alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// Done is closed when no process of the cell is left.
func (c *Cell) Done() <-chan struct{} { return c.done }

func closeFiles(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}
