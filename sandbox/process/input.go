package process

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Why input was not taken.
var (
	// ErrInputEnded: the input of the command was ended before, or the command has closed it.
	ErrInputEnded = errors.New("takes no input any more")
	// ErrInputFull: too much waits to be read by the command; it comes in an *InputFullError.
	ErrInputFull = errors.New("has not read what was written before")
)

// An InputFullError says how much waits and how much may.
type InputFullError struct{ Waiting, Most int }

func (e *InputFullError) Error() string {
	return fmt.Sprintf("%d bytes wait to be read by the command, and at most %d may", e.Waiting, e.Most)
}

func (e *InputFullError) Unwrap() error { return ErrInputFull }

// An input is what was written to a running command and not yet read by it. Who
// writes never waits.
type input struct {
	to   io.WriteCloser
	most int

	mu      sync.Mutex
	waiting []byte
	ended   bool // nothing follows
	feeding bool
	fed     time.Time // last
	closed  bool      // nobody reads it
}

// write adds to what waits, all or nothing.
func (in *input) write(b []byte, end bool) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.ended || in.closed:
		return ErrInputEnded
	case len(in.waiting) > 0 && len(in.waiting)+len(b) > in.most || len(b) > in.most:
		return &InputFullError{len(in.waiting), in.most}
	}
	in.waiting = append(in.waiting, b...)
	in.ended = end
	if !in.feeding {
		in.feeding = true
		go in.feed()
	}
	return nil
}

// put writes at once, and returns when the command can read all of it. One may put at a time.
func (in *input) put(b []byte, end bool) error {
	in.mu.Lock()
	if in.ended || in.closed || in.feeding {
		in.mu.Unlock()
		return ErrInputEnded
	}
	in.waiting, in.ended, in.feeding = append(in.waiting, b...), end, true
	in.mu.Unlock()
	in.feed()
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return ErrInputEnded
	}
	return nil
}

// feed writes what waits for as long as something does. It blocks no thread, and
// ends when the file is closed.
func (in *input) feed() {
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

// busy reports whether something waits, or may still be on its way through the
// kernel, or nothing can come any more: then no command is waiting for us.
func (in *input) busy() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.feeding || in.ended || in.closed || time.Since(in.fed) < onItsWay
}

// onItsWay is more than the kernel takes to hand on what is typed.
const onItsWay = 50 * time.Millisecond
