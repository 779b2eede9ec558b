package process

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/containers"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/input"
)

// An away is the part of a Shell whose commands run in a container.
type away struct {
	fleet  *containers.Fleet
	shares bool // the container, with other sessions of a single call each

	mu     sync.Mutex
	berths []*berth
	places func(ctx context.Context, own bool) Places // what the session's commands may reach besides
	hint   string                                     // for the next command: why it does not find what the last one left
}

// A berth is a shell's place in one container.
type berth struct {
	*containers.Container
	shell uint64 // its number there
}

// Contained reports whether commands run in a container.
func (s *Shell) Contained() bool { return s != nil && s.away != nil }

// Mount says what commands of the session reach besides the workspace where they run
// in a container, which has to be known before there is one. own: the container is
// the session's own. It does nothing elsewhere.
func (s *Shell) Mount(places func(ctx context.Context, own bool) Places) {
	if s.away != nil {
		s.away.places = places
	}
}

// sees has a shell reach what another one does.
func (s *Shell) sees(other *Shell) {
	if s.away != nil && other.away != nil {
		s.away.places = other.away.places
	}
}

// enter admits a command, which counts as active until the caller says Done.
func (s *Shell) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return ErrEnding
	}
	s.used = true
	s.active.Add(1)
	return nil
}

// admit finds the container for a command, and makes it if need be; see [Shell.open].
func (a *away) admit(ctx context.Context, s *Shell, c *Command) (b *berth, hint string, err error) {
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	if err := c.check(); err != nil {
		return nil, "", err
	}
	if err := s.enter(); err != nil {
		return nil, "", err
	}
	starting, started := s.until(ctx)
	defer started()
	a.leaveEnded(starting)
	b = a.berth(starting, Places{Read: c.Read, Write: c.Write})
	if err := b.Await(starting, c.Tail); err != nil {
		a.leave(b)
		s.active.Done()
		return nil, "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	hint, a.hint = a.hint, ""
	return b, hint, nil
}

// berth is the shell's place in a container that has what a command needs.
func (a *away) berth(ctx context.Context, needs Places) *berth {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(a.berths) - 1; i >= 0; i-- {
		if b := a.berths[i]; !b.Over() && b.Mounts.Cover(needs) {
			return b
		}
	}
	b := &berth{shell: a.fleet.NextShell()}
	var reach Places
	if a.places != nil {
		reach = a.places(ctx, !a.shares)
	}
	if a.shares {
		b.Container = a.fleet.Share(reach, needs)
	}
	if b.Container == nil {
		if a.shares && a.places != nil { // so it is the session's own
			reach = a.places(ctx, true)
		}
		b.Container = a.fleet.Launch(a.fleet.MountsFor(reach, needs))
	}
	a.berths = append(a.berths, b)
	return b
}

// leaveEnded gives up places in containers that ended while no command ran there.
func (a *away) leaveEnded(ctx context.Context) {
	a.mu.Lock()
	berths := slices.Clone(a.berths)
	a.mu.Unlock()
	for _, b := range berths {
		if !b.Over() {
			continue
		}
		select {
		case <-b.Ended:
			a.leave(b)
		case <-ctx.Done():
			return
		}
	}
}

// leave gives up a place in a container that is over.
func (a *away) leave(b *berth) {
	if !b.Over() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, other := range a.berths {
		if other == b {
			a.berths = append(a.berths[:i:i], a.berths[i+1:]...)
			b.Release()
			if b.Lived() {
				a.hint = "The container of this session had ended (" + b.LastWords() + "), so this command ran in a new one: what was left running, and what lay outside of the workspace, is gone."
			}
			return
		}
	}
}

// lost is why a command has no result.
func (a *away) lost(b *berth) error {
	<-b.Ended
	a.leave(b)
	return &ContainerError{What: "the container in which the command ran has ended (" + b.LastWords() + ")",
		Way: "Run the command again: it gets a new container. What ran in the old one, and what lay there outside of the workspace, is gone."}
}

// run runs a command to its end; see [Shell.Run].
func (a *away) run(ctx context.Context, s *Shell, c *Command) (Result, error) {
	b, hint, err := a.admit(ctx, s, c)
	if err != nil {
		return Result{}, err
	}
	defer s.active.Done()
	call := newCall(b.Conn, c, nil)
	defer call.forget()
	began := time.Now()
	if err := call.begin(remote.TypeRun, b.shell, c, s.c.remoteStartup(c.Startup)); err != nil {
		return Result{}, a.unsent(b, c, err)
	}
	cancelled := a.follow(ctx, s, call, c.Timeout)
	select {
	case <-call.ended:
	default:
		if cancelled {
			return Result{ExitCode: 128 + int(syscall.SIGKILL), Signal: "SIGKILL", Cancelled: true, Duration: time.Since(began)}, nil
		}
		return Result{}, a.lost(b)
	}
	res, err := call.outcome()
	if hint != "" {
		res.Refused = append(res.Refused, hint)
	}
	return res, err
}

// unsent is why a command was not begun.
func (a *away) unsent(b *berth, c *Command, err error) error {
	if err == remote.ErrTooLarge {
		return &StartError{Command: c.Name, What: c.Name, Err: ErrArgsTooLong}
	}
	return a.lost(b)
}

// follow waits until a command has ended or its container is lost, and has the runner
// end it when its caller does not wait any more. A runner that does not end a command
// in time is taken for dead.
func (a *away) follow(ctx context.Context, s *Shell, call *remoteCall, timeout time.Duration) (cancelled bool) {
	var late <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout + call.conn.Patience())
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-call.ended:
		return false
	case <-call.conn.Done:
		return false
	case <-late:
		call.conn.Fail(containers.ErrSilent)
		return false
	case <-ctx.Done():
	case <-s.ending:
	}
	go func() { _ = call.send(&remote.Message{Type: remote.TypeCancel}) }()
	patience := time.NewTimer(call.conn.Patience())
	defer patience.Stop()
	select {
	case <-call.ended:
	case <-call.conn.Done:
	case <-s.now:
	case <-patience.C:
		call.conn.Fail(containers.ErrSilent)
	}
	return true
}

