package containers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/lazyregexp"
	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/private"
)

// A Container is one that runs, is being made, or has ended.
type Container struct {
	fleet  *Fleet
	Name   string
	Shared bool
	Mounts Mounts
	Bare   bool       // it was made for commands that nothing else confines
	words  *lastLines // of the engine

	ctx  context.Context // until it is given up
	give context.CancelCauseFunc

	ready chan struct{} // closed when it runs, or cannot
	err   error         // why it cannot
	Conn  *Conn
	Tree  string

	Welcome *remote.Welcome // the runner's, once it runs

	Process *os.Process // the engine's command
	silent  bool        // it was given up because it said nothing

	Ended chan struct{} // closed when nothing of it is left
	last  string        // its last words
}

// makeTime is how long an engine may take to make a container: it may have to fetch
// a large image, and says nothing while a layer comes. One that has not said that it
// fetches anything, and is silent for engineSilence, is taken for dead.
const (
	makeTime      = 30 * time.Minute
	engineSilence = 2 * time.Minute
)

// errEngineSilent: an engine does not run a container, and says nothing of that.
var errEngineSilent = errors.New("it says nothing")

// fetches is what engines say when they fetch an image.
var fetches = lazyregexp.New(`(?i)unable to find image|\bpulling\b|trying to pull|\bpull complete\b|download|resolving|fetching|copying blob`)

// open makes the container and watches over it until its end.
func (b *Container) open() {
	defer b.fleet.forget(b)
	defer close(b.Ended)
	cmd, err := b.start()
	b.err = err
	close(b.ready)
	if err == nil {
		<-b.Conn.Done
	}
	if cmd != nil {
		b.last = b.finish(cmd)
	}
	if b.Tree != "" {
		private.Remove(b.Tree)
		b.fleet.Guard.DirEnds(b.Tree)
	}
}

// start has the engine run the container, and looks at what its runner says.
func (b *Container) start() (*exec.Cmd, error) {
	ctx, cancel := context.WithTimeout(b.ctx, makeTime)
	defer cancel()
	f := b.fleet
	if err := f.engine.look(ctx); err != nil {
		return nil, err
	}
	var canary string
	var err error
	if b.Tree, canary, err = f.NewTree(); err != nil {
		return nil, err
	}
	f.Guard.DirBegins(b.Tree)
	cmd, err := b.run(ctx)
	if err == nil && b.Welcome.Confined == "" && b.Welcome.Failed == "" {
		f.bare.Store(true)
	}
	if err == nil && f.bare.Load() && !b.Bare && b.Mounts.guarded() {
		b.Conn.Fail(errEndedMeanwhile) // once more, with the repository read only and sockets covered
		b.finish(cmd)
		b.Name = newContainerName()
		cmd, err = b.run(ctx)
	}
	if err == nil {
		if err = f.judge(b.Welcome, canary); err != nil {
			b.Conn.Fail(err)
		}
	}
	return cmd, err
}

// run has the engine run the container, and waits for its runner.
func (b *Container) run(ctx context.Context) (*exec.Cmd, error) {
	f := b.fleet
	b.Bare = f.unguarded()
	args, err := f.runArgs(b)
	if err != nil {
		return nil, err
	}
	cmd := f.engine.cmd(args...)
	cmd.Stderr = b.words
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, f.engine.notStarted(err)
	}
	b.Process = cmd.Process
	hangUp := sync.OnceFunc(func() { _ = in.Close() })
	shortcut, hello := openDirect(b.Tree), f.Hello(b.Tree, b.Mounts)
	defer shortcut.close()
	shortcut.offer(hello, f.TreeAt(b.Tree))
	ctx, stop := b.whileItSpeaks(ctx)
	defer stop()
	conn, welcome, err := dialRunner(ctx, out, in, hangUp, shortcut, hello, f.Limits)
	if err != nil {
		hangUp()
		b.silent = errors.Is(err, errEngineSilent)
		b.last = b.finish(cmd)
		if cause := context.Cause(b.ctx); cause != nil {
			return nil, cause
		}
		if b.silent {
			return nil, f.engine.silent(f.Silence, b.words.last())
		}
		if b.words.last() == "" {
			b.last = silentEnd(err, b.last)
		}
		return nil, f.engine.failed(f.Image, b.words.String(), b.last)
	}
	b.Conn, b.Welcome = conn, welcome
	return cmd, nil
}

// whileItSpeaks is a context that ends when the engine has been silent for too long.
func (b *Container) whileItSpeaks(ctx context.Context) (speaking context.Context, stop func()) {
	speaking, end := context.WithCancelCause(ctx)
	go func() {
		for wait := b.fleet.Silence; wait > 0; wait = b.fleet.Silence - b.words.silence() {
			select {
			case <-time.After(wait):
			case <-speaking.Done():
				return
			}
			if fetches.MatchString(b.words.String()) {
				return
			}
		}
		end(errEngineSilent)
	}()
	return speaking, func() { end(nil) }
}

// silentEnd says what became of an engine that said nothing of it: err is what came of
// reading what it printed, last how it ended.
func silentEnd(err error, last string) string {
	switch {
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.EPIPE):
		return "what it printed is not what perstack-base says in a container"
	case last == noWord:
		return "it ended without a word"
	}
	return "it ended with " + last
}

