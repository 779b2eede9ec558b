package process

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

func startIsolated(in *confine.Isolator, l launch) (tree, error) {
	p := confine.Program{Path: l.path, Argv: l.argv, Env: l.env, Dir: l.dir, Terminal: l.terminal, Cancel: l.over, Bounds: l.bounds}
	for i, f := range l.files {
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

func (t isolated) wait() ending { return endingOf(t.cell.Wait()) }

func (t isolated) signal(sig syscall.Signal) { _ = t.cell.Signal(sig) }

func (t isolated) kill() {
	_ = t.cell.Kill()
	select {
	case <-t.gone():
	case <-time.After(killed):
	}
}

func (t isolated) alive() bool           { return t.cell.Alive() }
func (t isolated) survivors() bool       { return t.cell.Alive() }
func (t isolated) release()              {}
func (t isolated) gone() <-chan struct{} { return t.cell.Done() }

// refusals are on nobody's record here: what may not be reached does not exist.
func (isolated) refusals() []hints.Refusal { return nil }
