//go:build linux

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/tree"
)

// TestOtherTiers runs the tests of commands once more, as on a machine whose
// kernel confines nothing, and as on one that permits no namespaces.
func TestOtherTiers(t *testing.T) {
	if os.Getenv(testMode) != "" {
		t.Skip("once is enough")
	}
	testlevel.Battery(t, "the tests of commands, twice more")
	for _, mode := range []Mode{Off, Landlock} {
		t.Run(string(mode), func(t *testing.T) {
			if mode == Landlock {
				confinedShell(t, Config{})
			}
			cmd := exec.Command(os.Args[0], "-test.run", "^Test(RunResults|StartErrors|PrivateDirectories|TimeoutEnds|CancelAnd|KillHas|Survivors|Watchdog|Flood|ManyAtOnce|NothingLeaks|OtherChildren|FreshlyWritten|Running)")
			if mode == Off { // the end of one Commands is that of all which was left to this process
				cmd.Args = append(cmd.Args, "-test.parallel", "1")
			}
			cmd.Env = append(os.Environ(), testMode+"="+string(mode))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func newShell(t testing.TB, cfg Config) (*Shell, *Commands) {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Sandbox == "" {
		cfg.Sandbox = Mode(os.Getenv(testMode))
	}
	c, err := NewCommands(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.NewShell(), c
}

func sh(script string) Command {
	return Command{Name: "sh", Args: []string{"-c", script}, Stdout: true, Stderr: true}
}

func run(t testing.TB, s *Shell, c Command) Result {
	t.Helper()
	res, err := s.Run(context.Background(), c)
	if err != nil {
		t.Fatalf("%q: %v", c.Args, err)
	}
	return res
}

// once lets f run when the command has printed something.
func once(c Command, f func()) Command {
	c.Tail = &capture.Tail{}
	go func() {
		for line := ""; line == ""; line, _ = c.Tail.Last() {
			time.Sleep(5 * time.Millisecond)
		}
		f()
	}()
	return c
}

// quick are limits that make killing tests short.
var quick = sandbox.Limits{KillGrace: 300 * time.Millisecond, PipeGrace: 100 * time.Millisecond}

// Gone waits until no process of a session, which is known by its TMPDIR, is left.
func Gone(t testing.TB, tmp string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); living(tmp); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			tree.KillMarked([]string{tmp}, syscall.SIGKILL)
			t.Fatal("a process is still there")
		}
	}
}

// living finds processes by their TMPDIR, or by an argument that is it.
func living(tmp string) bool {
	return slices.ContainsFunc(tree.Processes(), func(p proc.Process) bool {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		return !p.Dead && (tree.Marked(p, tmp) || slices.Contains(strings.Split(string(line), "\x00"), tmp))
	})
}

// started fails unless a script wrote the id of a process, as that sees it.
func started(t testing.TB, out string) {
	t.Helper()
	if _, err := strconv.Atoi(strings.TrimSpace(out)); err != nil {
		t.Fatalf("no process id: %q", out)
	}
}

func TestRunResults(t *testing.T) {
	s, _ := newShell(t, Config{})
	for _, tt := range []struct {
		name string
		c    Command
		code int
		sig  string
		out  string
		err  string
	}{
		{"streams", sh("echo out; echo err >&2"), 0, "", "out\n", "err\n"},
		{"status", sh("exit 7"), 7, "", "", ""},
		{"signal", sh("kill -9 $$"), 137, "SIGKILL", "", ""},
		{"own SIGTERM", sh("kill -15 $$"), 143, "SIGTERM", "", ""},
		{"stdout hidden", Command{Name: "sh", Args: []string{"-c", "echo a; echo b >&2"}, Stderr: true}, 0, "", "", "b\n"},
		{"no stdin", Command{Name: "cat", Stdout: true}, 0, "", "", ""},
		{"stdin", Command{Name: "cat", Stdin: []byte("in"), Stdout: true}, 0, "", "in", ""},
		{"stdin unread", Command{Name: "true", Stdin: make([]byte, 1<<20)}, 0, "", "", ""},
		{"stdin large", Command{Name: "wc", Args: []string{"-c"}, Stdin: make([]byte, 1<<20), Stdout: true}, 0, "", "1048576\n", ""},
		{"arguments verbatim", Command{Name: "printf", Args: []string{"%s|", "a b", "$X", ""}, Stdout: true}, 0, "", "a b|$X||", ""},
		{"env wins", Command{Name: "sh", Args: []string{"-c", "echo $HOME $MY_KEY"}, Env: map[string]string{"HOME": "/h", "MY_KEY": "k"}, Stdout: true}, 0, "", "/h k\n", ""},
		{"base", Command{Name: "/usr/bin/env", Args: []string{"-u", "SCREENDIR", "-u", "TMUX_TMPDIR", "-u", "XDG_RUNTIME_DIR"}, Base: []string{"X=1"}, Env: map[string]string{"TMPDIR": "/t", "HOME": "/h"}, Stdout: true}, 0, "", "X=1\nHOME=/h\nTMPDIR=/t\n", ""},
		{"path override", Command{Name: "sh", Args: []string{"-c", "echo $PATH"}, Path: "/bin", Env: map[string]string{"PATH": "/none"}, Stdout: true}, 0, "", "/none\n", ""},
		{"own group", sh("test $(ps -o pgid= -p $$) = $$"), 0, "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := run(t, s, tt.c)
			out, _ := res.Stdout.Text(1000)
			err, _ := res.Stderr.Text(1000)
			if res.ExitCode != tt.code || res.Signal != tt.sig || out != tt.out || err != tt.err || res.TimedOut || res.Cancelled {
				t.Errorf("got %+v %q %q", res, out, err)
			}
		})
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"text": "echo hi\n", "lost": "#!/no/such/interpreter\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s, _ := newShell(t, Config{Dir: dir})
	for _, tt := range []struct {
		name string
		c    Command
		want error
	}{
		{"no program", Command{Name: "no-such-program"}, ErrNoProgram},
		{"empty", Command{}, ErrNoProgram},
		{"directory", Command{Name: "/"}, ErrNotExecutable},
		{"format", Command{Name: "./text"}, ErrBadFormat},
		{"interpreter", Command{Name: "./lost"}, ErrNoProgram},
		{"call's PATH", Command{Name: "sh", Env: map[string]string{"PATH": dir}}, ErrNoProgram},
		{"too large", Command{Name: "true", Args: []string{strings.Repeat("x", 4<<20)}}, ErrArgsTooLong},
		{"NUL in name", Command{Name: "a\x00"}, ErrHasNUL},
		{"NUL in argument", Command{Name: "true", Args: []string{"\x00"}}, ErrHasNUL},
		{"NUL in value", Command{Name: "true", Env: map[string]string{"A": "\x00"}}, ErrHasNUL},
		{"NUL in variable", Command{Name: "true", Env: map[string]string{"A\x00": ""}}, ErrEnvName},
		{"empty variable", Command{Name: "true", Env: map[string]string{"": "x"}}, ErrEnvName},
		{"= in variable", Command{Name: "true", Env: map[string]string{"A=B": "x"}}, ErrEnvName},
		{"no directory", Command{Name: "true", Dir: dir + "/gone"}, fs.ErrNotExist},
		{"file as directory", Command{Name: "true", Dir: dir + "/text"}, sandbox.ErrNotDirectory},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := s.Run(context.Background(), tt.c); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Run(ctx, sh("touch started")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("started all the same")
	}
}

func TestPrivateDirectories(t *testing.T) {
	s, c := newShell(t, Config{})
	dirs := func() []string {
		out, _ := run(t, s, sh("echo $TMPDIR; echo $HOME; mkdir -p $TMPDIR/a/b; chmod 500 $TMPDIR/a")).Stdout.Text(1000)
		return strings.Fields(out)
	}
	first := dirs()
	if run(t, s, sh("chmod 700 $TMPDIR/a; rm -rf $TMPDIR")); len(first) != 2 || first[0] == first[1] {
		t.Fatalf("got %q", first)
	}
	if again := dirs(); again[0] != first[0] {
		t.Errorf("TMPDIR was %s, is %s", first[0], again[0])
	}
	other, _ := run(t, c.NewShell(), sh("echo $TMPDIR")).Stdout.Text(1000)
	if strings.TrimSpace(other) == first[0] {
		t.Error("two sessions share a TMPDIR")
	}
	_ = s.Close()
	if _, err := os.Stat(filepath.Dir(first[0])); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directories are still there: %v", err)
	}
}

// What a tree may try so as to outlive its deadline. Each script writes the id
// of the process that must not be there afterwards.
var stubborn = map[string]string{
	"ignores SIGTERM":        `trap '' TERM; echo $$; while :; do sleep 1; done`,
	"child ignores SIGTERM":  `sh -c 'trap "" TERM; echo $$; while :; do sleep 1; done' & wait`,
	"leader dies at once":    `trap 'exit 0' TERM; sh -c 'trap "" TERM; echo $$; while :; do sleep 1; done' & wait`,
	"setsid child":           `setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 1; done' & wait`,
	"daemon":                 `(setsid sh -c 'trap "" TERM; echo $$; exec >&- 2>&-; while :; do sleep 1; done' &) ; sleep 60`,
	"daemon, double fork":    `setsid sh -c '(setsid sh -c "trap \"\" TERM; echo \$\$; while :; do sleep 1; done" &)' ; sleep 60`,
	"grandchild of a daemon": `(setsid sh -c 'setsid sh -c "echo \$\$; sleep 60" & wait' &) ; sleep 60`,
}

func TestTimeoutEndsTheTree(t *testing.T) {
	t.Parallel()
	for name, script := range stubborn {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newShell(t, Config{Limits: quick})
			c := sh(script)
			c.Timeout = 2 * time.Second // time for all of it to start, on a busy machine too
			res := run(t, s, c)
			if !res.TimedOut || res.Cancelled {
				t.Errorf("got %+v", res)
			}
			out, _ := res.Stdout.Text(100)
			started(t, out)
			if living(s.session.mark()) {
				t.Error("alive when the answer came")
			}
			Gone(t, s.session.mark())
		})
	}
}

