package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/containers"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
)

// takeovers are runners whose commands have taken them over: they say a welcome that
// is right, and then what they like.
var takeovers = map[string]func(in *remote.Reader, out *remote.Writer){
	// beats, and reads nothing more
	"takeover:deaf": func(_ *remote.Reader, out *remote.Writer) {
		for out.Write(&remote.Message{Type: remote.TypeBeat}) == nil {
			time.Sleep(remote.Beat / 4)
		}
	},
	// beats and reads, and answers nothing
	"takeover:mute": func(in *remote.Reader, out *remote.Writer) {
		for {
			if _, err := in.Read(); err != nil {
				return
			}
			_ = out.Write(&remote.Message{Type: remote.TypeBeat})
		}
	},
	// tells of output that it does not send
	"takeover:numbers": func(in *remote.Reader, out *remote.Writer) {
		forge(in, out, &remote.Result{Total: [2]int64{5, 5}, TextBytes: [2]int64{5, 5}})
	},
	"takeover:huge numbers": func(in *remote.Reader, out *remote.Writer) {
		forge(in, out, &remote.Result{Total: [2]int64{math.MaxInt64, math.MaxInt64}, TextBytes: [2]int64{math.MaxInt64, math.MaxInt64}})
	},
	// says that nothing confines commands inside; see takeOver
	"takeover:unconfined": func(in *remote.Reader, out *remote.Writer) { forge(in, out, &remote.Result{}) },
	// speaks where nobody listens any more; see takeOver
	"takeover:both streams": func(in *remote.Reader, out *remote.Writer) { forge(in, out, &remote.Result{}) },
	// says that it has come through the socket, and has not; see takeOver
	"takeover:not direct": func(in *remote.Reader, out *remote.Writer) { forge(in, out, &remote.Result{}) },
	"takeover:no text": func(in *remote.Reader, out *remote.Writer) {
		forge(in, out, &remote.Result{Total: [2]int64{100, 100}}, bytes.Repeat([]byte("x"), 100))
	},
}

// forge answers every command with the same result.
func forge(in *remote.Reader, out *remote.Writer, result *remote.Result, output ...[]byte) {
	for {
		m, err := in.Read()
		if err != nil {
			return
		}
		if m.Type == remote.TypeClose {
			_ = out.Write(&remote.Message{Type: remote.TypeAnswer, Question: m.Question})
		}
		if m.Type != remote.TypeRun {
			continue
		}
		for _, piece := range output {
			for stream := range 2 {
				_ = out.Write(&remote.Message{Type: remote.TypeOutput, Command: m.Command, Stream: stream, Body: piece})
			}
		}
		_ = out.Write(&remote.Message{Type: remote.TypeResult, Command: m.Command, Result: result})
	}
}

// takeOver acts as such a runner on the streams of this process.
func takeOver(act func(in *remote.Reader, out *remote.Writer)) {
	in, out := remote.NewReader(os.Stdin, remote.MaxFromServer), remote.NewWriter(os.Stdout, remote.MaxFromRunner)
	m, err := in.Read()
	if err != nil || m.Hello == nil {
		panic(fmt.Sprint("no hello: ", err))
	}
	canary, err := os.ReadFile(filepath.Join(string(m.Hello.Tree), canaryName))
	if err != nil {
		panic(err)
	}
	welcome := &remote.Welcome{Version: remote.Version, Canary: string(canary), Sees: true, Confined: "threads"}
	if modeOfEngine() == "takeover:unconfined" {
		time.Sleep(time.Second) // so that two are made at a time
		welcome.Confined = ""
	}
	var conn net.Conn
	if welcome.Direct = true; modeOfEngine() != "takeover:not direct" {
		if conn = containers.DialDirect(m.Hello); conn == nil {
			panic("the socket cannot be reached")
		}
	}
	_ = out.Write(&remote.Message{Type: remote.TypeWelcome, Welcome: welcome})
	if conn != nil {
		left := out
		in, out = remote.NewReader(conn, remote.MaxFromServer), remote.NewWriter(conn, remote.MaxFromRunner)
		if modeOfEngine() == "takeover:both streams" {
			_ = left.Write(&remote.Message{Type: remote.TypeBeat})
		}
	}
	act(in, out)
}

// TestUnconfinedContainersAreMadeAgain: where nothing confines commands inside, each
// of the first containers is made again with more kept from it, also of two at a time.
func TestUnconfinedContainersAreMadeAgain(t *testing.T) {
	t.Parallel()
	read, err := os.MkdirTemp("", "s-") // short enough for the name of a socket
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(read) })
		read, err = filepath.EvalSymlinks(read)
	}
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(read, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c := awayCommands(t, "takeover:unconfined", Config{AllowRead: []string{read}})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			s := c.NewShell()
			if _, err := s.Run(t.Context(), sh("true")); err != nil {
				t.Error(err)
			}
			if b := s.away.berths[0]; !b.Bare {
				t.Errorf("%s is as it was made for commands that are confined inside", b.Name)
			}
		})
	}
	all.Wait()
	covered := "type=bind,source=/dev/null,target=" + filepath.Join(read, "s")
	if calls := engineCalls(t); strings.Count(calls, covered) != 2 {
		t.Errorf("the socket %s is not covered in both: %s", read, calls)
	}
}