// start starts a command whose end nobody has to wait for; see [Shell.start].
func (a *away) start(ctx context.Context, s *Shell, c *Command) (*Running, error) {
	b, hint, err := a.admit(ctx, s, c)
	if err != nil {
		return nil, err
	}
	l := s.c.limits
	out := &capture.Stream{Keep: l.OutputLast, First: l.OutputFirst, Latest: c.Tail}
	call := newCall(b.Conn, c, out)
	if err = call.begin(remote.TypeStart, b.shell, c, s.c.remoteStartup(c.Startup)); err != nil {
		err = a.unsent(b, c, err)
	} else {
		err = a.awaitStart(ctx, s, b, call)
	}
	if err != nil {
		call.forget()
		s.active.Done()
		return nil, err
	}
	r := newRunning(s, c, out)
	p := remoteProcess{call}
	r.process, r.in = p, input.New(p, l.InputBytes)
	go a.attend(s, b, r, call, hint)
	return r, nil
}

func (a *away) awaitStart(ctx context.Context, s *Shell, b *berth, call *remoteCall) error {
	late := time.NewTimer(s.c.startTime)
	defer late.Stop()
	select {
	case <-call.began:
		return nil
	case <-late.C:
		call.conn.Fail(containers.ErrSilent)
		return a.lost(b)
	case <-call.ended:
		if call.fault != nil {
			return errorOf(call.fault)
		}
		return nil
	case <-call.conn.Done:
		return a.lost(b)
	case <-ctx.Done():
		_ = call.send(&remote.Message{Type: remote.TypeCancel})
		return context.Cause(ctx)
	case <-s.ending:
		return ErrEnding
	}
}

// attend waits for the end of a command that goes on.
func (a *away) attend(s *Shell, b *berth, r *Running, call *remoteCall, hint string) {
	defer s.active.Done()
	cancelled := false
	select {
	case <-call.ended:
	case <-call.conn.Done:
	case <-s.ending:
		cancelled = true
		r.process.end(syscall.SIGTERM)
		select {
		case <-call.ended:
		case <-call.conn.Done:
		case <-time.After(s.c.limits.KillGrace):
		}
	}
	res := Result{ExitCode: 128 + int(syscall.SIGKILL), Signal: "SIGKILL", Duration: time.Since(r.began)}
	select {
	case <-call.ended:
		res, _ = call.outcome()
		res.Stdout, res.Stderr = capture.Output{}, capture.Output{}
	default:
		if !cancelled {
			res.Refused = append(res.Refused, a.lost(b).Error()+".")
		}
	}
	res.Cancelled = res.Cancelled || cancelled
	if hint != "" {
		res.Refused = append(res.Refused, hint)
	}
	r.finish(res)
}

// close ends what the shell's commands left running, and its containers.
func (a *away) close(s *Shell) {
	a.mu.Lock()
	berths := a.berths
	a.berths = nil
	a.mu.Unlock()
	var all sync.WaitGroup
	for _, b := range berths {
		all.Go(func() { b.leave(s.now) })
	}
	all.Wait()
	s.active.Wait()
}

// leave ends what a shell has in a container, and a container of its own.
func (b *berth) leave(now <-chan struct{}) {
	if !b.Shared {
		b.End(b.shell, now)
		return
	}
	if b.Conn != nil {
		b.Conn.Farewell(b.shell, now)
	}
	b.Release()
}
