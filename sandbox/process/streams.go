package process

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/internal/pty"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
)

// openPipes opens a pipe for each stream that is wanted and returns their ends.
func (j *job) openPipes(c *Command, l *launch) (theirs []*os.File, err error) {
	for i, wanted := range [3]bool{c.Stdin != nil || c.Live, c.Stdout, c.Stderr && !c.Live} {
		if !wanted {
			continue
		}
		read, write, err := os.Pipe()
		if err != nil {
			return theirs, err
		}
		if i == 0 {
			read, write = write, read
		}
		l.Files[i] = write
		theirs, j.pipes = append(theirs, write), append(j.pipes, read)
	}
	if c.Live {
		l.Files[2] = l.Files[1] // one stream, in the order in which it was written
	}
	return theirs, nil
}

// ErrNoTerminal: a terminal was wanted for a command, and none can be made here. It
// comes wrapped with the reason.
var ErrNoTerminal = fault.New(fault.Unavailable, "no terminal can be opened for commands here")

// openTerminal makes the terminal of a command: one that its session alone sees,
// where there are such.
func (j *job) openTerminal(c *Command, l *launch) (theirs []*os.File, err error) {
	open := pty.Open
	if l.cage != nil {
		open = l.cage.OpenTerminal
	}
	pair, err := open()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoTerminal, err)
	}
	if err := pair.Resize(c.Terminal.Rows, c.Terminal.Columns); err != nil {
		_ = pair.Close()
		return nil, fmt.Errorf("%w: %w", ErrNoTerminal, err)
	}
	j.pipes, j.held, j.number = []*os.File{pair.Master}, pair.Slave, pair.Number
	l.Files, l.Terminal = [3]*os.File{pair.Slave, pair.Slave, pair.Slave}, true
	return nil, nil
}

// connect feeds stdin and drains the output until no process holds the pipes.
func (s *Shell) connect(j *job, c *Command) {
	pipes := j.pipes
	switch {
	case c.Live && c.Terminal == nil:
		j.stdin, pipes = pipes[0], pipes[1:]
	case c.Live:
		j.stdin = pipes[0]
	case c.Stdin != nil:
		stdin := pipes[0]
		pipes = pipes[1:]
		go func() {
			_, _ = stdin.Write(c.Stdin) // a program need not read it all
			_ = stdin.Close()
		}()
	}
	keep := c.Keep
	if keep <= 0 {
		keep = s.c.limits.OutputBytes
	}
	var readers atomic.Int32
	readers.Store(1)
	done := func() {
		if readers.Add(-1) == 0 {
			close(j.drained)
			s.prune() // the last survivor may have been reaped already
		}
	}
	for i, wanted := range [2]bool{c.Stdout, c.Stderr && !c.Live} {
		if wanted {
			f, to := pipes[0], &capture.Stream{Keep: keep, First: c.first, Latest: c.Tail}
			if pipes, j.out[i] = pipes[1:], to; c.Live {
				to.Pace, to.CopyTo = &capture.Pace{}, c.copyTo
			}
			readers.Add(1)
			go func() { defer done(); capture.Drain(f, to) }()
		}
	}
	done()
}

// awaitPipes lets output in flight arrive, but does not wait for survivors. On a
// machine under load the readers may not have had their turn when the grace is
// over: what is in the pipes is read in any case.
func (s *Shell) awaitPipes(j *job) {
	grace := time.NewTimer(s.c.limits.PipeGrace)
	defer grace.Stop()
	for round := range maxPipeGraces {
		select {
		case <-j.drained:
			return
		case <-grace.C:
		}
		// Without survivors the end of the pipes is near, however busy the machine.
		idle := !slices.ContainsFunc(j.pipes, capture.Pending)
		if (idle || round > 0) && j.tree.Survivors() && j.tree.Alive() {
			return
		}
		grace.Reset(s.c.limits.PipeGrace)
	}
}

// maxPipeGraces bounds the wait. Survivors, who may never stop printing, get two.
const maxPipeGraces = 10

func (j *job) hangUp() {
	if j.held != nil {
		_ = j.held.Close()
	}
	for _, f := range j.pipes {
		_ = f.Close()
	}
}
