package process

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// awaitsInput asks the kernel whether the command reads its input while nothing of
// it runs.
func (j *job) awaitsInput() bool {
	dir, all := j.tree.(interface {
		processes() (string, []proc.Process)
	}).processes()
	in := proc.Input{}
	if j.held != nil {
		in = proc.TerminalInput(j.number)
	} else {
		conn, err := j.stdin.SyscallConn()
		if err != nil {
			return false
		}
		var stat unix.Stat_t
		_ = conn.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &stat) })
		if err != nil {
			return false
		}
		in.Name = fmt.Sprintf("pipe:[%d]", stat.Ino)
	}
	return proc.Awaits(dir, all, in)
}

func (g *group) processes() (dir string, all []proc.Process) { return "/proc", g.seen() }

func (t isolated) processes() (dir string, all []proc.Process) { return t.cell.Processes() }
