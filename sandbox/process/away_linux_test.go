package process

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/private"
)

// The engine of these tests is this program: it runs the same runner as a container
// would, without one. What containers themselves do is tried out in e2e.

// Each test has a directory for its engine: the program, by a name that makes it one, what
// kind of engine it is to be, and what it was called with. So tests may run side by side.
const (
	engineName = "engine-of-test"
	engineMode = "mode"
	engineLog  = "log"
)

// modeOfEngine is what kind of engine this program is; "" is none.
func modeOfEngine() string {
	mode, _ := os.ReadFile(besideProgram(engineMode))
	return string(mode)
}

// besideProgram is the path of a file of this engine's.
func besideProgram(name string) string {
	program, err := os.Executable()
	if err != nil || filepath.Base(program) != engineName {
		return ""
	}
	return filepath.Join(filepath.Dir(program), name)
}

// engineDirs are the directories of engines by the names of the tests that have them.
var engineDirs sync.Map

// newEngine returns the path of an engine of a test's own.
func newEngine(t *testing.T, mode string) string {
	t.Helper()
	program, err := os.Executable()
	filetest.Must(t, err)
	dir := t.TempDir()
	engine := filepath.Join(dir, engineName)
	// It is never open for writing here: what is started meanwhile would keep it so, and
	// nobody could start it.
	if os.Link(program, engine) != nil {
		filetest.Must(t, exec.Command("cp", program, engine).Run())
	}
	filetest.Put(t, filepath.Join(dir, engineMode), mode)
	engineDirs.Store(t.Name(), dir)
	return engine
}

