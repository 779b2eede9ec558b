package process

import (
	"context"
	"testing"
	"time"
)

// TestIsolatedCommandsStopTheirReaper: commands that stop what holds them together
// are answered at their deadline or once they are cancelled, as are others of the
// session, and Close comes back, also while such commands start.
func TestIsolatedCommandsStopTheirReaper(t *testing.T) {
	const attack = "kill -STOP $PPID; (while :; do kill -STOP $PPID; done) & sleep 1005"
	within := func(what string, do func()) {
		t.Helper()
		done := make(chan struct{})
		go func() { defer close(done); do() }()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal(what + " does not come back")
		}
	}
	s := isolatedShell(t, Config{})
	for range 5 {
		c := sh(attack)
		c.Timeout = 50 * time.Millisecond
		var res Result
		var err error
		within("a command with a deadline", func() { res, err = s.Run(context.Background(), c) })
		if err != nil || !res.TimedOut {
			t.Errorf("at the deadline: %+v %v", res, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(50*time.Millisecond, cancel)
		within("a cancelled command", func() { res, err = s.Run(ctx, sh(attack)) })
		if err == nil && !res.Cancelled {
			t.Errorf("when cancelled: %+v", res)
		}
		within("the next command", func() { res, err = s.Run(context.Background(), sh("echo on")) })
		if err != nil || string(res.Stdout.Head) != "on\n" {
			t.Errorf("the next command: %+v %v", res, err)
		}
	}
	for range 8 {
		go func() { _, _ = s.Run(context.Background(), sh(attack)) }()
	}
	within("Close", func() { _ = s.Close() })
}
