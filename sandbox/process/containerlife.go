package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
)

// A container is one that runs, is being made, or has ended.
type container struct {
	fleet  *fleet
	name   string
	shared bool
	mounts mounts
	bare   bool       // it was made for commands that nothing else confines
	words  *lastLines // of the engine

	ctx  context.Context // until it is given up
	give context.CancelCauseFunc

	ready chan struct{} // closed when it runs, or cannot
	err   error         // why it cannot
	conn  *remoteConn
	tree  string

	welcome *remote.Welcome // the runner's, once it runs

	process *os.Process // the engine's command
	silent  bool        // it was given up because it said nothing

	ended chan struct{} // closed when nothing of it is left
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
var fetches = regexp.MustCompile(`(?i)unable to find image|\bpulling\b|trying to pull|\bpull complete\b|download|resolving|fetching|copying blob`)

// open makes the container and watches over it until its end.
func (b *container) open() {
	defer b.fleet.forget(b)
	defer close(b.ended)
	cmd, err := b.start()
	b.err = err
	close(b.ready)
	if err == nil {
		<-b.conn.done
	}
	if cmd != nil {
		b.last = b.finish(cmd)
	}
	if b.tree != "" {
		removeTree(b.tree)
		b.fleet.c.guard.dirEnds(b.tree)
	}
}

// start has the engine run the container, and looks at what its runner says.
func (b *container) start() (*exec.Cmd, error) {
	ctx, cancel := context.WithTimeout(b.ctx, makeTime)
	defer cancel()
	f := b.fleet
	if err := f.engine.look(ctx); err != nil {
		return nil, err
	}
	var canary string
	var err error
	if b.tree, canary, err = f.newTree(); err != nil {
		return nil, err
	}
	f.c.guard.dirBegins(b.tree)
	cmd, err := b.run(ctx)
	if err == nil && b.welcome.Confined == "" && b.welcome.Failed == "" {
		f.bare.Store(true)
	}
	if err == nil && f.bare.Load() && !b.bare && b.mounts.guarded() {
		b.conn.fail(errEndedMeanwhile) // once more, with the repository read only and sockets covered
		b.finish(cmd)
		b.name = newContainerName()
		cmd, err = b.run(ctx)
	}
	if err == nil {
		if err = f.judge(b.welcome, canary); err != nil {
			b.conn.fail(err)
		}
	}
	return cmd, err
}

// run has the engine run the container, and waits for its runner.
func (b *container) run(ctx context.Context) (*exec.Cmd, error) {
	f := b.fleet
	b.bare = f.unguarded()
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
	b.process = cmd.Process
	hangUp := sync.OnceFunc(func() { _ = in.Close() })
	shortcut, hello := openDirect(b.tree), f.hello(b)
	defer shortcut.close()
	shortcut.offer(hello, f.treeAt(b.tree))
	ctx, stop := b.whileItSpeaks(ctx)
	defer stop()
	conn, welcome, err := dialRunner(ctx, out, in, hangUp, shortcut, hello, f.c.limits)
	if err != nil {
		hangUp()
		b.silent = errors.Is(err, errEngineSilent)
		b.last = b.finish(cmd)
		if cause := context.Cause(b.ctx); cause != nil {
			return nil, cause
		}
		if b.silent {
			return nil, f.engine.silent(f.silence, b.words.last())
		}
		if b.words.last() == "" {
			b.last = silentEnd(err, b.last)
		}
		return nil, f.engine.failed(f.c.cfg.Container.Image, b.words.String(), b.last)
	}
	b.conn, b.welcome = conn, welcome
	return cmd, nil
}

// whileItSpeaks is a context that ends when the engine has been silent for too long.
func (b *container) whileItSpeaks(ctx context.Context) (speaking context.Context, stop func()) {
	speaking, end := context.WithCancelCause(ctx)
	go func() {
		for wait := b.fleet.silence; wait > 0; wait = b.fleet.silence - b.words.silence() {
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
func (f *fleet) judge(w *remote.Welcome, canary string) error {
	switch {
	case w.Failed != "":
		return &ContainerError{What: "commands cannot run in the container: " + clipped(w.Failed)}
	case w.Canary != canary || !w.Sees:
		return f.engine.blind(f.c.cfg.Dir)
	case w.Unkept != "":
		return &ContainerError{What: "the engine does not keep " + clipped(w.Unkept) + " here: the container has no such limit",
			Way: "Ask the user to start perstack-base without it, or with an engine that may set limits (docker info and podman info tell what is missing)."}
	case w.Confined == "" && len(f.c.cfg.Network.Rules()) > 0:
		return &ContainerError{What: "the rules of --network cannot be kept inside the container: " + clipped(w.Why),
			Way: "Ask the user to start perstack-base with --network deny or --network allow, or to take an engine and a kernel that permit Landlock and seccomp in containers."}
	}
	return nil
}

// await waits until the container runs, for as long as ctx lasts, and tells meanwhile
// what the engine says.
func (b *container) await(ctx context.Context, tail *Tail) error {
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	for told := ""; ; {
		select {
		case <-b.ready:
			return b.err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			if line := b.words.last(); tail != nil && line != told {
				tail.set(line)
				told = line
			}
		}
	}
}

// over reports whether the container cannot run commands any more.
func (b *container) over() bool {
	select {
	case <-b.ready:
	default:
		return false
	}
	if b.err != nil {
		return true
	}
	select {
	case <-b.conn.done:
		return true
	default:
		return false
	}
}

// lived reports whether the container ran.
func (b *container) lived() bool { return b.err == nil }

// release says that one session less uses it.
func (b *container) release() {
	if b.shared {
		b.fleet.release(b)
	}
}

// end ends the container, and what runs there before with the grace that it has,
// unless now is closed.
func (b *container) end(shell uint64, now <-chan struct{}) {
	b.give(errEndedMeanwhile)
	<-b.ready
	if b.conn != nil {
		b.conn.farewell(shell, now)
		b.conn.fail(errEndedMeanwhile)
	}
	<-b.ended
}

// farewell has a runner end a shell with all that it left running.
func (c *remoteConn) farewell(shell uint64, now <-chan struct{}) {
	over, told := make(chan time.Time), make(chan struct{})
	defer close(over)
	go func() { // for a runner that reads nothing takes no question either
		defer close(told)
		_, _ = c.ask(&remote.Message{Type: remote.TypeClose, Shell: shell}, over)
	}()
	select {
	case <-told:
	case <-now:
	case <-time.After(c.patience()):
	}
}

// The time that an engine has to let a container end whose runner has no server any
// more, and to remove one by force.
const (
	endTime    = runnerEnd + 3*time.Second
	removeTime = 20 * time.Second
)

// finish waits for the end of the engine's command, brings it about if need be, and
// returns the container's last words.
func (b *container) finish(cmd *exec.Cmd) string {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	patience := endTime
	switch {
	case b.conn == nil && (b.silent || b.ctx.Err() != nil): // it may be fetching an image, and hears nothing
		patience = time.Second
	case b.conn != nil && errors.Is(b.conn.err, errSilent):
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
	b.fleet.engine.remove(b.name)
	return b.lastWordsOf(b.conn.reason())
}

// reason is why the stream is over.
func (c *remoteConn) reason() error {
	if c == nil {
		return nil
	}
	<-c.done
	return c.err
}

// noWord is how a container ended that said nothing.
const noWord = "without a word"

func (b *container) lastWordsOf(err error) string {
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

// lastWords are the container's. It has ended.
func (b *container) lastWords() string {
	<-b.ended
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
	return ValidText(l.text)
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

func jsonOf(v any) json.RawMessage {
	text, _ := json.Marshal(v) // numbers
	return text
}
