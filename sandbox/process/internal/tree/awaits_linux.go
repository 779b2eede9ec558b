package tree

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// AwaitsPipe asks the kernel whether a tree reads from the pipe that input goes to
// while nothing of it runs.
func AwaitsPipe(t Tree, input *os.File) bool {
	conn, err := input.SyscallConn()
	if err != nil {
		return false
	}
	var stat unix.Stat_t
	_ = conn.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &stat) })
	return err == nil && awaits(t, proc.Input{Name: fmt.Sprintf("pipe:[%d]", stat.Ino)})
}

// AwaitsTerminal asks that of the terminal of a number.
func AwaitsTerminal(t Tree, number int) bool { return awaits(t, proc.TerminalInput(number)) }

func awaits(t Tree, in proc.Input) bool {
	dir, all := t.(interface {
		processes() (string, []proc.Process)
	}).processes()
	return proc.Awaits(dir, all, in)
}

func (g *group) processes() (dir string, all []proc.Process) { return "/proc", g.seen() }

func (t isolated) processes() (dir string, all []proc.Process) { return t.cell.Processes() }
