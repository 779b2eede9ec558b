package process

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

// A remoteConn is a server's end of the stream to one runner. What comes from there
// is as hostile as what a command prints: it is bounded, and a runner that says what
// cannot be has said its last.
type remoteConn struct {
	out    *remote.Writer
	hangUp func() // ends the stream, so that reading ends as well
	heard  atomic.Int32

	done chan struct{} // closed when the stream is over
	once sync.Once
	err  error // why

	mu     sync.Mutex
	next   uint64
	calls  map[uint64]receiver
	asked  map[uint64]chan *remote.Message
	bounds sandbox.Limits
}

// A receiver takes what a runner says of one command. It never waits.
type receiver interface{ take(*remote.Message) error }

// errSilent: a container does not answer any more.
var errSilent = fmt.Errorf("it has not answered for %v", remote.Silence)

// newConn is the stream to a runner that has not been greeted.
func newConn(out io.Writer, close func(), limits sandbox.Limits) *remoteConn {
	c := &remoteConn{
		hangUp: close, done: make(chan struct{}),
		calls: map[uint64]receiver{}, asked: map[uint64]chan *remote.Message{}, bounds: limits,
	}
	c.out = remote.NewWriter(watchedWriter{out, func() { c.fail(errSilent) }}, remote.MaxFromServer)
	return c
}

// dialRunner says hello and waits for the welcome, for as long as ctx lasts. close
// must end both streams.
func dialRunner(ctx context.Context, in io.Reader, out io.Writer, close func(), hello *remote.Hello, limits sandbox.Limits) (*remoteConn, *remote.Welcome, error) {
	c := newConn(out, close, limits)
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
		c.hangUp()
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

// add registers who is told of a command, which gets a number; drop lets go of it.
func (c *remoteConn) add(begin func(number uint64) receiver) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	c.calls[c.next] = begin(c.next)
}

func (c *remoteConn) drop(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, number)
}

// dropHeld is drop for a receiver that is being told something.
func (c *remoteConn) dropHeld(number uint64) { delete(c.calls, number) }

// ask asks a question about the command, or about a shell, and waits for the answer
// until over is closed. The answer may be a fault.
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
		return m, nil
	case <-c.done:
		return nil, c.err
	case <-over:
		return nil, errSilent
	}
}

// patience is how long a runner may take to end a command.
func (c *remoteConn) patience() time.Duration { return c.bounds.KillGrace + remote.Silence }