func TestCancelAndTerminate(t *testing.T) {
	s, c := newShell(t, Config{Limits: quick})
	ctx, cancel := context.WithCancel(context.Background())
	res, err := s.Run(ctx, once(sh("echo $$; sleep 60"), cancel))
	if err != nil || !res.Cancelled || res.TimedOut {
		t.Errorf("got %+v %v", res, err)
	}
	started(t, string(res.Stdout.Head))
	Gone(t, s.session.mark())
	res = run(t, s, once(sh("trap 'echo bye; exit 3' TERM; echo up; sleep 60 & wait"), c.Terminate))
	if !res.Cancelled || string(res.Stdout.Head) != "up\nbye\n" {
		t.Errorf("got %+v", res)
	}
	if _, err := s.Run(context.Background(), sh("true")); !errors.Is(err, ErrEnding) {
		t.Errorf("got %v", err)
	}
	if _, err := c.NewShell().Run(context.Background(), sh("true")); !errors.Is(err, ErrEnding) {
		t.Errorf("new session: %v", err)
	}
}

func TestKillHasNoGrace(t *testing.T) {
	s, c := newShell(t, Config{Limits: sandbox.Limits{KillGrace: time.Minute}})
	res := run(t, s, once(sh(stubborn["ignores SIGTERM"]), func() { c.Terminate(); c.Kill() }))
	if res.Duration > 30*time.Second || res.Signal != "SIGKILL" {
		t.Errorf("got %+v", res)
	}
}

