package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
)

// A remoteConn is a server's end of the stream to one runner. What comes from there
// is as hostile as what a command prints: it is bounded, and a runner that says what
// cannot be has said its last.
type remoteConn struct {
	out   *remote.Writer
	close func() // ends the stream, so that reading ends as well
	heard atomic.Int32

	done chan struct{} // closed when the stream is over
	once sync.Once
	err  error // why

	mu     sync.Mutex
	next   uint64
	calls  map[uint64]*remoteCall
	asked  map[uint64]chan *remote.Message
	bounds sandbox.Limits
}

// A remoteCall is one command that a runner runs.
type remoteCall struct {
	conn   *remoteConn
	number uint64
	keep   int
	kept   [2]Output
	tail   *Tail
	out    *capture // of one that goes on

	began chan struct{} // of one that goes on: closed when it has started
	ended chan struct{} // closed when result or fault is there
	gone  chan struct{} // of one that goes on: closed when nothing writes any more
	over  [3]bool       // which of these are closed

	result *remote.Result
	fault  *remote.Fault
}

// errSilent: a container does not answer any more.
var errSilent = fmt.Errorf("it has not answered for %v", remote.Silence)

// writer is how this end writes to a stream.
func (c *remoteConn) writer(to io.Writer) *remote.Writer {
	return remote.NewWriter(watchedWriter{to, func() { c.fail(errSilent) }}, remote.MaxFromServer)
}

// dialRunner says hello and waits for the welcome, for as long as ctx lasts. close
// must end both streams; d is a shorter way, or nil.
func dialRunner(ctx context.Context, in io.Reader, out io.Writer, close func(), d *direct, hello *remote.Hello, limits sandbox.Limits) (*remoteConn, *remote.Welcome, error) {
	c := &remoteConn{
		close: close, done: make(chan struct{}),
		calls: map[uint64]*remoteCall{}, asked: map[uint64]chan *remote.Message{}, bounds: limits,
	}
	c.out = c.writer(out)
	frames := remote.NewReader(in, remote.MaxFromRunner)
	type answer struct {
		m   *remote.Message
		err error
	}
	first := make(chan answer, 1)
	go func() {
		if err := c.out.Write(&remote.Message{Type: remote.TypeHello, Hello: hello}); err != nil {
			first <- answer{nil, err}
			return
		}
		m, err := frames.Read()
		if err == nil && m.Welcome != nil && m.Welcome.Direct {
			frames, err = c.goDirect(d, frames)
		}
		first <- answer{m, err}
	}()
	select {
	case a := <-first:
		switch {
		case a.err != nil:
			c.fail(a.err)
			return nil, nil, a.err
		case a.m.Type != remote.TypeWelcome:
			err := fmt.Errorf("a runner began with %.32q", a.m.Type)
			c.fail(err)
			return nil, nil, err
		}
		go c.read(frames)
		go c.beat()
		return c, a.m.Welcome, nil
	case <-ctx.Done():
		c.fail(context.Cause(ctx))
		return nil, nil, context.Cause(ctx)
	}
}

// A watchedWriter calls late when what it writes to does not take it in time. A
// runner always reads: one that says that it lives, but reads nothing, is none.
type watchedWriter struct {
	to   io.Writer
	late func()
}

// writeStep is less than a pipe holds.
const writeStep = 32 << 10

func (w watchedWriter) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		timer := time.AfterFunc(remote.Silence, w.late)
		var some int
		some, err = w.to.Write(b[n:min(len(b), n+writeStep)])
		timer.Stop()
		n += some
	}
	return n, err
}

// fail ends the stream, and every command with it.
func (c *remoteConn) fail(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.done)
		c.close()
	})
}

