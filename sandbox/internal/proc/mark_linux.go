package proc

import (
	"math/rand/v2"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A Mark is a number by which commands are told from all other processes when
// this program is not there any more. It stands where the limit of locks on files
// does, which Linux keeps for every process and has not looked at since 2.4: all
// descendants inherit it, and neither a session or a parent of their own, nor an
// empty environment takes it away. It is no wall: who knows of it can change it.
type Mark uint64

// OwnMark is that of the commands of this program.
var OwnMark = sync.OnceValue(func() Mark { return Mark(1<<62 | rand.Uint64()>>2) })

// unmarked is this program's own limit.
var unmarked = sync.OnceValue(func() (limit unix.Rlimit) {
	_ = unix.Getrlimit(unix.RLIMIT_LOCKS, &limit) // fails on no system
	return limit
})

// mark has children that are born from now on inherit the mark of commands, or not.
func mark(on bool) {
	limit := unmarked()
	if on {
		limit.Cur = min(uint64(OwnMark()), limit.Max)
	}
	_ = unix.Setrlimit(unix.RLIMIT_LOCKS, &limit) // the soft limit is everybody's own to set
}

// Bearers lists the living processes that have the mark, but for this one.
func (m Mark) Bearers() (pids []int) {
	for _, p := range All() {
		var limit unix.Rlimit
		if !p.Dead && p.PID != os.Getpid() && unix.Prlimit(p.PID, unix.RLIMIT_LOCKS, nil, &limit) == nil && limit.Cur == uint64(m) {
			pids = append(pids, p.PID)
		}
	}
	return pids
}
