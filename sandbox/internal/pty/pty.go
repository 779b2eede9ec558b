// Package pty makes pseudo terminals: [Open] one of the machine's, and on Linux
// OpenIn one of a session's own. A [Pair] is both ends of one.
package pty

import (
	"errors"
	"os"
)

// A Pair is a pseudo terminal.
type Pair struct {
	Master *os.File // ours: what is typed goes in, what is shown comes out
	Slave  *os.File // the program's, as its standard streams
	Number int      // of /dev/pts/N; -1 where terminals have none
}

// Modes are how a terminal hands on what is typed.
type Modes struct {
	Lines bool // whole lines, edited by the kernel
	Echo  bool // what is typed is shown
}

// Close closes both ends.
func (p *Pair) Close() error { return errors.Join(p.Master.Close(), p.Slave.Close()) }