// judge refuses a runner that commands cannot be given to.
func (f *Fleet) judge(w *remote.Welcome, canary string) error {
	switch {
	case w.Failed != "":
		return &Error{What: "commands cannot run in the container: " + remote.Clip(w.Failed)}
	case w.Canary != canary || !w.Sees:
		return f.engine.blind(f.Dir)
	case w.Unkept != "":
		return &Error{What: "the engine does not keep " + remote.Clip(w.Unkept) + " here: the container has no such limit",
			Way: "Ask the user to start perstack-base without it, or with an engine that may set limits (docker info and podman info tell what is missing)."}
	case w.Confined == "" && len(f.Network.Rules()) > 0:
		return &Error{What: "the rules of --network cannot be kept inside the container: " + remote.Clip(w.Why),
			Way: "Ask the user to start perstack-base with --network deny or --network allow, or to take an engine and a kernel that permit Landlock and seccomp in containers."}
	}
	return nil
}

// TailEvery is how often the last line of a command is told: nobody reads faster.
const TailEvery = 200 * time.Millisecond

// Await waits until the container runs, for as long as ctx lasts, and tells meanwhile
// what the engine says.
func (b *Container) Await(ctx context.Context, tail *capture.Tail) error {
	tick := time.NewTicker(TailEvery)
	defer tick.Stop()
	for told := ""; ; {
		select {
		case <-b.ready:
			return b.err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			if line := b.words.last(); tail != nil && line != told {
				tail.Set(line)
				told = line
			}
		}
	}
}

// Over reports whether the container cannot run commands any more.
func (b *Container) Over() bool {
	select {
	case <-b.ready:
	default:
		return false
	}
	if b.err != nil {
		return true
	}
	select {
	case <-b.Conn.Done:
		return true
	default:
		return false
	}
}

// Lived reports whether the container ran.
func (b *Container) Lived() bool { return b.err == nil }

// Release says that one session less uses it.
func (b *Container) Release() {
	if b.Shared {
		b.fleet.release(b)
	}
}

// End ends the container, and what runs there before with the grace that it has,
// unless now is closed.
func (b *Container) End(shell uint64, now <-chan struct{}) {
	b.give(errEndedMeanwhile)
	<-b.ready
	if b.Conn != nil {
		b.Conn.Farewell(shell, now)
		b.Conn.Fail(errEndedMeanwhile)
	}
	<-b.Ended
}

// Farewell has a runner end a shell with all that it left running.
func (c *Conn) Farewell(shell uint64, now <-chan struct{}) {
	over, told := make(chan time.Time), make(chan struct{})
	defer close(over)
	go func() { // for a runner that reads nothing takes no question either
		defer close(told)
		_, _ = c.Ask(&remote.Message{Type: remote.TypeClose, Shell: shell}, over)
	}()
	select {
	case <-told:
	case <-now:
	case <-time.After(c.Patience()):
	}
}

// RunnerEnd is how long a runner has to end what it runs. What is left then ends with
// its container.
const RunnerEnd = 5 * time.Second

// The time that an engine has to let a container end whose runner has no server any
// more, and to remove one by force.
const (
	endTime    = RunnerEnd + 3*time.Second
	removeTime = 20 * time.Second
)

// finish waits for the end of the engine's command, brings it about if need be, and
// returns the container's last words.
func (b *Container) finish(cmd *exec.Cmd) string {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	patience := endTime
	switch {
	case b.Conn == nil && (b.silent || b.ctx.Err() != nil): // it may be fetching an image, and hears nothing
		patience = time.Second
	case b.Conn != nil && errors.Is(b.Conn.err, ErrSilent):
		patience = 0
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return b.lastWordsOf(err)
	case <-timer.C:
	}
	killGroup(cmd)
	<-done
	b.fleet.engine.remove(b.Name)
	return b.lastWordsOf(b.Conn.reason())
}

// reason is why the stream is over.
func (c *Conn) reason() error {
	if c == nil {
		return nil
	}
	<-c.Done
	return c.err
}

// noWord is how a container ended that said nothing.
const noWord = "without a word"

func (b *Container) lastWordsOf(err error) string {
	said := strings.TrimSpace(b.words.last())
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == 137:
		said = strings.TrimSpace("it was killed: by somebody, or because it was out of memory. " + said)
	case said == "" && errors.As(err, &exit):
		said = fmt.Sprintf("exit code %d", exit.ExitCode())
	case said == "" && err != nil:
		said = err.Error()
	case said == "":
		said = noWord
	}
	return strings.TrimSuffix(said, ".")
}

// LastWords are the container's. It has ended.
func (b *Container) LastWords() string {
	<-b.Ended
	return b.last
}

// A lastLines keeps the end of what an engine says.
type lastLines struct {
	mu   sync.Mutex
	text []byte
	at   time.Time // when it last said something
}

const maxWords = 4096

func (l *lastLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = time.Now()
	l.text = append(l.text, b...)
	if len(l.text) > maxWords {
		l.text = append([]byte(nil), l.text[len(l.text)-maxWords:]...)
	}
	return len(b), nil
}

func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return capture.ValidText(l.text)
}

// silence is how long nothing was said; for ever where nothing was.
func (l *lastLines) silence() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.at)
}

// last is the last line that says something.
func (l *lastLines) last() string { return lastLine(l.String()) }

func lastLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		if line != "" && !strings.HasPrefix(line, "Run 'docker") && !strings.HasPrefix(line, "See 'docker") {
			return line
		}
	}
	return ""
}