// ends runs f, which has to come to its end.
func ends(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		stacks := make([]byte, 1<<20)
		t.Fatalf("%s does not end\n%s", what, stacks[:runtime.Stack(stacks, true)])
	}
}

// TestTakenOverRunnerForges: numbers that do not fit what was sent are no result, for
// whoever words a result computes with them.
func TestTakenOverRunnerForges(t *testing.T) {
	for _, mode := range []string{"takeover:numbers", "takeover:huge numbers", "takeover:no text"} {
		t.Run(mode, func(t *testing.T) {
			s := awayCommands(t, mode, Config{}).NewShell()
			res, err := s.Run(t.Context(), sh("true"))
			if err == nil {
				t.Errorf("%+v", res)
			}
			word(res)
		})
	}
}

// word does with a result what tools do.
func word(res Result) {
	all := capture.Join(res.Stdout, res.Stderr)
	for _, budget := range []int{0, 10, 1000} {
		_, _ = all.Text(budget)
		_, _, _ = capture.Cut(res.Stdout, res.Stderr, budget)
	}
}

// TestTakenOverRunnerIsDeaf: a runner that says that it lives, but reads nothing,
// neither keeps a command nor the end of the server.
func TestTakenOverRunnerIsDeaf(t *testing.T) {
	t.Parallel()
	c := awayCommands(t, "takeover:deaf", Config{})
	s := c.NewShell()
	long := sh("cat")
	long.Stdin = make([]byte, 4<<20)
	ends(t, "a command", func() {
		var lost *ContainerError
		if _, err := s.Run(t.Context(), long); !errors.As(err, &lost) {
			t.Error(err)
		}
	})
	go func() { _, _ = s.Run(context.Background(), long) }()
	until(t, "the second command is on its way", func() bool { return strings.Count(engineCalls(t), `"run"`) == 2 })
	c.Kill()
	ends(t, "the end of the server", func() { _ = c.Close() })
}

// TestTakenOverRunnerIsMute: a runner that answers nothing keeps neither a command
// that is to start nor the end of the server.
func TestTakenOverRunnerIsMute(t *testing.T) {
	t.Parallel()
	c := awayCommands(t, "takeover:mute", Config{})
	c.startTime = time.Second
	s := c.NewShell()
	ends(t, "a start", func() {
		var lost *ContainerError
		if _, err := s.Start(t.Context(), sh("true")); !errors.As(err, &lost) {
			t.Error(err)
		}
	})
	short := sh("true")
	short.Timeout = time.Millisecond
	ends(t, "a command with a deadline", func() {
		if res, err := s.Run(t.Context(), short); err == nil {
			t.Errorf("%+v", res)
		}
	})
	c.Kill()
	ends(t, "the end of the server", func() { _ = c.Close() })
}

