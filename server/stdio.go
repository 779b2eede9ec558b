package server

import (
	"context"
	"io"
	"time"
)

const (
	// drainTime is what calls have to come to their end once stdin has ended.
	drainTime = 2200 * time.Millisecond
	// lastTime is what they have to answer once they are cancelled after that.
	// Both together stay below the 3 s in which the server must be gone.
	lastTime = 500 * time.Millisecond
)

// stdioConfig is what stdio needs beyond any connection.
type stdioConfig struct {
	connConfig
	// drain makes commands that run end at once and keeps others from
	// starting. It must not wait for them. May be nil.
	drain func()
}

// serveStdio serves one client over in and out, until in ends, out is gone or
// ctx ends; the last is the way to tell it of a signal. Every call that was
// read by then is answered; commands are told to end, everything else has
// drainTime. It returns within 3 s and leaves a reader behind that still waits
// for in, since a read cannot be interrupted. It returns nil for all three.
//
// For main: let nothing else write to out (keep the file of os.Stdout, then set
// os.Stdout to os.Stderr), and have SIGPIPE delivered to a channel nobody
// reads: a process that ignores it passes that on to its children.
func serveStdio(ctx context.Context, in io.Reader, out io.Writer, cfg stdioConfig) error {
	c, err := openConn(ctx, cfg.connConfig, "stdio", func(line []byte) error {
		_, err := out.Write(line)
		return err
	})
	if err != nil {
		return err
	}
	defer c.close()

	read := make(chan struct{})
	startRelay(c, newLineReader(in), read)
	select {
	case <-read:
	case <-c.broken:
	case <-ctx.Done():
	}
	c.end()
	if cfg.drain != nil {
		cfg.drain()
	}
	c.finish()
	return nil
}

// finish waits for the calls that run, and cancels them when they take too long.
func (c *conn) finish() {
	idle := c.idle()
	if waitFor(idle, drainTime) {
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