func TestSurvivors(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"holds the pipes":    `sleep 60 & echo $!`,
		"writes to them":     `(while :; do echo xxxxxxxxxxxxxxxxxxxxxxx; sleep 0.001; done) & echo $! | head -1 >pid; exit 0`,
		"holds nothing":      `sleep 60 >/dev/null 2>&1 & echo $!`,
		"left the group":     `setsid sleep 60 >/dev/null 2>&1 & sleep 0.2; echo $!`,
		"left, with a pipe":  `setsid sleep 60 & sleep 0.2; echo $!`,
		"orphan of a daemon": `(setsid sh -c 'echo $$; exec sleep 60' &); sleep 0.2`,
	} {
		if testlevel.Quick() && name != "left the group" && name != "holds the pipes" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newShell(t, Config{Limits: quick})
			res := run(t, s, sh(script))
			if res.ExitCode != 0 || res.Duration > 30*time.Second {
				t.Errorf("got %+v", res)
			}
			pid, _ := res.Stdout.Text(1000)
			if name == "writes to them" {
				pid, _ = run(t, s, sh("cat pid")).Stdout.Text(100)
			}
			started(t, pid)
			time.Sleep(300 * time.Millisecond)
			tmp := s.session.mark()
			if !living(tmp) {
				t.Fatal("did not go on")
			}
			_ = s.Close()
			Gone(t, tmp)
			s, _ = newShell(t, Config{Limits: quick})
			c := sh(script)
			c.NoSurvivors = true
			res = run(t, s, c)
			Gone(t, s.session.mark()) // sooner than it would end by itself
		})
	}
}

