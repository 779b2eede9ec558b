package proc

import (
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A Mark is a number by which commands are told from all other processes when
// this program is not there any more. It stands where the limit of locks on files
// does, which Linux keeps for every process and has not looked at since 2.4: all
// descendants inherit it, and neither a session or a parent of their own, nor an
// empty environment takes it away. It is no wall: who knows of it can change it.
type Mark uint64

// sessionBits of a mark tell the sessions of one program apart. In the program's own
// mark they are set: limits can be lowered, and not raised again.
const sessionBits = 1<<16 - 1

// OwnMark is that of the commands of this program.
var OwnMark = sync.OnceValue(func() Mark { return Mark(1<<62 | rand.Uint64()>>2 | sessionBits) })

// sessions counts those that have a mark.
var sessions atomic.Uint64

// SessionMark is one of the marks of this program's commands, for those of one session.
func SessionMark() Mark { return OwnMark() - Mark(1+sessions.Add(1)%sessionBits) }

// Bounds give a program the mark, and all that descends from it.
func (m Mark) Bounds() Bounds {
	return Bounds{Limits: map[int]unix.Rlimit{unix.RLIMIT_LOCKS: {Cur: uint64(m), Max: unix.RLIM_INFINITY}}}
}

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

// Bearers lists the living processes that have the mark, but for this one. Those of
// [OwnMark] are those of every session.
func (m Mark) Bearers() (pids []int) {
	any := uint64(0)
	if m&sessionBits == sessionBits {
		any = sessionBits
	}
	for _, p := range All() {
		if p.Dead || p.PID == os.Getpid() {
			continue
		}
		if has, known := markOf(p.PID); known && has|any == uint64(m) {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// markOf is what stands where a process has its mark. Where the walls around this program
// refuse to ask for limits, they stand in a file.
func markOf(pid int) (mark uint64, known bool) {
	var limit unix.Rlimit
	err := unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &limit)
	if !errors.Is(err, unix.EPERM) {
		return limit.Cur, err == nil
	}
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	_, rest, _ := strings.Cut(string(text), "\nMax file locks ")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, false
	}
	mark, err = strconv.ParseUint(fields[0], 10, 64) // not "unlimited"
	return mark, err == nil
}
