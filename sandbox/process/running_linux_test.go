package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox"
)

// begin starts a command line that runs on; on a terminal where size is not nil.
func begin(t testing.TB, s *Shell, line string, size *Size) *Running {
	t.Helper()
	r, err := s.Start(context.Background(), Command{Name: "bash", Args: []string{"-c", line}, Label: line, Terminal: size, Env: map[string]string{"TERM": "xterm"}})
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return r
}

var screenSize = &Size{Rows: 24, Columns: 80}

// longest stops a test that hangs.
const longest = time.Minute

// until waits for a condition.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(longest); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come to this: ", what)
		}
	}
}

// shown is all that a command has written.
func shown(r *Running) string {
	p := r.Output(0, nil)
	return strings.ReplaceAll(string(p.First)+string(p.Last), "\r", "")
}

func shows(t testing.TB, r *Running, want string) {
	t.Helper()
	until(t, fmt.Sprintf("%s shows %q", r.Label, want), func() bool { return strings.Contains(shown(r), want) })
}

func waits(t testing.TB, r *Running) Needs {
	t.Helper()
	until(t, r.Label+" waits for input", func() bool { return r.Needs().Input })
	return r.Needs()
}

func typed(t testing.TB, r *Running, chars string, end bool) {
	t.Helper()
	if err := r.Write([]byte(chars), end); err != nil {
		t.Fatalf("%s: %v", r.Label, err)
	}
}

func exits(t testing.TB, r *Running) Result {
	t.Helper()
	select {
	case <-r.Ended():
	case <-time.After(longest):
		t.Fatalf("%s does not end: %q", r.Label, shown(r))
	}
	res, _ := r.Result()
	return res
}

// TestRunningTalks: programs that ask are seen to wait, by the kernel alone, and get
// what is typed.
func TestRunningTalks(t *testing.T) {
	s, _ := newShell(t, Config{})
	for _, c := range []struct {
		program, line string
		terminal      bool
		chars, want   string
		quiet         bool
	}{
		{"cat", "cat", false, "one\n", "one", false},
		{"cat", "sh -c 'cat | cat'", false, "two\n", "two", false},
		{"bash", "bash --norc -i", true, "echo a$((1+1))b\n", "a2b", false},
		{"stty", "stty -echo; read x; stty echo; echo =$x=", true, "secret\n", "=secret=", true},
		{"bash", "read -s x; echo =$x=", true, "secret\n", "=secret=", true},
		{"bash", "read -s x </dev/tty; echo =$x=", true, "secret\n", "=secret=", true},
		{"python3", "python3 -q", true, "40+2\n", "\n42", false},
		{"python3", "python3 -iq", false, "40+2\n", "42", false},
		{"less", "seq 100 | less", true, "q", "", false},
		{"ssh-keygen", "ssh-keygen -t ed25519 -f $TMPDIR/key", true, "pass word\n", "again", true},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.program); err != nil {
				t.Skip("it is not installed")
			}
			r := begin(t, s, c.line, map[bool]*Size{true: screenSize}[c.terminal])
			if n := waits(t, r); n.Quiet != c.quiet {
				t.Errorf("%+v", n)
			}
			typed(t, r, c.chars, false)
			shows(t, r, c.want)
			if c.quiet && strings.Contains(strings.Split(shown(r), "=")[0], "secret") {
				t.Errorf("a secret is shown: %q", shown(r))
			}
			_ = r.Kill(context.Background(), syscall.SIGKILL)
			exits(t, r)
		})
	}
}

// TestRunningClaimsNothing: what works, or waits for something else as well, does
// not wait for input.
func TestRunningClaimsNothing(t *testing.T) {
	t.Parallel()
	s, _ := newShell(t, Config{})
	for _, line := range []string{
		"echo begun; sleep 86400",
		"echo begun; read x & while :; do :; done",
		"echo begun; yes >/dev/null",
		"exec 0</dev/null; echo begun; sleep 86400 | cat",
		"echo begun; while ! read -t 0.02 x; do :; done",
		`exec python3 -c 'import select,socket,sys
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
print("begun", flush=True); select.select([s, sys.stdin], [], [])'`,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			for _, size := range []*Size{nil, screenSize} {
				r := begin(t, s, line, size)
				shows(t, r, "begun")
				for range 20 {
					if n := r.Needs(); n.Input {
						t.Fatalf("it claims %+v", n)
					}
					time.Sleep(5 * time.Millisecond)
				}
				_ = r.Kill(context.Background(), syscall.SIGKILL)
			}
		})
	}
}

