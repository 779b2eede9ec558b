package process

import (
	"errors"
	"fmt"
	"os"

	"github.com/perstack-ai/perstack-base/sandbox/internal/pty"
)

// ErrNoTerminal: a terminal was wanted for a command, and none can be made here. It
// comes wrapped with the reason.
var ErrNoTerminal = errors.New("no terminal can be opened for commands here")

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
