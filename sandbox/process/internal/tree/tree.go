package tree

import (
	"os"
	"syscall"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"github.com/perstack-ai/perstack-base/sandbox/internal/pty"
)

// A Launch is all that is needed to start a program.
type Launch struct {
	Path     string
	Argv     []string
	Env      []string
	Dir      string
	Files    [3]*os.File     // stdin, stdout, stderr
	Mark     func() string   // the private TMPDIR, by which what escapes the group is known
	Alone    func() bool     // no other command of the session ran meanwhile
	Over     <-chan struct{} // closed: nobody waits for the start any more
	confined bool            // by the kernel
	Terminal bool            // the files are a terminal, which it controls
	Bounds   proc.Bounds     // what it is put under
}

// A Jail is a *confine.Confiner or a *confine.Isolator.
type Jail interface {
	Status() confine.Status
	SelfTest() error
	Fallen() bool
	OpenTerminal() (*pty.Pair, error)
	Close() error
}

// A Tree is a program and everything it started.
type Tree interface {
	Wait() Ending          // blocks until the program itself has ended; called once
	Signal(syscall.Signal) // to all of it
	Kill()                 // ends all of it
	Alive() bool           // anything runs; thorough, for while it is being ended
	Survivors() bool       // anything is known to run on; cheap, for after a normal end
	Release()              // it is over, nothing of it is signalled any more
}

// A Confined is one that the kernel keeps together.
type Confined interface {
	Tree
	Gone() <-chan struct{}     // closed when nothing of it is left
	Refusals() []hints.Refusal // on the record of the kernel's broker
}

// An Ending is how a program ended.
type Ending struct {
	Code   int
	Signal string
}

// End sends trees the signal that asks them to end, and after the grace period, or once now is closed, kills what is left.
func End(now <-chan struct{}, grace time.Duration, ask syscall.Signal, trees ...Tree) {
	for _, t := range trees {
		t.Signal(ask)
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
			t.Kill()
		}
		return
	}
}

func anyAlive(trees []Tree) bool {
	for _, t := range trees {
		if t.Alive() {
			return true
		}
	}
	return false
}
