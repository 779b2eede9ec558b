// Package input feeds a running command: what was written to it and not yet read waits
// within bounds, and nobody else waits with it. It knows nothing of the command: start with
// [New].
package input

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
)

// ErrEnded: the input of the command was ended before, or the command has closed it.
var ErrEnded = fault.New(fault.Conflict, "takes no input any more")

// A FullError says how much waits to be read by the command, and how much may.
type FullError struct{ Waiting, Most int }

func (e *FullError) Error() string {
	return fmt.Sprintf("%d bytes wait to be read by the command, and at most %d may", e.Waiting, e.Most)
}
func (*FullError) Code() fault.Code { return fault.Unavailable }

// An Input is what was written to a running command and not yet read by it. Who
// writes never waits.
type Input struct {
	to   io.WriteCloser
	most int

	mu      sync.Mutex
	waiting []byte
	ended   bool // nothing follows
	feeding bool
	fed     time.Time // last
	closed  bool      // nobody reads it
}

// New has what is written go to a writer, when that takes it; of what waits there may be
// so many bytes.
func New(to io.WriteCloser, most int) *Input { return &Input{to: to, most: most} }

// Write adds to what waits, all or nothing.
func (in *Input) Write(b []byte, end bool) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.ended || in.closed:
		return ErrEnded
	case len(in.waiting) > 0 && len(in.waiting)+len(b) > in.most || len(b) > in.most:
		return &FullError{len(in.waiting), in.most}
	}
	in.waiting = append(in.waiting, b...)
	in.ended = end
	if !in.feeding {
		in.feeding = true
		go in.feed()
	}
	return nil
}

// Put writes at once, and returns when the command can read all of it. One may put at a time.
func (in *Input) Put(b []byte, end bool) error {
	in.mu.Lock()
	if in.ended || in.closed || in.feeding {
		in.mu.Unlock()
		return ErrEnded
	}
	in.waiting, in.ended, in.feeding = append(in.waiting, b...), end, true
	in.mu.Unlock()
	in.feed()
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return ErrEnded
	}
	return nil
}

// feed writes what waits for as long as something does. It blocks no thread, and
// ends when the file is closed.
func (in *Input) feed() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.waiting) > 0 {
		piece := in.waiting[:min(len(in.waiting), 4096)]
		in.mu.Unlock()
		n, err := in.to.Write(piece)
		in.mu.Lock()
		in.waiting, in.fed = in.waiting[n:], time.Now()
		if err != nil {
			in.waiting, in.closed = nil, true
		}
	}
	in.waiting, in.feeding = nil, false
	if in.ended || in.closed {
		_ = in.to.Close()
	}
}

// Busy reports whether something waits, or may still be on its way through the
// kernel, or nothing can come any more: then no command is waiting for us.
func (in *Input) Busy() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.feeding || in.ended || in.closed || time.Since(in.fed) < onItsWay
}

// onItsWay is more than the kernel takes to hand on what is typed.
const onItsWay = 50 * time.Millisecond