// actAsEngine is for TestMain: it does what an engine does when this program was
// started as one, or as the runner in its container.
func actAsEngine() {
	if len(os.Args) == 2 && os.Args[1] == RunnerCommand {
		if err := Harden(); err != nil {
			panic(err)
		}
		in, out, err := TakeStreams()
		if err == nil {
			err = ServeRunner(in, out)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	mode := modeOfEngine()
	if mode == "" || len(os.Args) < 2 {
		return
	}
	if file, err := os.OpenFile(besideProgram(engineLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
		fmt.Fprintf(file, "%q\n", os.Args[1:])
		file.Close()
	}
	switch os.Args[1] {
	case "--version":
		fmt.Println("Docker version 99.0, build 0")
	case "info":
		fmt.Println("linux " + map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH] + " [name=seccomp]")
	case "run":
		runAsEngine(mode)
	}
	os.Exit(0)
}

func runAsEngine(mode string) {
	if says, found := strings.CutPrefix(mode, "says:"); found {
		fmt.Fprintln(os.Stderr, says)
		os.Exit(125)
	}
	switch mode {
	case "silent":
		time.Sleep(time.Hour)
	case "stuck":
		fmt.Fprintln(os.Stderr, "WARNING: something of no importance")
		time.Sleep(time.Hour)
	case "fetching":
		fmt.Fprintln(os.Stderr, "Unable to find image 'image:tag' locally")
		time.Sleep(5 * silenceInTest)
	}
	if lie, found := lies[mode]; found {
		r := bufio.NewReader(os.Stdin)
		if _, err := r.Peek(1); err != nil {
			os.Exit(1)
		}
		lie()
		_, _ = r.WriteTo(nowhere{})
		os.Exit(0)
	}
	if act, found := takeovers[mode]; found {
		takeOver(act)
		os.Exit(0)
	}
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(program, RunnerCommand)
	if mode == "capless" { // as containers are
		cmd = exec.Command("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", program, RunnerCommand)
	}
	cmd.Env = []string{"PATH=/usr/bin:/bin", "IMAGE_VARIABLE=of the image"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if mode == "far" {
		_ = actAsFarEngine(cmd)
	} else {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		_ = cmd.Run()
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

// awayShell is a session whose commands run in a runner.
func awayShell(t *testing.T, cfg Config) *Shell {
	t.Helper()
	return awayCommands(t, "plain", cfg).NewShell()
}

func awayCommands(t *testing.T, mode string, cfg Config) *Commands {
	t.Helper()
	var err error
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Dir, err = filepath.EvalSymlinks(cfg.Dir); err != nil {
		t.Fatal(err)
	}
	cfg.Container = Container{Image: "image:tag", Engine: newEngine(t, mode)}
	c, err := NewCommands(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.fleet.TreeAt = func(tree string) string { return tree } // no mounts lead it elsewhere
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func engineCalls(t *testing.T) string {
	t.Helper()
	dir, found := engineDirs.Load(t.Name())
	if !found {
		t.Fatal("this test has no engine")
	}
	text, err := os.ReadFile(filepath.Join(dir.(string), engineLog))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAwayRuns(t *testing.T) {
	s := awayShell(t, Config{Env: []string{"HOST_WORD=word", "HOST_PATH=/opt/x:/y", "API_TOKEN=secret", "HOME=/root", "PATH=/nowhere"}})
	c := sh(`cat; echo "$IMAGE_VARIABLE|$HOST_WORD|$HOST_PATH|$API_TOKEN|$X"; pwd; echo err >&2; exit 3`)
	c.Stdin, c.Env = []byte("typed\n"), map[string]string{"X": "given"}
	res := run(t, s, c)
	want := "typed\nof the image|word|||given\n" + s.c.cfg.Dir + "\n"
	if got := text(res.Stdout); got != want || text(res.Stderr) != "err\n" || res.ExitCode != 3 {
		t.Errorf("%d %q %q, want %q", res.ExitCode, got, text(res.Stderr), want)
	}
	home := text(run(t, s, sh("echo $HOME; echo $TMPDIR; touch $HOME/x $TMPDIR/x && echo made")).Stdout)
	if !strings.Contains(home, "made") || strings.Contains(home, "/root\n") {
		t.Error(home)
	}
	if calls := engineCalls(t); strings.Count(calls, `"run"`) != 1 {
		t.Errorf("one container serves all commands of a session: %s", calls)
	}
}

func text(o capture.Output) string { return string(o.Head) + string(o.Tail) }

func TestAwayErrors(t *testing.T) {
	s := awayShell(t, Config{})
	for _, one := range []struct {
		c    Command
		want error
	}{
		{Command{Name: "no-such-program"}, ErrNoProgram},
		{Command{Name: "/etc/passwd"}, ErrNotExecutable},
		{Command{Name: "true", Dir: "/no/such/dir"}, fs.ErrNotExist},
		{Command{Name: "true", Dir: "/etc/passwd"}, sandbox.ErrNotDirectory},
		{Command{Name: "a\x00b"}, ErrHasNUL},
		{Command{Name: "true", Args: []string{strings.Repeat("x", 3<<20)}}, ErrArgsTooLong},
		{Command{Name: "true", Args: []string{strings.Repeat("\x01", 5<<20)}}, ErrArgsTooLong},
	} {
		_, err := s.Run(t.Context(), one.c)
		if !errors.Is(err, one.want) {
			t.Errorf("%.40q: %v, want %v", one.c.Name, err, one.want)
		}
	}
	var start *StartError
	if _, err := s.Run(t.Context(), Command{Name: "no-such-program"}); !errors.As(err, &start) || start.Command != "no-such-program" || start.What != "no-such-program" {
		t.Errorf("%#v", err)
	}
}

func TestAwayTimeoutAndCancel(t *testing.T) {
	t.Parallel()
	s := awayShell(t, Config{})
	c := sh("trap '' TERM; setsid sh -c 'echo $$ > pid; trap \"\" TERM; while :; do sleep 1; done' & while :; do sleep 1; done")
	c.Timeout = 300 * time.Millisecond
	if res := run(t, s, c); !res.TimedOut || res.Signal != "SIGKILL" {
		t.Errorf("%+v", res)
	}
	diesInside(t, filepath.Join(s.c.cfg.Dir, "pid"))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	res, err := s.Run(ctx, sh("echo begun; sleep 600"))
	if err != nil || !res.Cancelled || text(res.Stdout) != "begun\n" {
		t.Errorf("%+v %v", res, err)
	}
}

// diesInside waits until the process whose number a file holds is gone. Here the
// runner's processes are this machine's.
func diesInside(t *testing.T, file string) {
	t.Helper()
	var pid int
	until(t, "the number is there", func() bool {
		data, _ := os.ReadFile(file)
		_, err := fmt.Sscan(string(data), &pid)
		return err == nil
	})
	until(t, "it is gone", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || bytes.Contains(stat, []byte(") Z ")) // which its parent may leave like that
	})
}

func TestAwayOutputIsBounded(t *testing.T) {
	s := awayShell(t, Config{})
	c := sh("head -c 3000000 /dev/zero | tr '\\0' a; printf end; printf '\\377' >&2")
	c.Keep = 300_000 // more than a frame holds
	res := run(t, s, c)
	if len(res.Stdout.Head) != 300_000 || len(res.Stdout.Tail) != 300_000 || res.Stdout.Total != 3_000_003 || !bytes.HasSuffix(res.Stdout.Tail, []byte("aend")) {
		t.Errorf("%d %d of %d", len(res.Stdout.Head), len(res.Stdout.Tail), res.Stdout.Total)
	}
	if res.Stderr.Total != 1 || res.Stderr.TextBytes != 3 {
		t.Errorf("%+v", res.Stderr)
	}
}

func TestAwayTail(t *testing.T) {
	s := awayShell(t, Config{})
	c := sh("echo first; while [ ! -e go ]; do sleep 0.1; done")
	c.Tail = &capture.Tail{}
	go func() {
		until(t, "the line is told while the command runs", func() bool { line, _ := c.Tail.Last(); return line == "first" })
		_ = os.WriteFile(filepath.Join(s.c.cfg.Dir, "go"), nil, 0o600)
	}()
	if res := run(t, s, c); res.ExitCode != 0 {
		t.Errorf("%+v", res)
	}
}

func TestAwayRefusalsAreExplained(t *testing.T) {
	s := awayShell(t, Config{})
	res := run(t, s, Command{Name: "bash", Args: []string{"-c", "exec 3<>/dev/tcp/192.0.2.1/80"}, Stdout: true, Stderr: true})
	if res.ExitCode == 0 || !strings.Contains(strings.Join(res.Refused, " "), "--network allow") {
		t.Errorf("%d %s %s: %v", res.ExitCode, text(res.Stdout), text(res.Stderr), res.Refused)
	}
}

func TestAwayRunning(t *testing.T) {
	s := awayShell(t, Config{})
	r, err := s.Start(t.Context(), sh("read name; echo hello $name; cat; echo end >&2; exit 4"))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "it waits for input", func() bool { return r.Needs().Input })
	typed(t, r, "you\n", false)
	shows(t, r, "hello you")
	typed(t, r, "more\n", true)
	<-r.Ended()
	res, _ := r.Result()
	if got := r.Output(0, nil); string(got.First) != "hello you\nmore\nend\n" || res.ExitCode != 4 {
		t.Errorf("%q %+v", got.First, res)
	}
	var ended *EndedError
	if err := r.Write([]byte("x"), false); !errors.As(err, &ended) {
		t.Error(err)
	}
}

func TestAwayTerminal(t *testing.T) {
	s := awayShell(t, Config{})
	c := sh(`stty size; stty -echo; printf password:; read -r p; echo "got $p"`)
	c.Terminal = &Size{Rows: 33, Columns: 111}
	r, err := s.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	shows(t, r, "33 111")
	until(t, "it asks for a password", func() bool { n := r.Needs(); return n.Input && n.Quiet })
	typed(t, r, "secret\n", false)
	<-r.Ended()
	shows(t, r, "got secret")
}

func TestAwayKill(t *testing.T) {
	t.Parallel()
	s := awayShell(t, Config{})
	r, err := s.Start(t.Context(), sh("trap 'echo asked' TERM; setsid sleep 600 & echo $! > pid; while :; do sleep 0.1; done"))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "it runs", func() bool { return environ.Exists(filepath.Join(s.c.cfg.Dir, "pid")) })
	if err := r.Kill(t.Context(), syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	res, over := r.Result()
	if !over || res.Signal != "SIGKILL" {
		t.Errorf("%v %+v", over, res)
	}
	shows(t, r, "asked")
	diesInside(t, filepath.Join(s.c.cfg.Dir, "pid"))
}

func TestAwayOutputOfManyAtOnce(t *testing.T) {
	s := awayShell(t, Config{})
	flood, err := s.Start(t.Context(), sh("yes"))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "it has printed more than is kept", func() bool { return flood.Bytes() > 4<<20 })
	for range 20 {
		if res := run(t, s, sh("echo heard")); text(res.Stdout) != "heard\n" {
			t.Fatalf("%+v", res)
		}
	}
	if err := flood.Kill(t.Context(), syscall.SIGINT); err != nil {
		t.Error(err)
	}
	if p := flood.Output(0, nil); p.Missed == 0 || len(p.First)+len(p.Last) > s.c.limits.OutputFirst+s.c.limits.OutputLast {
		t.Errorf("%d and %d bytes, %d missed", len(p.First), len(p.Last), p.Missed)
	}
}

func TestAwayCloseEndsWhatWasLeft(t *testing.T) {
	s := awayShell(t, Config{})
	run(t, s, sh("sleep 600 & echo $! > pid"))
	if res := run(t, s, sh("kill -0 $(cat pid)")); res.ExitCode != 0 {
		t.Fatalf("it does not live on: %+v", res)
	}
	tree := s.away.berths[0].Tree
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	diesInside(t, filepath.Join(s.c.cfg.Dir, "pid"))
	if environ.Exists(tree) {
		t.Errorf("%s is left", tree)
	}
	if _, err := s.Run(t.Context(), sh("true")); !errors.Is(err, ErrEnding) {
		t.Error(err)
	}
}

// TestAwayServerEnds: when the stream ends everything does.
func TestAwayServerEnds(t *testing.T) {
	s := awayShell(t, Config{})
	run(t, s, sh("trap '' TERM HUP; setsid sleep 600 & echo $! > pid"))
	s.away.berths[0].Conn.HangUp() // as the system does for a server that was killed
	diesInside(t, filepath.Join(s.c.cfg.Dir, "pid"))
}

func TestAwayContainerDies(t *testing.T) {
	s := awayShell(t, Config{})
	run(t, s, sh("true"))
	failed := make(chan error, 1)
	go func() {
		_, err := s.Run(t.Context(), sh("echo $PPID > runner; sleep 600"))
		failed <- err
	}()
	var pid int
	until(t, "it runs", func() bool {
		data, _ := os.ReadFile(filepath.Join(s.c.cfg.Dir, "runner"))
		_, err := fmt.Sscan(string(data), &pid)
		return err == nil
	})
	killRunner(t, s)
	var lost *ContainerError
	if err := <-failed; !errors.As(err, &lost) || lost.Way == "" {
		t.Fatalf("%v", err)
	}
	res := run(t, s, sh("echo again"))
	if text(res.Stdout) != "again\n" || !strings.Contains(strings.Join(res.Refused, " "), "in a new one") {
		t.Errorf("%+v", res)
	}
	if res := run(t, s, sh("true")); len(res.Refused) > 0 {
		t.Errorf("that is told once: %v", res.Refused)
	}
}

// TestAwayMakesNoSetID: a program with the set-id bits in the workspace would have them
// outside of the container too, so nothing inside makes one, however it is confined.
func TestAwayMakesNoSetID(t *testing.T) {
	const line = `cp /bin/true f && chmod 755 f; chmod u+s f; chmod g+s f; stat -c %a f`
	free, _ := newShell(t, Config{Sandbox: Off})
	if res := run(t, free, sh(line)); text(res.Stdout) != "6755\n" {
		t.Fatalf("the attack proves nothing: %s %s", text(res.Stdout), text(res.Stderr))
	}
	for _, mode := range []Mode{Off, Auto} {
		s := awayCommands(t, "capless", Config{Sandbox: mode}).NewShell()
		if res := run(t, s, sh(line)); text(res.Stdout) != "755\n" {
			t.Errorf("%s: %s %s", mode, text(res.Stdout), text(res.Stderr))
		}
	}
}

// TestAwayTriesNothingOutside: where commands run in containers nothing is tried out,
// and no private directory made, to confine them on this machine.
func TestAwayTriesNothingOutside(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	c := awayCommands(t, "plain", Config{Env: []string{"HOME=/home/of-the-host", "API_TOKEN=secret"}})
	s := c.NewShell()
	if home, _ := s.HostEnv("HOME"); home != "/home/of-the-host" {
		t.Errorf("HOME is %q", home)
	}
	if _, found := s.HostEnv("API_TOKEN"); found || len(c.Env()) == 0 {
		t.Errorf("%q", c.Env())
	}
	if made, err := filepath.Glob(filepath.Join(dir, private.Prefix+"*")); err != nil || len(made) > 0 {
		t.Errorf("%v were made (%v)", made, err)
	}
}

// killRunner kills the engine's command, with which the runner dies.
func killRunner(t *testing.T, s *Shell) {
	t.Helper()
	for _, b := range s.away.berths {
		if p := b.Process; p != nil {
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestRunnerNeedsItsServer: a runner that hears nothing kills all and ends.
func TestRunnerNeedsItsServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command("/proc/self/exe", RunnerCommand)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := remote.NewWriter(in, remote.MaxFromServer)
	for _, m := range []*remote.Message{
		{Type: remote.TypeHello, Hello: &remote.Hello{Version: remote.Version, Workspace: remote.Raw(dir), Tree: remote.Raw(t.TempDir()), Network: "deny", Limits: []byte("{}")}},
		{Type: remote.TypeRun, Command: 1, Shell: 1, Start: &remote.Start{Name: "sh", Args: []remote.Raw{"-c", remote.Raw("echo $$ > " + dir + "/pid; sleep 600")}}},
	} {
		if err := w.Write(m); err != nil {
			t.Fatal(err)
		}
	}
	diesInside(t, filepath.Join(dir, "pid"))
	if err := cmd.Wait(); err == nil || !strings.Contains(said.String(), ErrSilence.Error()) {
		t.Errorf("%v %s", err, said.String())
	}
}

// lies are what a runner says that commands have taken over, behind its welcome.
var lies = map[string]func(){
	"lie:nothing":       func() { time.Sleep(200 * time.Millisecond); os.Exit(0) },
	"lie:length":        func() { raw(0xffffffff, 0xffffffff, "x") },
	"lie:no JSON":       func() { raw(4, 0, "{{{{") },
	"lie:no welcome":    func() { tell(`{"type":"result","command":1,"result":{}}`, "") },
	"lie:wrong canary":  func() { tell(`{"type":"welcome","welcome":{"version":1,"sees":true,"canary":"guess"}}`, "") },
	"lie:endless words": func() { fmt.Fprint(os.Stderr, strings.Repeat("word ", 1<<20)); os.Exit(1) },
}

func raw(head, body uint32, text string) {
	b := binary.BigEndian.AppendUint32(nil, head)
	b = binary.BigEndian.AppendUint32(b, body)
	_, _ = os.Stdout.Write(append(b, text...))
}

func tell(text, body string) { raw(uint32(len(text)), uint32(len(body)), text+body) }

func TestAwayLies(t *testing.T) {
	t.Parallel()
	for mode := range lies {
		t.Run(mode, func(t *testing.T) {
			s := awayCommands(t, mode, Config{}).NewShell()
			_, err := s.Run(t.Context(), sh("true"))
			var fault *ContainerError
			if !errors.As(err, &fault) || len(fault.What) > 2*remote.MaxSentence {
				t.Errorf("%.300v", err)
			}
		})
	}
}

// TestRunnerIsOutOfReach: where nothing but the container confines commands, they
// still reach neither the stream to the server nor the memory of the runner, and
// signals that a first process can take do not end it.
func TestRunnerIsOutOfReach(t *testing.T) {
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("this needs setpriv of util-linux: ", err)
	}
	s := awayCommands(t, "capless", Config{Sandbox: Off}).NewShell()
	own := run(t, s, sh("sleep 60 & echo x > /proc/$!/fd/1 && echo the attack works on a process that is no runner; kill $!"))
	if text(own.Stdout) == "" {
		t.Fatalf("the attack proves nothing: %s", text(own.Stderr))
	}
	res := run(t, s, sh(`for f in /proc/$PPID/fd/*; do (echo garbage > $f) 2>/dev/null && [ -p $f ] && echo wrote $f; done
		(cat /proc/$PPID/environ /proc/$PPID/mem || ls -l /proc/$PPID/cwd/) 2>/dev/null && echo read
		for signal in HUP INT QUIT ILL TRAP ABRT BUS FPE USR1 SEGV USR2 PIPE ALRM TERM; do kill -$signal $PPID; done; echo $PPID`))
	var runner int
	if strings.Contains(text(res.Stdout), "wrote") || strings.Contains(text(res.Stdout), "read") {
		t.Errorf("%s", text(res.Stdout))
	}
	if _, err := fmt.Sscan(text(res.Stdout), &runner); err != nil {
		t.Errorf("%s %s", text(res.Stdout), text(res.Stderr))
	}
	if again := run(t, s, sh("echo $PPID")); text(again.Stdout) != fmt.Sprintln(runner) || len(again.Refused) > 0 {
		t.Errorf("%+v after %d", again, runner)
	}
	if res := run(t, s, Command{Name: "sh", Args: []string{"-c", "ls /proc/self/fd"}, Stdout: true}); text(res.Stdout) != "0\n1\n2\n3\n" {
		t.Errorf("commands inherit %q", text(res.Stdout)) // 3 is the directory
	}
}