func TestSurvivorsAreForgotten(t *testing.T) {
	s, _ := newShell(t, Config{Limits: quick})
	run(t, s, sh("sleep 0.3 &"))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		n := len(s.left)
		s.mu.Unlock()
		if n == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("still kept")
		}
	}
}

// A server that dies by SIGKILL leaves neither processes nor directories.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"group":  `sh -c 'trap "" TERM; echo $$; echo $TMPDIR; exec sleep 60' & sleep 0.3`,
		"escape": `(setsid sh -c 'echo $$; echo $TMPDIR; exec sleep 60' &) ; sleep 0.3`,
		"naked":  `(env -i setsid sh -c 'echo $$; echo $0; exec > /dev/null 2>&1; sleep 600; :' "$TMPDIR" &) ; sleep 0.3`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := exec.Command(os.Args[0])
			server.Env = append(os.Environ(), "SANDBOX_TEST_SERVER="+script)
			out, err := server.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			lines.Scan()
			pid := lines.Text()
			lines.Scan()
			tmp := lines.Text()
			lines.Scan() // the command has ended
			started(t, pid)
			if !living(tmp) {
				t.Fatalf("process %q does not run", pid)
			}
			_ = server.Process.Kill()
			_ = server.Wait()
			Gone(t, tmp)
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
				if _, err := os.Stat(filepath.Dir(tmp)); errors.Is(err, fs.ErrNotExist) {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s is still there", tmp)
				}
			}
		})
	}
}

// A closed server leaves no watchdog, and one that ran nothing never had one.
func TestWatchdogEndsWithTheServer(t *testing.T) {
	guards := func() (n int) {
		for _, p := range tree.Processes() {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
			if p.Parent == os.Getpid() && strings.HasPrefix(string(line), tree.WatchdogName) {
				n++
			}
		}
		return n
	}
	until := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); guards() != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d watchdogs, want %d", guards(), want)
			}
		}
	}
	until(0)
	s, c := newShell(t, Config{})
	until(0)
	run(t, s, sh("true"))
	until(1)
	_ = c.Close()
	until(0)
}

func rss(t testing.TB) int {
	status, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, _ := strconv.Atoi(strings.Fields(string(status))[1])
	return pages * os.Getpagesize()
}

