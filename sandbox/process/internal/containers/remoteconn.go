package containers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
)

// A Conn is a server's end of the stream to one runner. What comes from there
// is as hostile as what a command prints: it is bounded, and a runner that says what
// cannot be has said its last.
type Conn struct {
	out    *remote.Writer
	HangUp func() // ends the stream, so that reading ends as well
	heard  atomic.Int32

	Done chan struct{} // closed when the stream is over
	once sync.Once
	err  error // why

	mu     sync.Mutex
	next   uint64
	calls  map[uint64]Receiver
	asked  map[uint64]chan *remote.Message
	Bounds sandbox.Limits
}

// A Receiver takes what a runner says of one command. It never waits.
type Receiver interface{ Take(*remote.Message) error }

// ErrSilent: a container does not answer any more.
var ErrSilent = fmt.Errorf("it has not answered for %v", remote.Silence)

// NewConn is the stream to a runner that has not been greeted.
func NewConn(out io.Writer, close func(), limits sandbox.Limits) *Conn {
	c := &Conn{
		HangUp: close, Done: make(chan struct{}),
		calls: map[uint64]Receiver{}, asked: map[uint64]chan *remote.Message{}, Bounds: limits,
	}
	c.out = c.writer(out)
	return c
}

// writer is how this end writes to a stream.
func (c *Conn) writer(to io.Writer) *remote.Writer {
	return remote.NewWriter(watchedWriter{to, func() { c.Fail(ErrSilent) }}, remote.MaxFromServer)
}

// dialRunner says hello and waits for the welcome, for as long as ctx lasts. close
// must end both streams; d is a shorter way, or nil.
func dialRunner(ctx context.Context, in io.Reader, out io.Writer, close func(), d *direct, hello *remote.Hello, limits sandbox.Limits) (*Conn, *remote.Welcome, error) {
	c := NewConn(out, close, limits)
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
			c.Fail(a.err)
			return nil, nil, a.err
		case a.m.Type != remote.TypeWelcome:
			err := fmt.Errorf("a runner began with %.32q", a.m.Type)
			c.Fail(err)
			return nil, nil, err
		}
		go c.Read(frames)
		go c.beat()
		return c, a.m.Welcome, nil
	case <-ctx.Done():
		c.Fail(context.Cause(ctx))
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

// Fail ends the stream, and every command with it.
func (c *Conn) Fail(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.Done)
		c.HangUp()
	})
}

// beat tells the runner that this process lives, and gives up a runner that does
// not. It counts its own beats and asks no clock: see the runner's.
func (c *Conn) beat() {
	tick := time.NewTicker(remote.Beat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.Done:
			return
		}
		if c.heard.Add(1) > int32(remote.Silence/remote.Beat) {
			c.Fail(ErrSilent)
			return
		}
		go c.Send(&remote.Message{Type: remote.TypeBeat}) // which may block on a container that reads nothing
	}
}

// Send sends a message. An error ends the stream, unless the message was too large for it.
func (c *Conn) Send(m *remote.Message) error {
	err := c.out.Write(m)
	if err != nil && !errors.Is(err, remote.ErrTooLarge) {
		c.Fail(err)
	}
	return err
}

func (c *Conn) Read(frames *remote.Reader) {
	for {
		m, err := frames.Read()
		if err == nil {
			c.heard.Store(0)
			err = c.take(m)
		}
		if err != nil {
			c.Fail(err)
			return
		}
	}
}

// take hands one message to whom it concerns. It never waits.
func (c *Conn) take(m *remote.Message) error {
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
	return call.Take(m)
}

// Add registers who is told of a command, which gets a number; drop lets go of it.
func (c *Conn) Add(begin func(number uint64) Receiver) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	c.calls[c.next] = begin(c.next)
}

// Drop has nobody told of a command any more.
func (c *Conn) Drop(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, number)
}

// DropHeld is drop for a receiver that is being told something.
func (c *Conn) DropHeld(number uint64) { delete(c.calls, number) }

// Ask asks a question about the command, or about a shell, and waits for the answer
// until over is closed. The answer may be a fault.
func (c *Conn) Ask(m *remote.Message, over <-chan time.Time) (*remote.Message, error) {
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
	if err := c.Send(m); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		return m, nil
	case <-c.Done:
		return nil, c.err
	case <-over:
		return nil, ErrSilent
	}
}

// Patience is how long a runner may take to end a command.
func (c *Conn) Patience() time.Duration { return c.Bounds.KillGrace + remote.Silence }
