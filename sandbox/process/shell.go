package process

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/tree"
	"github.com/perstack-ai/perstack-base/sandbox/process/quota"
)

// A Shell runs the commands of one session and owns what they leave behind.
// All methods may be called at the same time.
type Shell struct {
	c       *Commands
	session session
	ending  chan struct{} // closed: running commands are ended
	now     chan struct{} // closed: without grace
	endOnce sync.Once
	nowOnce sync.Once
	active  sync.WaitGroup

	held   registry // what Start has started
	away   *away    // commands run in a container; nil: on this machine
	ration quota.Ration

	mu      sync.Mutex
	running map[*job]bool
	left    []*job // ended, but with processes that run on or hold pipes
	used    bool
	ended   bool
}

// A job is one command that was started.
type job struct {
	tree    tree.Tree
	cage    *cage  // nil: not confined
	dir     string // where it was started
	mark    uint64 // what the gate refused before is not its own
	out     [2]*capture.Stream
	pipes   []*os.File    // our ends; when the command has a terminal, its master
	held    *os.File      // the other end of that, until the program has ended
	stdin   *os.File      // what a running command's input goes to
	number  int           // of the terminal
	drained chan struct{} // closed when no process holds the pipes any more
	start   string        // the directory of its Startup, "" for none
	began   time.Time
	shell   *Shell
	account quota.Account // what was counted before it
	started atomic.Bool   // tree is set
	shared  atomic.Bool   // another command of the session ran at some time meanwhile
}

// A launch is what a command is started with, and in.
type launch struct {
	tree.Launch
	cage *cage // nil: nothing confines it
}

// Run runs one command to its end. A command that fails is a Result; an error
// means that it was not started: a *StartError, a *PathError for Dir,
// ErrEnding, or the cause of a context that ended before.
func (s *Shell) Run(ctx context.Context, c Command) (Result, error) {
	ctx = beginSpan(ctx, &c)
	res, err := s.run(ctx, &c)
	if err != nil {
		c.span.Fail()
		c.span.End()
		return res, err
	}
	s.endSpan(c.span, &res, res.Stdout.Total+res.Stderr.Total)
	return res, nil
}

func (s *Shell) run(ctx context.Context, c *Command) (Result, error) {
	if s.away != nil {
		return s.away.run(ctx, s, c)
	}
	j, err := s.open(ctx, c)
	if err != nil {
		return Result{}, err
	}
	defer s.active.Done()
	if j.start != "" {
		defer s.session.unlay(j.start)
	}
	res := s.follow(ctx, j, c)
	res.Stdout, res.Stderr = j.out[0].Finish(), j.out[1].Finish()
	s.settle(j, &res)
	return res, nil
}

// open starts a command, which counts as active until the caller says Done.
func (s *Shell) open(ctx context.Context, c *Command) (*job, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	j := &job{shell: s, drained: make(chan struct{}), began: time.Now()}
	if err := s.begin(j); err != nil {
		return nil, err
	}
	starting, started := s.until(ctx)
	err := s.launch(starting, j, c)
	cause := context.Cause(starting)
	started()
	if err == nil {
		return j, nil
	}
	if j.start != "" {
		s.session.unlay(j.start)
	}
	s.forget(j)
	s.active.Done()
	if cause != nil {
		err = cause
	}
	return nil, noCommandRoom(err)
}

// until is a context that ends with ctx, or with [ErrEnding] when the session does.
func (s *Shell) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.ending:
			cancel(ErrEnding)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// begin admits a command and marks all that run at the same time as sharing the session.
func (s *Shell) begin(j *job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return ErrEnding
	}
	s.used = true
	if len(s.running) > 0 {
		j.shared.Store(true)
		for other := range s.running {
			other.shared.Store(true)
		}
	}
	s.running[j] = true
	s.active.Add(1)
	return nil
}

func (s *Shell) forget(j *job) {
	s.mu.Lock()
	delete(s.running, j)
	s.mu.Unlock()
}

