//go:build amd64 || arm64

package namespaces

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// openMemory holds the file systems in memory that are the session's own, for a look
// at how full they are: the keeper shows nobody its files later.
func (i *Isolator) openMemory(root string) {
	for _, path := range []string{"/tmp", "/dev/shm"} {
		var ours, machines unix.Stat_t
		fd, err := unix.Open(root+path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if unix.Fstat(fd, &ours) == nil && (unix.Stat(path, &machines) != nil || ours.Dev != machines.Dev) {
			i.memory = append(i.memory, fd)
		} else {
			unix.Close(fd)
		}
	}
}

// LookAtMemory has f look at the file systems in memory that are the session's own. They
// are not closed meanwhile.
func (i *Isolator) LookAtMemory(f func(fd int)) {
	i.Still.Lock()
	defer i.Still.Unlock()
	for _, fd := range i.memory {
		f(fd)
	}
}

// KillAll kills every process of every command, and what watches over them.
func (i *Isolator) KillAll() { _ = i.Keeper.signal(-1, unix.SIGKILL) } // who is gone is so already

// Processes are where the session's processes are shown, and the ids there of those
// of its commands.
func (i *Isolator) Processes() (dir string, pids []int) {
	all, _ := i.Procs.List() // the next look may be luckier
	for _, m := range all {
		pids = append(pids, m.PID)
	}
	return fmt.Sprintf("/proc/self/fd/%d", i.Procs), pids
}