// TestEngineThatHangs: an engine that does not answer, started by a script that waits
// for it, keeps nothing: neither a call that is given up nor the end of the server,
// and no process of it stays.
func TestEngineThatHangs(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"--version", "info", "run"} {
		t.Run(at, func(t *testing.T) {
			dir, home := t.TempDir(), t.TempDir()
			engine := filepath.Join(home, "engine")
			script := fmt.Sprintf(`#!/bin/sh
case $1 in
%s) sleep 600 & echo $! > %[2]s/new; mv %[2]s/new %[2]s/pid; wait;;
--version) echo Docker version 1;;
info) echo linux %[3]s;;
esac
`, at, home, map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH])
			if err := os.WriteFile(engine, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			c, err := NewCommands(Config{Dir: dir, Container: Container{Image: "image", Engine: engine}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			called := make(chan error, 1)
			go func() {
				_, err := c.NewShell().Run(ctx, sh("true"))
				called <- err
			}()
			until(t, "it hangs", func() bool { return environ.Exists(filepath.Join(home, "pid")) })
			cancel()
			ends(t, "the call", func() {
				if err := <-called; err == nil {
					t.Error("it ran")
				}
			})
			c.Kill()
			ends(t, "the end of the server", func() { _ = c.Close() })
			diesInside(t, filepath.Join(home, "pid"))
		})
	}
}

// TestEngineThatIsNone: a program that is no engine is told from one that failed.
func TestEngineThatIsNone(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"cat /dev/zero": "what it printed is not what perstack-base says",
		"true":          "it ended without a word",
		"exit 7":        "it ended with exit code 7",
	} {
		engine := filepath.Join(t.TempDir(), "engine")
		text := "#!/bin/sh\ncase $1 in run) " + script + ";; --version) echo Docker;; info) echo linux x;; esac\n"
		if err := os.WriteFile(engine, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		c, err := NewCommands(Config{Dir: t.TempDir(), Container: Container{Image: "image", Engine: engine}})
		if err != nil {
			t.Fatal(err)
		}
		var fault *ContainerError
		if _, err := c.NewShell().Run(t.Context(), sh("true")); !errors.As(err, &fault) || !strings.Contains(fault.What, want) {
			t.Errorf("%s: %v, want %s", script, err, want)
		}
		_ = c.Close()
	}
}

// TestEngineNobodyDecides: a program that commands can replace does not run outside.
func TestEngineNobodyDecides(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for _, bin := range []string{dir, other} {
		if err := os.WriteFile(filepath.Join(bin, "docker"), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "docker")
	if err := os.Symlink(filepath.Join(dir, "docker"), link); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	for engine, writable := range map[string][]string{"": nil, filepath.Join(dir, "docker"): nil, link: nil, filepath.Join(other, "docker"): {other}} {
		c, err := NewCommands(Config{Dir: dir, AllowWrite: writable, Container: Container{Image: "image", Engine: engine}})
		if err == nil {
			_ = c.Close()
			t.Errorf("%q is taken", engine)
		} else if !strings.Contains(err.Error(), "--container-engine") {
			t.Error(err)
		}
	}
	c, err := NewCommands(Config{Dir: dir, Container: Container{Image: "image", Engine: filepath.Join(other, "docker")}})
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// TestImageIsNoFlag: what would be an option of the engine's is no image.
func TestImageIsNoFlag(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range []string{"-v/:/host", "--privileged", "a b", "a\nb", " ", "a\x00b"} {
		c, err := NewCommands(Config{Dir: t.TempDir(), Container: Container{Image: image, Engine: program}})
		if err == nil {
			_ = c.Close()
			t.Errorf("%q is taken", image)
		} else if !strings.Contains(err.Error(), "--container") {
			t.Error(err)
		}
	}
}

// FuzzRunner: whatever a runner says about commands, the server neither panics nor
// keeps more of it than it was to, and a result can be worded.
func FuzzRunner(f *testing.F) {
	seed := func(all ...*remote.Message) {
		var b bytes.Buffer
		w := remote.NewWriter(&b, remote.MaxFromRunner)
		for _, m := range all {
			if err := w.Write(m); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(b.Bytes())
	}
	for id := range uint64(4) {
		seed(&remote.Message{Type: remote.TypeOutput, Command: id, Body: []byte("ab\xff")}, &remote.Message{Type: remote.TypeOutput, Command: id, Stream: 1, Last: true, Body: []byte("ab")},
			&remote.Message{Type: remote.TypeResult, Command: id, Result: &remote.Result{Total: [2]int64{3, 2}, TextBytes: [2]int64{5, 2}, Signal: "SIGKILL", Refused: []string{"x"}}}, &remote.Message{Type: remote.TypeGone, Command: id})
		seed(&remote.Message{Type: remote.TypeStarted, Command: id}, &remote.Message{Type: remote.TypeTail, Command: id, Body: []byte("line\xff")},
			&remote.Message{Type: remote.TypeFault, Command: id, Fault: &remote.Fault{Kind: startFault, Cause: "noProgram", Text: "x"}}, &remote.Message{Type: remote.TypeAnswer, Question: id + 1, Needs: &remote.Needs{Input: true}})
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		const keep = 64
		c := containers.NewConn(io.Discard, func() {}, sandbox.DefaultLimits)
		waited := newCall(c, &Command{Keep: keep, Tail: &capture.Tail{}}, nil)
		out := &capture.Stream{Keep: keep, First: keep}
		goesOn := newCall(c, &Command{Keep: keep}, out)
		c.Read(remote.NewReader(bytes.NewReader(stream), remote.MaxFromRunner))
		if _, err := c.Ask(&remote.Message{Type: remote.TypeAsk}, nil); err == nil {
			t.Error("a stream that is over has answered")
		}
		for _, call := range []*remoteCall{waited, goesOn} {
			select {
			case <-call.ended:
			default:
				continue
			}
			res, err := call.outcome()
			if err != nil && len(err.Error()) > 4*remote.MaxSentence {
				t.Errorf("%d bytes of error", len(err.Error()))
			}
			for _, o := range []capture.Output{res.Stdout, res.Stderr} {
				if len(o.Head) > keep || len(o.Tail) > keep {
					t.Errorf("%d and %d bytes are kept", len(o.Head), len(o.Tail))
				}
			}
			if call == waited {
				word(res)
			}
		}
		if kept := out.Finish(); len(kept.Head)+len(kept.Tail) > 2*keep {
			t.Errorf("%d bytes are kept", len(kept.Head)+len(kept.Tail))
		}
	})
}