// launch finds the program, opens its streams and starts it.
func (s *Shell) launch(ctx context.Context, j *job, c *Command) error {
	proc.Adopt()
	cage, err := s.session.open(s.c, c.Read, c.Write)
	if err != nil {
		return err
	}
	if err := commandRoom(s.c.null); err != nil {
		return err
	}
	l := launch{tree.Launch{Argv: append([]string{c.Name}, c.Args...), Env: s.envFor(c, cage != nil || s.c.cfg.inside != nil), Dir: c.Dir,
		Mark: s.session.mark, Alone: func() bool { return !j.shared.Load() }, Over: ctx.Done()}, cage}
	if l.Bounds, j.account, err = s.ration.Begin(s.c.rules, bounded{s}); err != nil {
		return notBounded(err)
	}
	if l.Dir == "" {
		l.Dir = s.c.cfg.Dir
	}
	if err := checkDir(l.Dir); err != nil {
		return err
	}
	if err := s.startup(j, c, &l); err != nil {
		return err
	}
	path := c.Path
	if path == "" {
		var ok bool
		if path, ok = environ.Get(l.Env, "PATH"); !ok {
			path = environ.DefaultPath
		}
	}
	if l.Path, err = environ.Lookup(c.Name, l.Dir, path); err != nil {
		return &StartError{Command: c.Name, What: c.Name, Err: err}
	}
	return s.spawn(j, c, l)
}

func (s *Shell) envFor(c *Command, confined bool) []string {
	base := s.session.env
	if c.Base != nil {
		base = s.session.private(c.Base, confined)
	}
	base = environ.Drop(environ.Keep(base, c.Only), c.Without)
	if c.span != nil {
		base = environ.Merge(environ.Drop(base, traceNames), c.span.Env())
	}
	return environ.Merge(base, c.Env)
}

// HostEnv returns a variable as commands get it, but for the private directories
// of the session; false when they do not get it.
func (s *Shell) HostEnv(name string) (string, bool) {
	if s.away != nil && name == "PATH" {
		return "", false // it is the image's
	}
	return environ.Get(s.c.env(), name)
}

// startup lays down what the program shall read first.
func (s *Shell) startup(j *job, c *Command, l *launch) error {
	if c.Startup == nil {
		return nil
	}
	var err error
	j.start, err = s.session.lay(s.c, c.Startup)
	l.Env = environ.Merge(l.Env, map[string]string{c.Startup.Var: c.Startup.value(j.start)})
	return err
}

func checkDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &sandbox.PathError{Path: dir, Err: fs.ErrNotExist}
	case err != nil:
		return &sandbox.PathError{Path: dir, Err: err}
	case !info.IsDir():
		return &sandbox.PathError{Path: dir, Err: sandbox.ErrNotDirectory}
	}
	return nil
}

// spawn opens the streams that are needed and starts the program.
func (s *Shell) spawn(j *job, c *Command, l launch) error {
	l.Files = [3]*os.File{s.c.null, s.c.null, s.c.null}
	streams := j.openPipes
	if c.Terminal != nil {
		streams = j.openTerminal
	}
	theirs, err := streams(c, &l)
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
	}()
	if err != nil {
		j.hangUp()
		return err
	}
	j.cage, j.dir, j.mark = l.cage, l.Dir, l.cage.mark()
	if j.tree, err = s.startTree(l); err != nil {
		j.hangUp()
		return startError(c, l, err)
	}
	j.started.Store(true)
	s.connect(j, c)
	return nil
}

// startTree starts the program: confined where that is possible.
func (s *Shell) startTree(l launch) (tree.Tree, error) {
	if l.cage != nil {
		return tree.StartConfined(l.cage.Jail, l.Launch)
	}
	return tree.StartGroup(l.Launch, s.c.guard, s.c.cfg.inside != nil)
}