// beat tells the runner that this process lives, and gives up a runner that does
// not. It counts its own beats and asks no clock: see the runner's.
func (c *remoteConn) beat() {
	tick := time.NewTicker(remote.Beat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.done:
			return
		}
		if c.heard.Add(1) > int32(remote.Silence/remote.Beat) {
			c.fail(errSilent)
			return
		}
		go c.send(&remote.Message{Type: remote.TypeBeat}) // which may block on a container that reads nothing
	}
}

func (c *remoteConn) send(m *remote.Message) error {
	err := c.out.Write(m)
	if err != nil && !errors.Is(err, remote.ErrTooLarge) {
		c.fail(err)
	}
	return err
}

func (c *remoteConn) read(frames *remote.Reader) {
	for {
		m, err := frames.Read()
		if err == nil {
			c.heard.Store(0)
			err = c.take(m)
		}
		if err != nil {
			c.fail(err)
			return
		}
	}
}

// take hands one message to whom it concerns. It never waits.
func (c *remoteConn) take(m *remote.Message) error {
	if m.Type == remote.TypeBeat {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Type == remote.TypeAnswer {
		if to := c.asked[m.Question]; to != nil {
			delete(c.asked, m.Question)
			to <- m // which has room
		}
		return nil
	}
	call := c.calls[m.Command]
	if call == nil {
		return nil // it was given up
	}
	return call.take(m)
}

// call registers a command; forget lets go of it.
func (c *remoteConn) call(cmd *Command, out *capture) *remoteCall {
	keep := cmd.Keep
	if keep <= 0 {
		keep = c.bounds.OutputBytes
	}
	call := &remoteCall{conn: c, keep: keep, tail: cmd.Tail, out: out,
		began: make(chan struct{}), ended: make(chan struct{}), gone: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	call.number = c.next
	c.calls[call.number] = call
	return call
}

func (call *remoteCall) forget() {
	call.conn.mu.Lock()
	defer call.conn.mu.Unlock()
	delete(call.conn.calls, call.number)
}

// begin sends the command.
func (call *remoteCall) begin(kind remote.Type, shell uint64, c *Command, startup *remote.Startup) error {
	for b := c.Stdin; len(b) > 0; {
		n := min(len(b), remote.MaxBody)
		if err := call.send(&remote.Message{Type: remote.TypeStdin, Body: b[:n]}); err != nil {
			return err
		}
		b = b[n:]
	}
	return call.send(&remote.Message{Type: kind, Shell: shell, Start: startOf(c, startup)})
}

func (call *remoteCall) send(m *remote.Message) error {
	m.Command = call.number
	return call.conn.send(m)
}

// take takes what the runner says of this command. The conn's mu is held.
func (call *remoteCall) take(m *remote.Message) error {
	switch m.Type {
	case remote.TypeTail:
		if call.tail != nil && call.out == nil {
			call.tail.set(ValidText(m.Body[max(0, len(m.Body)-lookBack):]))
		}
	case remote.TypeOutput:
		return call.output(m)
	case remote.TypeStarted:
		call.mark(0, call.began)
	case remote.TypeResult:
		if call.over[1] {
			return errors.New("a runner told two ends of a command")
		}
		// Complete before the end is told: from then on others read the result.
		call.result = m.Result
		if call.out == nil {
			if err := call.complete(); err != nil {
				return err
			}
		}
		call.mark(1, call.ended)
	case remote.TypeFault:
		if !call.over[1] {
			call.fault = m.Fault
		}
		call.mark(1, call.ended)
	case remote.TypeGone:
		call.mark(2, call.gone)
		delete(call.conn.calls, call.number)
	default:
		return fmt.Errorf("a runner said %.32q of a command", m.Type)
	}
	return nil
}

func (call *remoteCall) mark(i int, done chan struct{}) {
	if !call.over[i] {
		call.over[i] = true
		close(done)
	}
}

func (call *remoteCall) output(m *remote.Message) error {
	if call.out != nil {
		_, _ = call.out.Write(m.Body)
		return nil
	}
	to := &call.kept[m.Stream].Head
	if m.Last {
		to = &call.kept[m.Stream].Tail
	}
	if call.over[1] || len(*to)+len(m.Body) > call.keep {
		return errors.New("a runner sent more output than it was to keep")
	}
	*to = append(*to, m.Body...)
	return nil
}

// complete puts the numbers of a result beside the bytes that came before it. Whoever
// words a result computes with them, so they have to be those of a stream of which
// that much is kept.
func (call *remoteCall) complete() error {
	for i := range call.kept {
		out, keep := &call.kept[i], int64(call.keep)
		out.Total, out.TextBytes = call.result.Total[i], call.result.TextBytes[i]
		head := min(out.Total, keep)
		if int64(len(out.Head)) != head || int64(len(out.Tail)) != min(out.Total-head, keep) {
			return errors.New("a runner did not send the output that it tells of")
		}
		if out.Complete() {
			out.TextBytes = textBytes(out.Head, out.Tail)
		}
	}
	return nil
}

// outcome is how the command ended, once it has.
func (call *remoteCall) outcome() (Result, error) {
	if call.fault != nil {
		return Result{}, errorOf(call.fault)
	}
	r := call.result
	res := Result{
		ExitCode: r.ExitCode, Signal: r.Signal, TimedOut: r.TimedOut, Cancelled: r.Cancelled,
		Stdout: call.kept[0], Stderr: call.kept[1], Duration: r.Duration,
	}
	if res.Signal != "" && !nameOfSignal.MatchString(res.Signal) {
		res.Signal = "SIGKILL"
	}
	for _, sentence := range r.Refused {
		res.Refused = append(res.Refused, clipped(sentence))
	}
	return res, nil
}

var nameOfSignal = regexp.MustCompile(`^[A-Za-z0-9+ ]+$`)

// ask asks a question about the command, or about a shell, and waits for the answer
// until over is closed.
func (c *remoteConn) ask(m *remote.Message, over <-chan time.Time) (*remote.Message, error) {
	answer := make(chan *remote.Message, 1)
	c.mu.Lock()
	c.next++
	m.Question = c.next
	c.asked[m.Question] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.asked, m.Question)
		c.mu.Unlock()
	}()
	if err := c.send(m); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		if m.Fault != nil {
			return nil, errorOf(m.Fault)
		}
		return m, nil
	case <-c.done:
		return nil, c.err
	case <-over:
		return nil, errSilent
	}
}

