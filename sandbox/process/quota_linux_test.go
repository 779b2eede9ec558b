package process

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/process/quota"
)

// quotaShell is a session with limits, skipped where a mode is not to be had.
func quotaShell(t *testing.T, mode Mode, q quota.Limits) *Shell {
	t.Helper()
	c, err := NewCommands(Config{Dir: t.TempDir(), Sandbox: mode, Quota: q})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s := c.NewShell()
	if _, err := s.Run(context.Background(), sh("true")); errors.Is(err, ErrUnconfined) {
		t.Skip(err)
	}
	return s
}

// TestQuotaWatch: commands that pass a limit together are ended, and are told why, also
// one that was left running by another; the next command runs.
func TestQuotaWatch(t *testing.T) {
	t.Parallel()
	const hold = "hold() { head -c 50M /dev/zero | tail -c 50M | sleep 60; }; "
	for _, mode := range []Mode{Isolate, Landlock, Off} {
		for said, line := range map[string]string{
			"used more than --max-memory 64M": hold + "hold & hold & wait",
			"--max-processes 12 reached":      "for i in $(seq 30); do sleep 60 & done; wait",
		} {
			t.Run(string(mode)+" "+said, func(t *testing.T) {
				t.Parallel()
				s := quotaShell(t, mode, quota.Limits{MaxMemory: 64 << 20, MaxProcesses: 12})
				res, err := s.Run(context.Background(), sh(line))
				if err != nil || !slices.ContainsFunc(res.Refused, func(r string) bool { return strings.Contains(r, said) }) {
					t.Errorf("%v: %+v %q", err, res.Refused, res.Stderr.Head)
				}
				if res, err := s.Run(context.Background(), sh("echo next")); err != nil || string(res.Stdout.Head) != "next\n" || len(res.Refused) > 0 {
					t.Errorf("the next command: %v %+v", err, res)
				}
			})
		}
	}
}

// TestQuotaIsOfOneSession: what ends one session's commands leaves another's alone.
func TestQuotaIsOfOneSession(t *testing.T) {
	t.Parallel()
	const hold = "hold() { head -c 50M /dev/zero | tail -c 50M | sleep 60; }; hold & "
	for _, mode := range []Mode{Isolate, Landlock, Off} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			one := quotaShell(t, mode, quota.Limits{MaxMemory: 64 << 20})
			other := one.c.NewShell()
			begun, ended := make(chan struct{}), make(chan Result)
			go func() {
				c := once(sh(hold+"sleep 1; echo begun; while [ ! -e stop ]; do sleep 0.1; done; echo lives; kill 0"), func() { close(begun) })
				res, _ := other.Run(context.Background(), c)
				ended <- res
			}()
			<-begun
			res, err := one.Run(context.Background(), sh(hold+hold+"wait"))
			if err != nil || len(res.Refused) == 0 {
				t.Errorf("%v %+v", err, res)
			}
			if err := os.WriteFile(one.c.cfg.Dir+"/stop", nil, 0o644); err != nil {
				t.Error(err)
			}
			if res := <-ended; !strings.Contains(string(res.Stdout.Head), "lives") || len(res.Refused) > 0 {
				t.Errorf("the other: %+v", res)
			}
		})
	}
}

// TestQuotaIsFull: a session that has all of its processes gets no more commands until
// some have ended.
func TestQuotaIsFull(t *testing.T) {
	for _, mode := range []Mode{Isolate, Landlock, Off} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			s := quotaShell(t, mode, quota.Limits{MaxProcesses: 8})
			c := sh("for i in $(seq 7); do sleep 60 & done; echo begun; wait")
			begun, ended := make(chan struct{}), make(chan Result)
			ctx, cancel := context.WithCancel(context.Background())
			go func() { res, _ := s.Run(ctx, once(c, func() { close(begun) })); ended <- res }()
			<-begun
			var full *quota.FullError
			if res, err := s.Run(context.Background(), sh("true")); !errors.As(err, &full) || !strings.Contains(err.Error(), "--max-processes 8 reached") {
				t.Errorf("%+v %v", res, err)
			}
			cancel()
			if res := <-ended; len(res.Refused) > 0 {
				t.Errorf("%+v", res)
			}
			if res, err := s.Run(context.Background(), sh("true")); err != nil || res.ExitCode != 0 {
				t.Errorf("%+v %v", res, err)
			}
		})
	}
}

// TestQuotaLeavesAWayOut: where commands that have ended left running all that a session
// may have, the next one can end that.
func TestQuotaLeavesAWayOut(t *testing.T) {
	for _, mode := range []Mode{Isolate, Landlock, Off} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			s := quotaShell(t, mode, quota.Limits{MaxProcesses: 8})
			left := sh("for i in $(seq 7); do sleep 60 > /dev/null 2>&1 & echo $! >> pids; done")
			if res, err := s.Run(context.Background(), left); err != nil || res.ExitCode != 0 || len(res.Refused) > 0 {
				t.Fatalf("%+v %v", res, err)
			}
			if res, err := s.Run(context.Background(), sh("kill -9 $(cat pids)")); err != nil || res.ExitCode != 0 {
				t.Errorf("%+v %v", res, err)
			}
		})
	}
}

// TestQuotaRests: nobody looks after a session that has no commands.
func TestQuotaRests(t *testing.T) {
	s := quotaShell(t, Off, quota.Limits{MaxMemory: 1 << 40})
	if s.c.Kept()[0].Keeping == quota.Exactly {
		t.Skip("the kernel counts here")
	}
	if _, err := s.Run(context.Background(), sh("sleep 1")); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); s.ration.Watches(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatal("it looks on")
		}
	}
}