// TestRunningRecord: positions count all bytes, and both ends are exact.
func TestRunningRecord(t *testing.T) {
	s, _ := newShell(t, Config{Limits: sandbox.Limits{OutputFirst: 1000, OutputLast: 3000}})
	r := begin(t, s, "seq 100000", nil)
	if res := exits(t, r); res.ExitCode != 0 {
		t.Fatal(res)
	}
	var whole strings.Builder
	for i := range 100000 {
		fmt.Fprintln(&whole, i+1)
	}
	all := whole.String()
	for _, from := range []int{0, 1, 999, 1000, 1001, len(all) - 3000, len(all) - 2999, len(all) - 1, len(all), len(all) + 5} {
		p := r.Output(int64(from), nil)
		from = min(from, len(all))
		if p.From != int64(from) || p.To != int64(len(all)) || !strings.HasPrefix(all[from:], string(p.First)) || !strings.HasSuffix(all, string(p.Last)) ||
			len(p.First)+len(p.Last)+int(p.Missed) != len(all)-from {
			t.Errorf("from %d: %d to %d, %d bytes, %d missed, %d bytes", from, p.From, p.To, len(p.First), p.Missed, len(p.Last))
		}
	}
	if p := r.Output(-1, nil); p.From != p.To {
		t.Errorf("%d bytes are new", p.To-p.From)
	}
}

