package process

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/internal/pty"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/input"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/tree"
	"github.com/perstack-ai/perstack-base/sandbox/trace"
)

// A Running is a command that outlives the call which started it: its output can be
// looked at, also again, and its input written, until it has ended or its session
// does. All methods may be called at the same time, and none holds up another.
type Running struct {
	ID    string
	Label string // as Command says

	shell   *Shell
	process Process
	began   time.Time
	out     *capture.Stream
	in      *input.Input
	tty     bool
	tail    *capture.Tail
	span    *trace.Span // until it has ended; nil for none
	ended   chan struct{}
	done    Result    // fixed once ended is closed
	at      time.Time // when that was

	mu       sync.Mutex
	told     int64 // up to where its output was asked for
	looked   time.Time
	needs    Needs
	lookedAt int64
}

// ErrInputEnded: the input of the command was ended before, or the command has closed it.
var ErrInputEnded = input.ErrEnded

// An InputFullError refuses to write to a command that has not read what was written before.
type InputFullError = input.FullError

// An EndedError refuses to write to a command that has ended.
type EndedError struct{ Result Result }

func (e *EndedError) Error() string {
	if e.Result.Signal != "" {
		return "the command has ended by " + e.Result.Signal
	}
	return fmt.Sprintf("the command has ended with exit code %d", e.Result.ExitCode)
}
func (*EndedError) Code() fault.Code { return fault.Conflict }

// A Process is what a Running has of the program that it started, wherever that runs.
type Process interface {
	over() bool             // nothing of it runs or holds its output
	end(ask syscall.Signal) // asks all of it, and after the grace period kills what is left
	needs() Needs
}

// start starts a command whose end nobody has to wait for.
func (s *Shell) start(ctx context.Context, c Command) (*Running, error) {
	l := s.c.limits
	c.Live, c.Stdout, c.Stderr, c.Stdin, c.Timeout = true, true, true, nil, 0
	c.Keep, c.first, c.Tail = l.OutputLast, l.OutputFirst, &capture.Tail{}
	ctx = beginSpan(ctx, &c)
	r, err := s.startWith(ctx, &c)
	if err != nil {
		c.span.Fail()
		c.span.End()
	}
	return r, err
}

func (s *Shell) startWith(ctx context.Context, c *Command) (*Running, error) {
	if s.away != nil {
		return s.away.start(ctx, s, c)
	}
	j, err := s.open(ctx, c)
	if err != nil {
		return nil, err
	}
	r := newRunning(s, c, j.out[0])
	r.process, r.in = localProcess{s, j, r.tty}, input.New(j.stdin, s.c.limits.InputBytes)
	go r.attend(s, j, c)
	return r, nil
}

func newRunning(s *Shell, c *Command, out *capture.Stream) *Running {
	return &Running{
		Label: c.Label, shell: s, began: time.Now(), out: out, tty: c.Terminal != nil, tail: c.Tail, span: c.span, ended: make(chan struct{}),
	}
}

// A localProcess runs on this machine.
type localProcess struct {
	shell *Shell
	*job
	tty bool
}

func (p localProcess) end(ask syscall.Signal) {
	tree.End(p.shell.now, p.shell.c.limits.KillGrace, ask, p.tree)
}

func (p localProcess) needs() Needs {
	awaits := p.held != nil && tree.AwaitsTerminal(p.tree, p.number) || p.held == nil && tree.AwaitsPipe(p.tree, p.stdin)
	// What it wrote before, as a prompt, may not have been read yet: it belongs to the answer.
	if !awaits || slices.ContainsFunc(p.pipes, capture.Pending) {
		return Needs{}
	}
	n := Needs{Input: true}
	if p.tty {
		modes, known := pty.ModesOf(p.stdin)
		n.Quiet = known && modes.Lines && !modes.Echo
	}
	return n
}

// attend waits for the end of a command on this machine.
func (r *Running) attend(s *Shell, j *job, c *Command) {
	defer s.active.Done()
	if j.start != "" {
		defer s.session.unlay(j.start)
	}
	res := s.follow(context.Background(), j, c)
	if !r.tty {
		_ = j.stdin.Close() // its terminal is closed when the output has ended
	}
	told := capture.Part{}
	if s.session.confined() {
		told = j.out[0].Since(0)
	}
	res.Stdout = capture.Output{Head: told.First, Tail: told.Last} // for what was refused
	s.settle(j, &res)
	res.Stdout = capture.Output{}
	r.finish(res)
}

