//go:build amd64 || arm64

package confine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// A Program is what an Isolator starts. All paths are those of the host; the
// program sees the same ones.
type Program struct {
	Path  string // absolute
	Argv  []string
	Env   []string
	Dir   string
	Files [3]uintptr // descriptors of stdin, stdout, stderr: above 2, or in place
}

// A Cell is one program and everything it started: a process namespace. Nothing
// leaves it, and it ends with the server.
type Cell struct {
	isolator *Isolator
	run      *cellRun
	guard    int      // a process outside: kills the cell when its line breaks
	line     *os.File // that line
	notes    *os.File // who has ended in the cell

	mu     sync.Mutex
	reaped bool
	leader chan struct{} // closed when the program has ended
	status syscall.WaitStatus
	done   chan struct{} // closed when nothing is left
}

// Start runs a program in a new cell. An error is the system's reason why it
// could not be executed, or says which step before that failed.
func (i *Isolator) Start(p Program) (*Cell, error) {
	r, leader, err := i.program(p)
	if err != nil {
		return nil, err
	}
	return i.start(r, leader)
}

// start makes a cell whose leader makes the calls from first on.
func (i *Isolator) start(r *cellRun, first *call) (*Cell, error) {
	i.starting.RLock()
	defer i.starting.RUnlock()
	if i.closed {
		r.release()
		return nil, errors.New("the isolator is closed")
	}
	pipes, err := openPipes()
	if err != nil {
		r.release()
		return nil, err
	}
	i.cell(r, pipes, first)
	c := &Cell{isolator: i, run: r, leader: make(chan struct{}), done: make(chan struct{}),
		status: syscall.WaitStatus(unix.SIGKILL), line: pipes.line[1], notes: pipes.notes[0]}
	c.guard, err = spawn(unix.CLONE_VM, r.start)
	pipes.closeTheirs()
	if err == nil {
		err = c.begin(pipes.ready[0])
	} else {
		pipes.closeOurs()
		r.release()
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// begin waits until the program is executed or cannot be.
func (c *Cell) begin(ready *os.File) error {
	_, _ = ready.Read(make([]byte, 1)) // ends with the last copy of its other end
	ready.Close()
	if c.run.init() == 0 { // the cell was never made
		c.line.Close()
		reapClone(c.guard)
		c.notes.Close()
		defer c.run.release()
		return cmp.Or(c.run.failure(), errors.New("isolating the command: its guard was killed"))
	}
	err := c.run.failure()
	c.isolator.remember(c)
	go c.follow()
	if err != nil {
		_ = c.Kill()
		<-c.done
	}
	return err
}

// follow takes down who ends, until the cell is empty.
func (c *Cell) follow() {
	var note [16]byte // see cellRun.wait
	for {
		if _, err := io.ReadFull(c.notes, note[:]); err != nil {
			break
		}
		status, pid := binary.NativeEndian.Uint32(note[:]), binary.NativeEndian.Uint64(note[8:])
		if int(pid) == int(c.run.leader) {
			c.status = syscall.WaitStatus(status)
			close(c.leader)
		}
	}
	c.notes.Close()
	c.collect()
	select {
	case <-c.leader:
	default:
		close(c.leader)
	}
	c.run.release()
	c.isolator.forget(c)
	close(c.done)
}

// collect waits for the end of the cell, which the kernel puts after the end of
// every process in it. Its id is not given up before the guard has ended, which
// would signal whoever got it next.
func (c *Cell) collect() {
	pid := c.run.init()
	_ = ignoringEINTR(func() error {
		return unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT|unix.WALL, nil)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line.Close()
	reapClone(c.guard)
	reapClone(pid)
	c.reaped = true
}

// Wait blocks until the program has ended and returns how; others of the cell
// may go on.
func (c *Cell) Wait() syscall.WaitStatus {
	<-c.leader
	return c.status
}

// Kill kills every process of the cell.
func (c *Cell) Kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return nil
	}
	return proc.Signal(c.run.init(), unix.SIGKILL)
}

// Signal sends sig to every process of the cell.
func (c *Cell) Signal(sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pid := range c.members() {
		_ = proc.Signal(pid, sig) // gone is as good
	}
	return nil
}

// members lists the processes of the cell by their ids outside, without its
// init, from which all the others descend.
func (c *Cell) members() (pids []int) {
	if c.reaped {
		return nil
	}
	init := c.run.init()
	for _, p := range proc.Family(proc.All(), func(p proc.Process) bool { return p.Parent == init }) {
		if !p.Dead {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// Guard is the process outside that kills the cell should the server die. It
// leads the process group of the cell's init.
func (c *Cell) Guard() int { return c.guard }

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

// cellPipes are the lines between the server and a cell: ready breaks when the
// program is executed, line when the server ends, notes when the cell does.
type cellPipes struct{ ready, line, notes [2]*os.File }

func openPipes() (p cellPipes, err error) {
	for _, pipe := range []*[2]*os.File{&p.ready, &p.line, &p.notes} {
		if pipe[0], pipe[1], err = os.Pipe(); err != nil {
			p.closeOurs()
			p.closeTheirs()
			return p, err
		}
	}
	return p, nil
}

func (p cellPipes) closeTheirs() { closeFiles(p.ready[1], p.line[0], p.notes[1]) }
func (p cellPipes) closeOurs()   { closeFiles(p.ready[0], p.line[1], p.notes[0]) }

func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