// follow waits for the end of the program, or brings it about.
func (s *Shell) follow(ctx context.Context, j *job, c *Command) (res Result) {
	ended := make(chan tree.Ending, 1)
	go func() { ended <- j.tree.Wait() }()
	var deadline <-chan time.Time
	if c.Timeout > 0 {
		timer := time.NewTimer(c.Timeout)
		defer timer.Stop()
		deadline = timer.C
	}
	var how tree.Ending
	select {
	case how = <-ended:
		if c.NoSurvivors {
			j.tree.Kill()
		}
	case <-deadline:
		res.TimedOut = true
	case <-ctx.Done():
		res.Cancelled = true
	case <-s.ending:
		res.Cancelled = true
	}
	if res.TimedOut || res.Cancelled {
		tree.End(s.now, s.c.limits.KillGrace, syscall.SIGTERM, j.tree)
		how = tree.Ending{Code: 128 + int(syscall.SIGKILL), Signal: "SIGKILL"}
		select {
		case how = <-ended:
		case <-time.After(s.c.limits.PipeGrace): // the system cannot end it; it must not hold up the answer
		}
	}
	res.ExitCode, res.Signal = how.Code, how.Signal
	if j.held != nil {
		_ = j.held.Close() // the output ends with the last process that has the terminal
	}
	s.awaitPipes(j)
	return res
}

// over reports whether nothing of the command runs or holds a pipe.
func (j *job) over() bool {
	select {
	case <-j.drained:
		return !j.tree.Survivors()
	default:
		return false
	}
}

// refused tells what the sandbox kept a command from.
func (j *job) refused(stdout, stderr capture.Output) []string {
	t, ok := j.tree.(tree.Confined)
	if !ok {
		return nil
	}
	said := capture.ValidText(stderr.Head) + capture.ValidText(stderr.Tail)
	if more := hints.Complaints(capture.ValidText(stdout.Head) + capture.ValidText(stdout.Tail)); more != "" {
		said += "\n" + more
	}
	return j.cage.explain(j.dir, said, j.cage.since(j.mark), t.Refusals())
}

// settle completes the result of an ended command and lets go of it, or keeps it
// until its survivors end.
func (s *Shell) settle(j *job, res *Result) {
	res.Refused = append(s.reasons(j, res), j.refused(res.Stdout, res.Stderr)...) // whatever the exit code: a pipe or "|| true" hides it
	res.Duration = time.Since(j.began)
	over := j.over()
	if !s.leave(j, over) {
		j.tree.Kill()
		res.Refused = append(res.Refused, tooManyLeft)
	}
	switch t, ok := j.tree.(tree.Confined); {
	case over:
		j.tree.Release()
	case ok:
		go func() {
			<-t.Gone()
			<-j.drained
			s.prune()
		}()
	default:
		s.prune() // its survivors may have ended since over was asked
	}
}

// Terminate ends what runs now and refuses what comes later; see [Commands.Terminate].
func (s *Shell) Terminate() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.endOnce.Do(func() { close(s.ending) })
}

// Kill ends everything at once.
func (s *Shell) Kill() {
	s.Terminate()
	s.nowOnce.Do(func() { close(s.now) })
}

// Close ends the session: SIGTERM to all that runs or was left running, after
// the grace period SIGKILL; then the private directories are removed.
func (s *Shell) Close() error {
	s.Terminate()
	s.c.mu.Lock()
	open := s.c.shells[s]
	last := len(s.c.shells) == 1
	s.c.mu.Unlock()
	if !open {
		return nil
	}
	switch {
	case s.away != nil:
		s.away.close(s)
	case s.used: // fixed since Terminate
		s.endLeft(last)
		s.active.Wait()
		s.endLeft(last) // what the last commands left
	}
	s.held.close()
	s.ration.Close()
	s.session.close(s.c.guard)
	s.c.mu.Lock()
	delete(s.c.shells, s)
	s.c.mu.Unlock()
	return nil
}

func (s *Shell) endLeft(last bool) {
	s.mu.Lock()
	left := s.left
	s.left = nil
	s.mu.Unlock()
	var trees []tree.Tree
	if !s.session.confined() { // nothing leaves a cage
		trees = append(trees, tree.Strays{Tmp: s.session.mark(), All: last})
	}
	for _, j := range left {
		trees = append(trees, j.tree)
	}
	tree.End(s.now, s.c.limits.KillGrace, syscall.SIGTERM, trees...)
	for _, j := range left {
		j.tree.Release()
		j.hangUp()
	}
}