// A remoteProcess is a command that goes on in a runner.
type remoteProcess struct{ *remoteCall }

func (p remoteProcess) over() bool {
	select {
	case <-p.gone:
		return true
	case <-p.conn.done:
		return true
	default:
		return false
	}
}

func (p remoteProcess) end(ask syscall.Signal) {
	_, _ = p.conn.ask(&remote.Message{Type: remote.TypeSignal, Command: p.number, Signal: int(ask)}, time.After(p.conn.patience()))
}

// patience is how long a runner may take to end a command.
func (c *remoteConn) patience() time.Duration { return c.bounds.KillGrace + remote.Silence }

func (p remoteProcess) needs() Needs {
	m, err := p.conn.ask(&remote.Message{Type: remote.TypeAsk, Command: p.number}, time.After(remote.Beat))
	if err != nil || m.Needs == nil {
		return Needs{}
	}
	return Needs{Input: m.Needs.Input, Quiet: m.Needs.Quiet}
}

// Write has the command read b, and waits until it can.
func (p remoteProcess) Write(b []byte) (int, error) {
	if _, err := p.conn.ask(&remote.Message{Type: remote.TypeInput, Command: p.number, Body: b}, nil); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close ends the input, and does not wait for that.
func (p remoteProcess) Close() error {
	go func() {
		_, _ = p.conn.ask(&remote.Message{Type: remote.TypeInput, Command: p.number, Last: true}, nil)
	}()
	return nil
}
