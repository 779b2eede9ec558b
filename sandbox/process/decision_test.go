//go:build linux

package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
)

// TestNothingIsTriedBeforeTheFirstUse: what is said of commands costs no probe.
func TestNothingIsTriedBeforeTheFirstUse(t *testing.T) {
	isolatedShell(t, Config{})
	var tried atomic.Int32
	for tier, real := range jails {
		jails[tier] = func(in confine.Isolation) (confine.Jail, error) { tried.Add(1); return real(in) }
		t.Cleanup(func() { jails[tier] = real })
	}
	for _, mode := range Modes {
		tried.Store(0)
		t.Setenv("TMPDIR", t.TempDir())
		s, c := newShell(t, Config{Sandbox: mode, Network: OpenNetwork})
		c.WhenUnconfined(func(why string) {
			if mode != Off {
				t.Error(why)
			}
		})
		if rules := c.Rules(); strings.Contains(rules, "nothing confines them") != (mode == Off) {
			t.Errorf("%s: %s", mode, rules)
		}
		if exposed := c.Exposed(&net.TCPAddr{}); exposed != (mode == Auto || mode == Strict || mode == Isolate) {
			t.Errorf("%s: exposed: %v", mode, exposed)
		}
		_ = s.Close() // a session without a command
		if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 || tried.Load() > 0 {
			t.Errorf("%s: %d tried, %v, %v", mode, tried.Load(), left, err)
		}
		run(t, c.NewShell(), sh("true"))
		if mode != Off && tried.Load() != 1 {
			t.Errorf("%s: the first command tried %d cages, its own should do", mode, tried.Load())
		}
	}
}

// TestWantIsNoDecision: while descriptors are wanting no command runs, and nothing
// is decided for the time when they are not.
func TestWantIsNoDecision(t *testing.T) {
	isolatedShell(t, Config{})
	real := jails[Namespaces]
	t.Cleanup(func() { jails[Namespaces] = real })
	for _, mode := range []Mode{Auto, Strict} {
		s, c := newShell(t, Config{Sandbox: mode})
		c.WhenUnconfined(func(why string) { t.Error("said to be unconfined: ", why) })
		jails[Namespaces] = func(confine.Isolation) (confine.Jail, error) { return nil, &os.SyscallError{Err: syscall.EMFILE} }
		var hinter interface{ Hint() string }
		if res, err := s.Run(t.Context(), sh("echo free")); err == nil || !errors.As(err, &hinter) || !strings.Contains(hinter.Hint(), "ulimit -n") {
			t.Fatalf("%s: %+v, %v", mode, res, err)
		}
		jails[Namespaces] = real
		if res := run(t, s, sh("cat "+outside(t))); res.ExitCode == 0 || c.confinement.decision.tier != Namespaces {
			t.Errorf("%s: %+v in %s", mode, res, c.confinement.decision.tier)
		}
	}
}

// TestUnconfinedIsSaidOnce, when the first command shows it.
func TestUnconfinedIsSaidOnce(t *testing.T) {
	without(t, Namespaces)
	without(t, Threads)
	s, c := newShell(t, Config{Sandbox: Auto})
	var said []string
	c.WhenUnconfined(func(why string) { said = append(said, why) })
	if said != nil {
		t.Errorf("before anything was tried it says %q", said)
	}
	for range 2 {
		run(t, s, sh("true"))
	}
	if len(said) != 1 || said[0] != "there is no namespaces; there is no threads" {
		t.Errorf("it says %q", said)
	}
}

// TestAutoTakesWhatIsUnproven rather than nothing; strict does not.
func TestAutoTakesWhatIsUnproven(t *testing.T) {
	isolatedShell(t, Config{})
	for tier, real := range jails {
		jails[tier] = func(in confine.Isolation) (confine.Jail, error) {
			made, err := real(in)
			if err != nil {
				return nil, err
			}
			return unproven{made}, nil
		}
		t.Cleanup(func() { jails[tier] = real })
	}
	_, c := newShell(t, Config{Sandbox: Auto})
	if ok, why := c.Confined(); !ok || c.confinement.decision.tier != Namespaces {
		t.Errorf("confined %v by %s: %s", ok, c.confinement.decision.tier, why)
	}
	s, _ := newShell(t, Config{Sandbox: Strict})
	if _, err := s.Run(t.Context(), sh("true")); !errors.Is(err, ErrUnconfined) {
		t.Errorf("a command: %v", err)
	}
}

// unproven is a jail whose self-test fails.
type unproven struct{ confine.Jail }

func (unproven) SelfTest() error { return errors.New("nothing could be tried") }

// TestFirstSessions: many that begin at once share one decision.
func TestFirstSessions(t *testing.T) {
	isolatedShell(t, Config{})
	_, c := newShell(t, Config{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s := c.NewShell()
			if res, err := s.Run(t.Context(), sh("cat /etc/shadow; echo mine > $TMPDIR/f && ls $TMPDIR")); err != nil || string(res.Stdout.Head) != "f\n" {
				t.Errorf("%s %s %v", res.Stdout.Head, res.Stderr.Head, err)
			}
			_ = s.Close()
		})
	}
	all.Wait()
}

// TestFullIsNoDecision: while all namespaces are in use no command runs, neither
// below Landlock nor without anything, and nothing is decided for later.
func TestFullIsNoDecision(t *testing.T) {
	isolatedShell(t, Config{})
	if forbidden(namespaceLimits) {
		t.Skip("there may be no namespaces here")
	}
	real := jails[Namespaces]
	t.Cleanup(func() { jails[Namespaces] = real })
	for _, full := range []error{syscall.ENOSPC, syscall.EUSERS} {
		s, c := newShell(t, Config{Sandbox: Auto})
		c.WhenUnconfined(func(why string) { t.Error("said to be unconfined: ", why) })
		jails[Namespaces] = func(confine.Isolation) (confine.Jail, error) { return nil, fmt.Errorf("no namespaces: %w", full) }
		var room *NoRoomError
		if res, err := s.Run(t.Context(), sh("echo free")); !errors.As(err, &room) {
			t.Fatalf("%v: a command ran: %+v, %v", full, res, err)
		}
		jails[Namespaces] = real
		if res := run(t, s, sh("cat "+outside(t))); res.ExitCode == 0 || c.confinement.decision.tier != Namespaces {
			t.Errorf("%v: %+v in %s", full, res, c.confinement.decision.tier)
		}
	}
}

// TestForbiddenNamespaces: none at all is final, unlike too many.
func TestForbiddenNamespaces(t *testing.T) {
	limits := t.TempDir()
	for text, want := range map[string]bool{"0\n": true, "10\n": false} {
		if err := os.WriteFile(filepath.Join(limits, "max_pid_namespaces"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if forbidden(limits) != want {
			t.Errorf("%q: forbidden is %v", text, !want)
		}
	}
}