// TestRunningKill: a signal reaches what ignores it by its successor, what has
// detached, and whoever waits meanwhile.
func TestRunningKill(t *testing.T) {
	t.Parallel()
	limits := quick
	limits.KillGrace = 2 * time.Second // for a busy machine to end what takes its signal
	s, _ := newShell(t, Config{Limits: limits})
	for _, c := range []struct {
		line   string
		signal syscall.Signal
		want   string
	}{
		{"echo begun; sleep 86400", syscall.SIGTERM, "SIGTERM"},
		{"trap '' TERM INT; echo begun; while :; do sleep 86400; done", syscall.SIGTERM, "SIGKILL"},
		{"trap 'echo bye; exit 3' INT; echo begun; read forever", syscall.SIGINT, ""},
		{"(setsid sleep 86400 & setsid sh -c 'sleep 86400 & sleep 86400' &); echo begun; sleep 86400", syscall.SIGHUP, "SIGHUP"},
		{"exec >&- 2>&1; sleep 86400", syscall.SIGKILL, "SIGKILL"},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			for _, size := range []*Size{nil, screenSize} {
				r := begin(t, s, c.line, size)
				if strings.Contains(c.line, "begun") {
					shows(t, r, "begun")
				}
				var all sync.WaitGroup
				for range 2 {
					all.Go(func() { _ = r.Await(context.Background(), longest, 1<<40, 0) })
					all.Go(func() { _ = r.Kill(context.Background(), c.signal) })
				}
				if res := exits(t, r); res.Signal != c.want {
					t.Errorf("%+v", res)
				}
				all.Wait()
				if s.session.confined() || size == nil && !strings.Contains(c.line, "setsid") { // else what has detached ends with the session
					until(t, "nothing of it is left", r.process.over)
				}
				if err := r.Kill(context.Background(), c.signal); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestRunningInput: nobody waits for a command that does not read, and after the end
// nothing is taken.
func TestRunningInput(t *testing.T) {
	s, _ := newShell(t, Config{Limits: quick})
	for _, size := range []*Size{nil, screenSize} {
		r := begin(t, s, "echo begun; sleep 86400", size)
		shows(t, r, "begun")
		var full *InputFullError
		for i := 0; !errors.As(r.Write(make([]byte, 60000), false), &full); i++ {
			if i > 100 && size == nil {
				t.Fatal("it takes more than a pipe and a buffer hold")
			} else if i > 100 { // the kernel drops what no line of a terminal holds
				break
			}
		}
		_ = r.Kill(context.Background(), syscall.SIGTERM)
		exits(t, r)
		var ended *EndedError
		if err := r.Write([]byte("x"), false); !errors.As(err, &ended) || ended.Result.Signal != "SIGTERM" {
			t.Error(err)
		}
	}
	r := begin(t, s, "cat >/dev/null; echo read; sleep 86400", nil)
	typed(t, r, "x", true)
	shows(t, r, "read")
	if err := r.Write(nil, true); !errors.Is(err, ErrInputEnded) || r.Needs().Input {
		t.Error(err, r.Needs())
	}
	r = begin(t, s, "exec <&-; echo closed; sleep 86400", nil)
	shows(t, r, "closed")
	until(t, "a closed input is noticed", func() bool { return errors.Is(r.Write([]byte("x"), false), ErrInputEnded) })
}

// TestRunningBounds: one too many is refused, who ended first goes first, and time
// takes the rest.
func TestRunningBounds(t *testing.T) {
	s, c := newShell(t, Config{Limits: sandbox.Limits{RunningCommands: 2, EndedCommands: 2, KeepEnded: 300 * time.Millisecond}})
	first, second := begin(t, s, "read x", nil), begin(t, s, "read x", nil)
	var many *TooManyError
	if _, err := s.Start(context.Background(), sh("true")); !errors.As(err, &many) || fmt.Sprint(many.IDs) != "[c1 c2]" {
		t.Fatal(err, many)
	}
	typed(t, first, "", true)
	exits(t, first)
	for range 2 {
		exits(t, begin(t, s, "true", nil))
	}
	until(t, "the first one is dropped", func() bool { return s.Running("c1") == nil })
	until(t, "time takes those that ended", func() bool { return len(s.AllRunning()) == 1 })
	if s.Running("c2") != second {
		t.Error("what runs is dropped")
	}
	if left := newLimited(t, c).AllRunning(); len(left) != 0 {
		t.Errorf("another session sees %v", left)
	}
}

func newLimited(t *testing.T, c *Commands) *Shell {
	s := c.NewShell()
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestRunningMany: as many as may run at once, all of them printing.
func TestRunningMany(t *testing.T) {
	s, _ := newShell(t, Config{Limits: quick})
	var all []*Running
	for i := range sandbox.DefaultLimits.RunningCommands {
		all = append(all, begin(t, s, fmt.Sprintf("echo begun %d; while read x; do echo $x; done", i), map[bool]*Size{true: screenSize}[i%2 == 0]))
	}
	for i, r := range all {
		shows(t, r, fmt.Sprintf("begun %d\n", i))
		typed(t, r, "hello\n", true)
	}
	for _, r := range all {
		exits(t, r)
		if !strings.Contains(shown(r), "hello") {
			t.Errorf("%s: %q", r.ID, shown(r))
		}
	}
}

// TestRunningEndsWithSession: nothing is left, whatever it was doing.
func TestRunningEndsWithSession(t *testing.T) {
	s, _ := newShell(t, Config{Limits: quick})
	for _, size := range []*Size{nil, screenSize} {
		for _, line := range []string{"yes", "sleep 86400", "trap '' TERM HUP; while :; do sleep 86400; done", "setsid sleep 86400 & echo left"} {
			begin(t, s, line, size)
		}
	}
	tmp := s.session.mark()
	if !living(tmp) {
		t.Fatal("nothing runs")
	}
	all := s.AllRunning()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	Gone(t, tmp)
	for _, r := range all {
		exits(t, r)
	}
	if _, err := s.Start(context.Background(), sh("true")); !errors.Is(err, ErrEnding) {
		t.Error(err)
	}
}

// TestRunningApart: an id that nobody can guess owns its command, which outlives the
// session of the call and ends when nobody asks for it.
func TestRunningApart(t *testing.T) {
	s, c := newShell(t, Config{Limits: sandbox.Limits{KillGrace: quick.KillGrace, KeepEnded: time.Second}})
	r, err := s.StartApart(context.Background(), Command{Name: "cat"})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	other := newLimited(t, c)
	if len(r.ID) != len("c_")+22 || other.Running(r.ID) != nil || len(other.AllRunning()) != 0 {
		t.Errorf("%s: %v", r.ID, other.AllRunning())
	}
	forgotten, err := other.StartApart(context.Background(), Command{Name: "cat"})
	if err != nil {
		t.Fatal(err)
	}
	for _, over := forgotten.Result(); !over; _, over = forgotten.Result() {
		if other.RunningApart(r.ID) != r {
			t.Fatal("it is gone although it was asked for")
		}
		time.Sleep(5 * time.Millisecond)
	}
	typed(t, r, "alive\n", false)
	shows(t, r, "alive")
	tmp := r.process.(localProcess).shell.session.mark()
	exits(t, r)
	Gone(t, tmp)
	if other.RunningApart(r.ID) != nil {
		t.Error("it is known for ever")
	}
}