func TestFloodStaysSmall(t *testing.T) {
	s, _ := newShell(t, Config{})
	debug.FreeOSMemory() // what earlier tests have used
	before := rss(t)
	stop, peak := make(chan struct{}), make(chan int)
	go func() {
		most := 0
		for {
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(5 * time.Millisecond):
				most = max(most, rss(t))
			}
		}
	}()
	const size = 300 << 20
	res := run(t, s, sh(fmt.Sprintf("yes 0123456789abcdef | head -c %d", size)))
	close(stop)
	most := <-peak - before
	if res.Stdout.Total != size || res.Stdout.TextBytes != size {
		t.Errorf("counted %d", res.Stdout.Total)
	}
	if most > 64<<20 && !raced {
		t.Errorf("%d MB more are resident", most>>20)
	}
	t.Logf("%d MB/s, %d MB more resident", int(float64(size>>20)/res.Duration.Seconds()), most>>20)
}

func TestManyAtOnce(t *testing.T) {
	s, _ := newShell(t, Config{})
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			res, err := s.Run(context.Background(), sh(fmt.Sprintf("echo %d; exit %d", i, i%100)))
			if err != nil || res.ExitCode != i%100 || string(res.Stdout.Head) != fmt.Sprintln(i) {
				t.Errorf("%d: %+v %v", i, res, err)
			}
		})
	}
	all.Wait()
}

func TestNothingLeaks(t *testing.T) {
	s, _ := newShell(t, Config{})
	count := func() (fds, goroutines int) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries), runtime.NumGoroutine()
	}
	some := Command{Name: "true", Stdout: true, Stderr: true, Stdin: []byte("x"), Timeout: time.Minute}
	for range 10 {
		run(t, s, some)
	}
	time.Sleep(100 * time.Millisecond)
	fds, goroutines := count()
	for range map[bool]int{true: 100, false: 1000}[testlevel.Quick()] {
		run(t, s, some)
	}
	for range 100 {
		_, _ = s.Run(context.Background(), Command{Name: "no-such-program", Stdout: true})
	}
	time.Sleep(100 * time.Millisecond)
	if f, g := count(); f > fds+3 || g > goroutines+3 {
		t.Errorf("descriptors %d, then %d; goroutines %d, then %d", fds, f, goroutines, g)
	}
	for _, p := range tree.Processes() {
		if p.Parent == os.Getpid() && p.Dead {
			t.Errorf("process %d was not reaped", p.PID)
		}
	}
}

// The status of a child that other code waits for is never taken.
func TestOtherChildrenKeepTheirStatus(t *testing.T) {
	s, _ := newShell(t, Config{})
	for range 20 {
		cmd := exec.Command("sh", "-c", "exit 5")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		run(t, s, sh("(true &)"))
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 5 {
			t.Fatalf("got %v", err)
		}
	}
}

func TestFreshlyWrittenProgram(t *testing.T) {
	s, c := newShell(t, Config{})
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			file := filepath.Join(c.cfg.Dir, strconv.Itoa(i))
			if err := os.WriteFile(file, []byte("#!/bin/sh\nexit 4\n"), 0o755); err != nil {
				t.Error(err)
			}
			if res, err := s.Run(context.Background(), Command{Name: file}); err != nil || res.ExitCode != 4 {
				t.Errorf("%+v %v", res, err)
			}
		})
	}
	all.Wait()
}

func BenchmarkTrue(b *testing.B) {
	b.Run("floor", func(b *testing.B) {
		null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		defer null.Close()
		for b.Loop() {
			p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{Files: []*os.File{null, null, null}})
			if err != nil {
				b.Fatal(err)
			}
			_, _ = p.Wait()
		}
	})
	b.Run("exec.Cmd", func(b *testing.B) {
		for b.Loop() {
			_, _ = exec.Command("true").CombinedOutput()
		}
	})
	for name, c := range map[string]Command{"shell": {Name: "true"}, "shell with output": {Name: "true", Stdout: true, Stderr: true}} {
		b.Run(name, func(b *testing.B) {
			s, _ := newShell(b, Config{})
			run(b, s, c)
			b.ReportAllocs()
			for b.Loop() {
				run(b, s, c)
			}
		})
	}
}
