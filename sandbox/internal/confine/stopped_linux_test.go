//go:build amd64 || arm64

package confine

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/namespaces"
	"golang.org/x/sys/unix"
)

// stopperVar makes the test binary stop whom it names, again and again: "parent"
// or "all".
const stopperVar = "CONFINE_TEST_STOPPER"

func beStopper(whom string) {
	victim := -1
	if whom == "parent" {
		victim = os.Getppid()
	}
	for up := false; ; up = true {
		_ = unix.Kill(victim, unix.SIGSTOP)
		if !up {
			_ = os.WriteFile("up", nil, 0o644)
		}
		time.Sleep(30 * time.Microsecond)
	}
}

// within fails the test when something does not come back.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal(what + " does not come back")
	}
}

// attacked is an isolator whose commands attack; a hang must not become one of its Close.
func (p place) attacked(t *testing.T) *namespaces.Isolator {
	t.Helper()
	i, err := namespaces.NewWith(namespaces.Isolation{Policy: p.policy(), Workspace: p.ws}, kernel.Features{})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		within(t, "Close", func() { _ = i.Close() })
		eventually(t, "processes are left", func() bool { return len(p.living()) == 0 })
	})
	return i
}

// launch is Start with a deadline.
func (p place) launch(t *testing.T, i *namespaces.Isolator, env []string, argv ...string) (c *namespaces.Cell) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	within(t, "Start", func() {
		defer null.Close()
		c, err = i.Start(namespaces.Program{Path: argv[0], Argv: argv, Dir: p.ws, Env: append(os.Environ(), env...),
			Files: [3]uintptr{null.Fd(), null.Fd(), null.Fd()}})
	})
	must(t, err)
	return c
}

// kill is Kill, after which nothing may be left. On a busy machine the end may
// follow later than Kill waits for it.
func (p place) kill(t *testing.T, c *namespaces.Cell) {
	t.Helper()
	within(t, "Kill", func() {
		if err := c.Kill(); err != nil && err != namespaces.ErrLives {
			t.Error(err)
		}
	})
	within(t, "Done", func() { <-c.Done() })
	if left := p.living(); len(left) > 0 {
		t.Fatalf("%v survived", left)
	}
}

// goesOnWith starts a next command in the session, which must run to its end.
func (p place) goesOnWith(t *testing.T, i *namespaces.Isolator) {
	t.Helper()
	c := p.launch(t, i, nil, "/bin/sh", "-c", "exit 7")
	var status syscall.WaitStatus
	within(t, "Wait", func() { status = c.Wait(); <-c.Done() })
	if status.ExitStatus() != 7 {
		t.Fatalf("the next command: %v", status)
	}
}

// TestReaperStopped: a command that stops its reaper, at once or again and again,
// itself or by another process, holds up neither its end nor the session.
func TestReaperStopped(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	for name, tt := range map[string]struct {
		script string
		ends   bool
	}{
		"at once":          {"kill -STOP $PPID; sleep 1005", false},
		"and ends":         {"kill -STOP $PPID; exit 3", true},
		"by another":       {"(kill -STOP $PPID; sleep 1005) & sleep 1005", false},
		"again":            {"exec " + exe, false},
		"again by another": {"(while :; do kill -STOP $PPID; done) & exec " + exe, false},
		"another, at end":  {"(while :; do kill -STOP $PPID; done) & exit 3", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			i := p.attacked(t)
			for range 25 {
				c := p.launch(t, i, []string{stopperVar + "=parent"}, "/bin/sh", "-c", tt.script)
				if tt.ends {
					within(t, "Wait", func() {
						if status := c.Wait(); status.ExitStatus() != 3 {
							t.Errorf("ended by %v", status)
						}
					})
				}
				p.goesOnWith(t, i)
				p.kill(t, c)
			}
		})
	}
}

// TestAllStopped: while a command stops all others of the session without end,
// commands start and can be killed, and once it is ended all is as before.
func TestAllStopped(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	p := newPlace(t)
	a, b := p.beside(t, "a"), p.beside(t, "b")
	i := p.attacked(t)
	for range 3 {
		attacker := a.launch(t, i, []string{stopperVar + "=all"}, exe)
		eventually(t, "the attacker did not start", a.isUp)
		for range 10 {
			b.kill(t, b.launch(t, i, nil, "/bin/sh", "-c", "sleep 1005 & sleep 1005"))
		}
		a.kill(t, attacker)
		within(t, "the session", func() { goesOn(i) })
		b.goesOnWith(t, i)
		must(t, os.Remove(filepath.Join(a.ws, "up")))
	}
	a.launch(t, i, []string{stopperVar + "=all"}, exe) // Close ends it
}

// TestStartCancelled: a start whose leader sleeps before it executes anything is
// given up, and leaves nothing.
func TestStartCancelled(t *testing.T) {
	p := newPlace(t)
	i := p.attacked(t)
	cancel := make(chan struct{})
	close(cancel)
	_, err := i.Start(namespaces.Program{Path: "/bin/true", Argv: []string{"true"}, Dir: p.ws, Cancel: cancel})
	if err != namespaces.ErrCancelled {
		t.Errorf("before it began: %v", err)
	}
	p.goesOnWith(t, i)
	within(t, "a start that hangs", func() {
		i.Keeper.Starting.Lock()
		defer i.Keeper.Starting.Unlock()
		_, err = i.StartCalls([3]uintptr{0, 1, 2}, nil, cancel, func(r *namespaces.CellRun) *kernel.Call {
			r.Exec = r.Add(unix.SYS_EXECVE)
			nap := r.Add(unix.SYS_PPOLL)
			nap.Then(r.Exec)
			return nap
		})
	})
	if err != namespaces.ErrCancelled {
		t.Errorf("while it hangs: %v", err)
	}
	eventually(t, "processes are left", func() bool { // the reaper may be about to end
		left, err := i.Procs.List()
		return len(left) == 0 && err == nil
	})
	p.goesOnWith(t, i)
}

// TestStoppedByItsOwn: what a program has stopped stays stopped, also when the note
// that the program has started is late.
func TestStoppedByItsOwn(t *testing.T) {
	p := newPlace(t)
	i := p.attacked(t)
	c := p.launch(t, i, nil, "/bin/sh", "-c", "sleep 1001 & kill -STOP $!; echo up > up; exec sleep 1002")
	stopped := func() (n int) {
		all, err := i.Procs.List()
		must(t, err)
		for _, m := range all {
			if m.State == 'T' {
				n++
			}
		}
		return n
	}
	eventually(t, "nothing was stopped", func() bool { return p.isUp() && stopped() == 1 })
	if c.StandsStill(true) {
		t.Error("the start is taken for one that somebody holds up")
	}
	_, _ = c.Urge(true, 1) // as the start did when it saw a stopped process
	if stopped() != 1 {
		t.Error("what the program stopped was let go on")
	}
	p.kill(t, c)
}
