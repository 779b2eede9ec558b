package stream

import (
	"context"
	"io"
	"time"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
)

const (
	// DrainTime is what calls have to come to their end once stdin has ended.
	DrainTime = 2200 * time.Millisecond
	// lastTime is what they have to answer once they are cancelled after that.
	// Both together stay below the 3 s in which the server must be gone.
	lastTime = 500 * time.Millisecond
)

// Stdio is the transport of one client over standard input and output.
type Stdio struct {
	Dispatcher *dispatch.Dispatcher
	In         io.Reader
	Out        io.Writer
	// Drain makes commands that run end at once and keeps others from
	// starting. It must not wait for them.
	Drain func()
}

// Serve serves the client until In ends, Out is gone or ctx ends; the last is the
// way to tell it of a signal. Every call that was read by then is answered;
// commands are told to end, everything else has DrainTime. It returns within 3 s
// and leaves a reader behind that still waits for In, since a read cannot be
// interrupted. It returns nil for all three.
//
// For main: let nothing else write to Out (keep the file of os.Stdout, then set
// os.Stdout to os.Stderr), and have SIGPIPE delivered to a channel that is
// not read: a process that ignores it passes that on to its children.
func (s *Stdio) Serve(ctx context.Context) error {
	c, err := Open(ctx, s.Dispatcher, "stdio", func(line []byte) error {
		_, err := s.Out.Write(line)
		return err
	})
	if err != nil {
		return err
	}
	defer c.Close()

	read := make(chan struct{})
	startRelay(c, jsonrpc.NewLineReader(s.In), read)
	select {
	case <-read:
	case <-c.broken:
	case <-ctx.Done():
	}
	c.End()
	s.Drain()
	c.Finish()
	return nil
}

// Finish waits for the calls that run, and cancels them when they take too long.
func (c *Conn) Finish() {
	idle := c.idle()
	if waitFor(idle, DrainTime) {
		return
	}
	c.stop()
	waitFor(idle, lastTime)
}

func waitFor(done <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
