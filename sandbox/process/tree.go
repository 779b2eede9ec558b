package process

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// A launch is all a starter needs to know.
type launch struct {
	path     string
	argv     []string
	env      []string
	dir      string
	files    [3]*os.File     // stdin, stdout, stderr
	owner    *session        // whose private directory marks what escapes the group
	alone    func() bool     // no other command of the session ran meanwhile
	over     <-chan struct{} // closed: nobody waits for the start any more
	cage     *cage           // what confines it; nil: nothing does
	terminal bool            // the files are a terminal, which it controls
	bounds   proc.Bounds     // what it is put under
}

// startError words what the system said when the program was to be started.
func startError(c *Command, l launch, err error) error {
	if dirErr := checkDir(l.dir); dirErr != nil {
		return dirErr // it vanished meanwhile
	}
	known := []struct{ system, ours error }{
		{syscall.ENOEXEC, ErrBadFormat}, {syscall.E2BIG, ErrArgsTooLong},
		{syscall.ENAMETOOLONG, ErrNoProgram}, {fs.ErrNotExist, ErrNoProgram},
		{syscall.ENOTDIR, ErrNoProgram}, {fs.ErrPermission, ErrNotExecutable}, {syscall.EISDIR, ErrNotExecutable},
	}
	for _, k := range known {
		if ofProgram(err) && errors.Is(err, k.system) {
			err = k.ours
			break
		}
	}
	refused := ""
	if l.cage != nil && (errors.Is(err, ErrNotExecutable) || errors.Is(err, ErrNoProgram)) {
		if refused = l.cage.explainProgram(l.path); refused != "" {
			err = ErrNotExecutable // it was found, but where commands do not see it
		}
	}
	return &StartError{Command: c.Name, What: c.Name, Err: err, Refused: refused}
}

// ofProgram reports whether an error is the system's answer to the program itself: what
// failed before it was tried says so, and is not to be taken for a fault of the program.
func ofProgram(err error) bool {
	_, plain := err.(syscall.Errno)
	path, ofStart := err.(*fs.PathError) // of os.StartProcess
	return plain || ofStart && path.Op == "fork/exec"
}

// A starter starts a program as the leader of a tree of its own. One that
// confines does so on a thread which it restricts and then abandons.
type starter interface {
	start(launch) (tree, error)
}

// A tree is a program and everything it started.
type tree interface {
	wait() ending          // blocks until the program itself has ended; called once
	signal(syscall.Signal) // to all of it
	kill()                 // ends all of it
	alive() bool           // anything runs; thorough, for while it is being ended
	survivors() bool       // anything is known to run on; cheap, for after a normal end
	release()              // it is over, nothing of it is signalled any more
}

// A confinedTree is one that the kernel keeps together.
type confinedTree interface {
	tree
	gone() <-chan struct{}     // closed when nothing of it is left
	refusals() []hints.Refusal // on the record of the kernel's broker
}

// An ending is how a program ended.
type ending struct {
	code   int
	signal string
}

// end sends trees the signal that asks them to end, and after the grace period, or once now is closed, kills what is left.
func end(now <-chan struct{}, grace time.Duration, ask syscall.Signal, trees ...tree) {
	for _, t := range trees {
		t.signal(ask)
	}
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	for pause := time.Millisecond; anyAlive(trees); pause = min(2*pause, 100*time.Millisecond) {
		select {
		case <-time.After(pause):
			continue
		case <-deadline.C:
		case <-now:
		}
		for _, t := range trees {
			t.kill()
		}
		return
	}
}

func anyAlive(trees []tree) bool {
	for _, t := range trees {
		if t.alive() {
			return true
		}
	}
	return false
}
