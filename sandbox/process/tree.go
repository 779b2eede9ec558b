package process

import (
	"os"
	"syscall"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"github.com/perstack-ai/perstack-base/sandbox/internal/pty"
)

// A launch is all that is needed to start a program.
type launch struct {
	path     string
	argv     []string
	env      []string
	dir      string
	files    [3]*os.File     // stdin, stdout, stderr
	mark     func() string   // the private TMPDIR, by which what escapes the group is known
	alone    func() bool     // no other command of the session ran meanwhile
	over     <-chan struct{} // closed: nobody waits for the start any more
	confined bool            // by the kernel
	terminal bool            // the files are a terminal, which it controls
	bounds   proc.Bounds     // what it is put under
}

// A jail is a *confine.Confiner or a *confine.Isolator.
type jail interface {
	Status() Status
	SelfTest() error
	Fallen() bool
	OpenTerminal() (*pty.Pair, error)
	Close() error
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
