package proc

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// forking is how programs are started, and what it prints goes to out.
func forking(out *os.File, argv ...string) func(stopped bool) (int, error) {
	return func(stopped bool) (int, error) {
		return syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
			Files: []uintptr{out.Fd(), out.Fd(), out.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true, Ptrace: stopped}})
	}
}

// TestBoundsHoldFromTheStart: a program that looks at its limit first of all finds the one
// that it was put under, and so does one that has been orphaned at once.
func TestBoundsHoldFromTheStart(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &own); err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const rounds = 50
	bounds := Bounds{Limits: map[int]unix.Rlimit{unix.RLIMIT_NOFILE: {Cur: 123, Max: 123}}}
	for range rounds {
		pid, err := Start(func() (int, error) {
			return bounds.Start(forking(file, "/bin/sh", "-c", "(ulimit -n; ulimit -Hn)"))
		})
		if err != nil {
			t.Fatal(err)
		}
		if status, err := Wait(pid); err != nil || status.ExitStatus() != 0 {
			t.Fatalf("%v %v", status, err)
		}
	}
	text, _ := os.ReadFile(file.Name())
	if got := string(text); got != strings.Repeat("123\n", 2*rounds) {
		t.Errorf("programs had the limits %q", got)
	}
	if !Stoppable() {
		t.Error("programs were not stopped before they began")
	}
}

// TestBoundsOfNoProgram: what cannot be executed is told as such.
func TestBoundsOfNoProgram(t *testing.T) {
	_, err := Bounds{Limits: map[int]unix.Rlimit{unix.RLIMIT_CORE: {}}}.Start(forking(os.Stderr, "/no/such"))
	if err != unix.ENOENT {
		t.Error(err)
	}
}

// TestBoundsOnlyLower: a limit that is lower already stays.
func TestBoundsOnlyLower(t *testing.T) {
	b := Bounds{Limits: map[int]unix.Rlimit{unix.RLIMIT_CORE: {Cur: 5, Max: 9}}}.
		With(Bounds{Limits: map[int]unix.Rlimit{unix.RLIMIT_CORE: {Cur: 7, Max: 8}, unix.RLIMIT_DATA: {Cur: 1, Max: 1}}})
	if b.Limits[unix.RLIMIT_CORE] != (unix.Rlimit{Cur: 5, Max: 8}) || len(b.Limits) != 2 {
		t.Error(b.Limits)
	}
}

// TestSessionMarks: processes of one session can be told from those of another.
func TestSessionMarks(t *testing.T) {
	mine, others := SessionMark(), SessionMark()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	pid, err := Start(func() (int, error) { return mine.Bounds().Start(forking(null, "/bin/sleep", "1005")) })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mark Mark
		want int
	}{{mine, 1}, {others, 0}, {OwnMark(), 1}} {
		if got := c.mark.Bearers(); len(got) != c.want || c.want == 1 && got[0] != pid {
			t.Errorf("%x is born by %v", c.mark, got)
		}
	}
	_ = Signal(pid, unix.SIGKILL)
	if _, err := Wait(pid); err != nil {
		t.Error(err)
	}
}

// TestBoundsWithoutStopping: where no program can be made to wait, bounds come late, and
// a program that cannot be executed is told as such.
func TestBoundsWithoutStopping(t *testing.T) {
	defer unstoppable.Store(unstoppable.Load())
	unstoppable.Store(false)
	asked := 0
	refuse := func(stopped bool) (int, error) {
		if asked++; stopped {
			return 0, unix.EPERM
		}
		return forking(os.Stderr, "/bin/sleep", "1005")(false)
	}
	bounds := Bounds{Limits: map[int]unix.Rlimit{unix.RLIMIT_NOFILE: {Cur: 123, Max: 123}}}
	for want := 2; want <= 3; want++ { // the second time it is known
		pid, err := Start(func() (int, error) { return bounds.Start(refuse) })
		if err != nil {
			t.Fatal(err)
		}
		var has unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &has); err != nil || has.Max != 123 {
			t.Errorf("%v %v", has, err)
		}
		if asked != want || Stoppable() {
			t.Errorf("asked %d times, stoppable: %v", asked, Stoppable())
		}
		_ = Signal(pid, unix.SIGKILL)
		if _, err := Wait(pid); err != nil {
			t.Error(err)
		}
	}
}
