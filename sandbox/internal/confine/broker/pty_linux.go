//go:build amd64 || arm64

package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"github.com/perstack-ai/perstack-base/sandbox/internal/pty"
)

// Pseudo terminals of the session and those of the user lie in one directory, so
// Landlock grants none of it. A command makes a terminal by opening /dev/ptmx;
// the other end, /dev/pts/N, it gets from the broker, if a process of the session
// holds the master with that number. As long as one does, the number is nobody
// else's.

// terminals is where the kernel shows them.
const terminals = pty.Dir

// open answers such a call. What is no terminal the kernel opens, or Landlock
// refuses: it looks at the path again.
func (q *Question) open(from uint64, flags int) Answer {
	path, e := q.path(from)
	if e != 0 {
		return Answer{Run: true}
	}
	name, ok := strings.CutPrefix(filepath.Clean(path), terminals)
	number, err := strconv.Atoi(name)
	if !ok || err != nil || number < 0 {
		return Answer{Run: true}
	}
	path = terminals + strconv.Itoa(number)
	if !q.ownsTerminal(number) {
		return q.refuse(unix.EACCES, "open "+path+", a terminal of another program", "")
	}
	fd, err := unix.Open(path, flags&(unix.O_ACCMODE|unix.O_NONBLOCK)|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return failed(err)
	}
	defer unix.Close(fd)
	// The number may have changed hands before the open. Is it the session's again
	// now, then what was opened before has been hung up.
	if !q.ownsTerminal(number) {
		return Fail(unix.EIO)
	}
	return q.give(fd, flags&unix.O_CLOEXEC)
}

// give hands the asker a copy of a descriptor of ours.
func (q *Question) give(fd, flags int) Answer {
	a := addFD{id: q.id, src: uint32(fd), newFlags: uint32(flags)}
	num, e := q.broker.controlValue(ioctlAddFD, unsafe.Pointer(&a))
	return Answer{val: int64(num), err: e}
}

// ownsTerminal reports whether the server made a terminal for the session, or a
// process of the session holds its master: mostly the asker itself or its parent.
func (q *Question) ownsTerminal(number int) bool {
	if q.broker.session.Given.has(number) {
		return true
	}
	if holdsMaster(q.process(), number) && q.valid() {
		return true
	}
	for _, p := range proc.All() {
		if holdsMaster(p.PID, number) && q.broker.session.has(p.PID) {
			return true
		}
	}
	return false
}

// isOwnTerminal reports whether an opened object is a terminal of the session's.
func (q *Question) isOwnTerminal(o object) bool {
	name, ok := strings.CutPrefix(o.path, terminals)
	number, err := strconv.Atoi(name)
	return ok && err == nil && q.ownsTerminal(number)
}

// holdsMaster reports whether a process has the master of a terminal open.
func holdsMaster(pid, number int) bool {
	dir := fmt.Sprintf("/proc/%d/", pid)
	fds, err := os.ReadDir(dir + "fd")
	if err != nil {
		return false
	}
	for _, fd := range fds {
		link, _ := os.Readlink(dir + "fd/" + fd.Name())
		if link != "/dev/ptmx" && link != terminals+"ptmx" {
			continue
		}
		if index, err := strconv.Atoi(proc.FileField(dir+"fdinfo/"+fd.Name(), "tty-index")); err == nil && index == number {
			return true
		}
	}
	return false
}

// has reports whether a process belongs to the session.
func (c *Session) has(pid int) bool {
	if !c.Kernel.Scoped() {
		return c.descends(pid)
	}
	for _, w := range c.watchers(false) {
		if w.Has(pid) {
			return true
		}
	}
	return false
}

// givenTerminals are the masters, which the server holds, of terminals that it
// gave to commands.
type givenTerminals struct {
	mu      sync.Mutex
	masters []*os.File
}

// Add takes a terminal down as the session's.
func (g *givenTerminals) Add(master *os.File) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.masters = append(g.open(), master)
}

// has reports whether one of them is open that has the number: only then it is
// nobody else's.
func (g *givenTerminals) has(number int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.masters {
		if pty.NumberOf(m) == number {
			return true
		}
	}
	return false
}

// open lists those that are not closed yet; mu is held.
func (g *givenTerminals) open() (open []*os.File) {
	for _, m := range g.masters {
		if pty.NumberOf(m) >= 0 {
			open = append(open, m)
		}
	}
	return open
}
