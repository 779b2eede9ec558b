package proc

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

var someBounds = Bounds{Limits: map[int]unix.Rlimit{unix.RLIMIT_CORE: {}}}

// TestSlowForkEndsNobodyElse: a fork that takes long, as many at once do, does not end
// a child of another's that waits for its bounds.
func TestSlowForkEndsNobodyElse(t *testing.T) {
	testlevel.NotQuick(t, "waits for a fork to be slow")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	other, err := Start(func() (int, error) { return forking(os.Stderr, "/bin/true")(true) })
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { // on another thread
		slow, err := Start(func() (int, error) {
			return someBounds.Start(func(stopped bool) (int, error) {
				time.Sleep(2*stuckAfter + stuckAfter/2)
				return forking(os.Stderr, "/bin/true")(stopped)
			})
		})
		if err == nil {
			_, err = Wait(slow)
		}
		ended <- err
	}()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, stops := nextStop(other); !stops {
		t.Error("the other has ended")
	}
	if err := unix.PtraceDetach(other); err != nil {
		t.Error(err)
	}
	if status, err := Wait(other); err != nil || status.ExitStatus() != 0 {
		t.Errorf("the other: %v %v", status, err)
	}
}

// TestStuckForkIsTriedAgain: a child that stands still before its program has begun, for
// whatever signal, is ended, and another one started.
func TestStuckForkIsTriedAgain(t *testing.T) {
	testlevel.NotQuick(t, "waits for a fork to be stuck")
	tries := 0
	pid, err := Start(func() (int, error) {
		return someBounds.Start(func(stopped bool) (int, error) {
			pid, err := forking(os.Stderr, "/bin/true")(stopped)
			tries++
			for begun := time.Now(); stopped && tries == 1 && err == nil; time.Sleep(time.Millisecond) { // as a fork does
				if _, stops := nextStop(pid); !stops {
					break
				}
				if time.Since(begun) > 30*time.Second {
					t.Error("nobody ends it")
					break
				}
			}
			return pid, err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := Wait(pid); err != nil || status.ExitStatus() != 0 || tries != 2 {
		t.Errorf("%v %v after %d tries", status, err, tries)
	}
}

// TestSignalWhileStopped: a signal that comes before a program's first instruction is for
// the program. It is one that nohup leaves alone.
func TestSignalWhileStopped(t *testing.T) {
	for range 300 {
		pid, err := Start(func() (int, error) {
			return someBounds.Start(func(stopped bool) (int, error) {
				pid, err := forking(os.Stderr, "/bin/sleep", "1005")(stopped)
				if err == nil {
					err = Signal(pid, unix.SIGTERM)
				}
				return pid, err
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if status, err := Wait(pid); err != nil || status.Signal() != unix.SIGTERM {
			t.Fatalf("%v %v", status, err)
		}
	}
}

// TestExpendable: a program that goes first when memory runs out does so from the start,
// and this program never takes its place.
func TestExpendable(t *testing.T) {
	own, _ := os.ReadFile(scoreFile)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	pid, err := Start(func() (int, error) {
		return Bounds{Expendable: true}.Start(func(stopped bool) (int, error) {
			if now, _ := os.ReadFile(scoreFile); !bytes.Equal(now, own) {
				t.Errorf("this program has %s, of its own %s", now, own)
			}
			return forking(write, "/bin/cat", scoreFile)(stopped)
		})
	})
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &limit); err == nil && limit.Cur != uint64(OwnMark()) {
		t.Errorf("its mark is %x", limit.Cur)
	}
	if text, _ := io.ReadAll(read); string(text) != firstToGo+"\n" {
		t.Errorf("the program has %q", text)
	}
	if _, err := Wait(pid); err != nil {
		t.Error(err)
	}
}

// TestLateBounds: what is asked for when the program is about to begin holds, too.
func TestLateBounds(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	late := Bounds{Late: func() Bounds {
		return Bounds{Limits: map[int]unix.Rlimit{unix.RLIMIT_NOFILE: {Cur: 77, Max: 77}}}
	}}
	pid, err := Start(func() (int, error) {
		return late.With(Bounds{}).Start(forking(write, "/bin/sh", "-c", "ulimit -n"))
	})
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(read); string(text) != "77\n" {
		t.Errorf("the program has %q", text)
	}
	if _, err := Wait(pid); err != nil {
		t.Error(err)
	}
}
