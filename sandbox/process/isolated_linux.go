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
type isolated struct{ cell confine.Running }

func startIsolated(in confine.Jail, l launch) (tree, error) {
	p := confine.Program{Path: l.path, Argv: l.argv, Env: l.env, Dir: l.dir, Files: l.files, Terminal: l.terminal, Cancel: l.over, Bounds: l.bounds}
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

func (t isolated) wait() ending {
	status, _ := t.cell.Result()
	return endingOf(status)
}

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

func (t isolated) refusals() []hints.Refusal { return t.cell.Refusals() }