// finish tells how it ended.
func (r *Running) finish(res Result) {
	r.shell.endSpan(r.span, &res, r.Bytes())
	r.done, r.at = res, time.Now()
	close(r.ended)
}

// Ended is closed when the command has ended; see [Running.Result].
func (r *Running) Ended() <-chan struct{} { return r.ended }

// Result is how it ended, without its output; false while it runs.
func (r *Running) Result() (Result, bool) {
	select {
	case <-r.ended:
		return r.done, true
	default:
		return Result{Duration: time.Since(r.began)}, false
	}
}

// Last is the last line of output so far; see [Tail.Last].
func (r *Running) Last() (line string, version int64) { return r.tail.Last() }

// Bytes is how much it has written.
func (r *Running) Bytes() int64 {
	total, _ := r.out.Size()
	return total
}

// Told is up to where its output was shown, as Tell says.
func (r *Running) Told() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told
}

// Output returns the output from a position on, or where from is negative, what
// nobody was told. Whoever asks later is told what follows; hold says how many
// bytes at the end of the output are left for that, because they are incomplete.
func (r *Running) Output(from int64, hold func(capture.Part) int) capture.Part {
	r.mu.Lock()
	defer r.mu.Unlock()
	if from < 0 {
		from = r.told
	}
	p := r.out.Since(from)
	if hold != nil {
		n := hold(p)
		if p.Missed > 0 {
			p.Last = p.Last[:len(p.Last)-n]
		} else {
			p.First = p.First[:len(p.First)-n]
		}
		p.To -= int64(n)
	}
	r.told = max(r.told, p.To)
	return p
}

// Write has the command read b, after what it was given before; end is the end of
// its input, which a terminal gets as Ctrl-D.
func (r *Running) Write(b []byte, end bool) error {
	if res, over := r.Result(); over {
		return &EndedError{res}
	}
	if end && r.tty {
		b, end = append(append([]byte(nil), b...), endOfFile), false
	}
	return r.in.Write(b, end)
}

const endOfFile = 4 // as a key

// put is Write for a runner, whose server waits until the command can read b.
func (r *Running) put(b []byte, end bool) error { return r.in.Put(b, end) }

// Kill sends the command and all that it started a signal, and what is left after
// the grace period it kills. It waits for the end no longer than ctx lasts.
func (r *Running) Kill(ctx context.Context, sig syscall.Signal) error {
	over := make(chan struct{})
	go func() {
		defer close(over)
		if !r.process.over() {
			r.process.end(sig)
		}
		select { // what sleeps in the kernel cannot be ended
		case <-r.ended:
		case <-time.After(r.shell.c.limits.KillGrace):
		}
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Await waits until the command has ended, needs input, or has been silent for
// settle after writing beyond a position; but no longer than the time is, and than
// ctx lasts. A settle of 0 does not end the wait.
func (r *Running) Await(ctx context.Context, most time.Duration, beyond int64, settle time.Duration) error {
	if most <= 0 {
		return ctx.Err()
	}
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	for pause := inputLook; ; {
		total, wrote, more := r.out.Grown()
		if settle > 0 && total > beyond && time.Since(wrote) >= settle {
			return nil
		}
		look := time.NewTimer(max(min(pause, settle-time.Since(wrote)), time.Millisecond))
		if settle == 0 || total <= beyond {
			look.Reset(pause)
		}
		select {
		case <-r.ended:
			look.Stop()
			return nil
		case <-deadline.C:
			look.Stop()
			return nil
		case <-ctx.Done():
			look.Stop()
			return context.Cause(ctx)
		case <-more:
			look.Stop()
		case <-look.C:
			if time.Since(wrote) >= inputLook && r.Needs().Input {
				return nil
			}
			if total <= beyond || settle == 0 {
				pause = min(2*pause, time.Second)
			}
		}
	}
}

// inputLook is after how much silence the kernel is asked whether input is needed.
const inputLook = 100 * time.Millisecond

// Needs is what the kernel knows of a command that waits.
type Needs struct {
	Input bool // it reads its input, and nothing of it runs
	Quiet bool // and what is typed is not shown: whole lines on a terminal without echo
}

// Needs asks the kernel, but not more often than changes anything.
func (r *Running) Needs() Needs {
	if _, over := r.Result(); over || r.in.Busy() {
		return Needs{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if total, _ := r.out.Size(); total != r.lookedAt || time.Since(r.looked) > needsLast {
		r.needs = r.process.needs()
		r.looked, r.lookedAt = time.Now(), total
	}
	return r.needs
}

// needsLast is how long an answer holds while nothing is written.
const needsLast = 50 * time.Millisecond
