package process

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox"
	"golang.org/x/sys/unix"
)

// TestManyLeftRunning: commands that leave processes running, by the hundred, do not use up
// the server's descriptors. What one too many has left ends, and it is told so; commands go on.
func TestManyLeftRunning(t *testing.T) {
	for _, mode := range []Mode{Isolate, Landlock, Off} {
		t.Run(string(mode), func(t *testing.T) {
			const most = 3
			s, c := newShell(t, Config{Sandbox: mode, Limits: sandbox.Limits{LeftCommands: most}})
			if mode != Off {
				if ok, why := c.Confined(); !ok {
					t.Skip(why)
				}
			}
			leave := func() Result {
				t.Helper()
				res, err := s.Run(t.Context(), Command{Name: "sh", Args: []string{"-c", "sleep 1000 >/dev/null 2>&1 & echo $! >> left"}, Stdout: true, Stderr: true, Timeout: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			told := func(r Result) bool {
				return slices.ContainsFunc(r.Refused, func(sentence string) bool { return strings.Contains(sentence, "left running") })
			}
			for range most {
				if res := leave(); told(res) {
					t.Fatalf("one that may is told %q", res.Refused)
				}
			}
			for range 3 * most {
				if res := leave(); !told(res) {
					t.Fatalf("one too many is told %q", res.Refused)
				}
			}
			until(t, "what they left ends", func() bool {
				s.prune()
				s.mu.Lock()
				defer s.mu.Unlock()
				return len(s.left) == most
			})
			if res, err := s.Run(t.Context(), Command{Name: "sh", Args: []string{"-c", "kill -9 $(head -n 1 left)"}, Stdout: true, Stderr: true, Timeout: time.Minute}); err != nil || res.ExitCode != 0 {
				t.Errorf("%v: exit code %d: %s%s", err, res.ExitCode, res.Stdout.Head, res.Stderr.Head)
			}
			until(t, "there is room again", func() bool { return !told(leave()) })
		})
	}
}

// TestNoDescriptorsForCommands: commands that hold nearly all of the server's descriptors
// leave some to its file tools, and the next one is told what is wrong.
func TestNoDescriptorsForCommands(t *testing.T) {
	s, _ := newShell(t, Config{Sandbox: Off})
	run(t, s, sh("true"))
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	less := limit
	less.Cur = 256
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &less); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) }()
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	for range less.Cur {
		waiting.Go(func() {
			for ctx.Err() == nil {
				_, _ = s.Run(ctx, sh("sleep 1000"))
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	var room *NoRoomError
	until(t, "there is room for any number of commands", func() bool {
		_, err := s.Run(t.Context(), sh("true"))
		return errors.As(err, &room) && room.Command
	})
	until(t, "no descriptor is left for files", func() bool {
		file, err := os.Open(os.DevNull)
		if err == nil {
			err = file.Close()
		}
		return err == nil
	})
}
