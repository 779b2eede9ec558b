package tree

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
)

// An isolated tree is a cell in the session's namespaces. It ends with the
// server, without a watchdog.
type isolated struct{ cell *confine.Cell }

func startIsolated(in *confine.Isolator, l Launch) (Tree, error) {
	p := confine.Program{Path: l.Path, Argv: l.Argv, Env: l.Env, Dir: l.Dir, Terminal: l.Terminal, Cancel: l.Over, Bounds: l.Bounds}
	for i, f := range l.Files {
		p.Files[i] = f.Fd()
	}
	for pause := time.Millisecond; ; pause *= 2 {
		cell, err := in.Start(p)
		if err == nil {
			return isolated{cell}, nil
		}
		if err != unix.ETXTBSY || pause > 64*time.Millisecond { // see forkExec
			return nil, err
		}
		time.Sleep(pause)
	}
}

func (t isolated) Wait() Ending { return endingOf(t.cell.Wait()) }

func (t isolated) Signal(sig syscall.Signal) { _ = t.cell.Signal(sig) }

func (t isolated) Kill() {
	_ = t.cell.Kill()
	select {
	case <-t.Gone():
	case <-time.After(killed):
	}
}

func (t isolated) Alive() bool           { return t.cell.Alive() }
func (t isolated) Survivors() bool       { return t.cell.Alive() }
func (t isolated) Release()              {}
func (t isolated) Gone() <-chan struct{} { return t.cell.Done() }

// Refusals are on nobody's record here: what may not be reached does not exist.
func (isolated) Refusals() []hints.Refusal { return nil }
