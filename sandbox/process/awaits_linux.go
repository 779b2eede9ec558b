package process

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// awaitsInput asks the kernel whether the command reads its input while nothing of
// it runs.
func (j *job) awaitsInput() bool {
	dir, pids := j.tree.(interface{ processes() (string, []int) }).processes()
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
	return proc.Awaits(dir, pids, in)
}

func (g *group) processes() (dir string, pids []int) {
	for _, p := range g.members() {
		pids = append(pids, p.PID)
	}
	return "/proc", pids
}

func (t isolated) processes() (dir string, pids []int) { return t.cell.Processes() }
