package process

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/lazyregexp"
	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/containers"
)

// A remoteCall is one command that a runner runs.
type remoteCall struct {
	conn   *containers.Conn
	number uint64
	keep   int
	kept   [2]capture.Output
	tail   *capture.Tail
	out    *capture.Stream // of one that goes on

	began chan struct{} // of one that goes on: closed when it has started
	ended chan struct{} // closed when result or fault is there
	gone  chan struct{} // of one that goes on: closed when nothing writes any more
	over  [3]bool       // which of these are closed

	result *remote.Result
	fault  *remote.Fault
}

// newCall registers a command; forget lets go of it.
func newCall(c *containers.Conn, cmd *Command, out *capture.Stream) *remoteCall {
	keep := cmd.Keep
	if keep <= 0 {
		keep = c.Bounds.OutputBytes
	}
	call := &remoteCall{conn: c, keep: keep, tail: cmd.Tail, out: out,
		began: make(chan struct{}), ended: make(chan struct{}), gone: make(chan struct{})}
	c.Add(func(number uint64) containers.Receiver {
		call.number = number
		return call
	})
	return call
}

func (call *remoteCall) forget() { call.conn.Drop(call.number) }

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
	return call.conn.Send(m)
}

// Take takes what the runner says of this command. The conn's mu is held.
func (call *remoteCall) Take(m *remote.Message) error {
	switch m.Type {
	case remote.TypeTail:
		if call.tail != nil && call.out == nil {
			call.tail.Set(capture.ValidText(m.Body[max(0, len(m.Body)-capture.LookBack):]))
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
		call.conn.DropHeld(call.number)
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
			out.TextBytes = capture.TextBytes(out.Head, out.Tail)
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
		res.Refused = append(res.Refused, remote.Clip(sentence))
	}
	return res, nil
}

var nameOfSignal = lazyregexp.New(`^[A-Za-z0-9+ ]+$`)

// A remoteProcess is a command that goes on in a runner.
type remoteProcess struct{ *remoteCall }

func (p remoteProcess) over() bool {
	select {
	case <-p.gone:
		return true
	case <-p.conn.Done:
		return true
	default:
		return false
	}
}

func (p remoteProcess) end(ask syscall.Signal) {
	_, _ = p.conn.Ask(&remote.Message{Type: remote.TypeSignal, Command: p.number, Signal: int(ask)}, time.After(p.conn.Patience()))
}

func (p remoteProcess) needs() Needs {
	m, err := p.conn.Ask(&remote.Message{Type: remote.TypeAsk, Command: p.number}, time.After(remote.Beat))
	if err != nil || m.Needs == nil {
		return Needs{}
	}
	return Needs{Input: m.Needs.Input, Quiet: m.Needs.Quiet}
}

// Write has the command read b, and waits until it can.
func (p remoteProcess) Write(b []byte) (int, error) {
	m, err := p.conn.Ask(&remote.Message{Type: remote.TypeInput, Command: p.number, Body: b}, nil)
	if err == nil && m.Fault != nil {
		err = errorOf(m.Fault)
	}
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close ends the input, and does not wait for that.
func (p remoteProcess) Close() error {
	go func() {
		_, _ = p.conn.Ask(&remote.Message{Type: remote.TypeInput, Command: p.number, Last: true}, nil)
	}()
	return nil
}
