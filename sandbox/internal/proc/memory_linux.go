package proc

import (
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// When memory runs out the kernel ends processes, by default the largest, which
// may be the server. Commands are to go first. What the kernel goes by is set where
// they stop before their first instruction; where they cannot be stopped they inherit
// it, and this program takes the highest value for as long as one is started.
const (
	scoreFile = "/proc/self/oom_score_adj"
	firstToGo = "1000"
)

var score struct {
	mu     sync.Mutex
	file   *os.File // nil: nothing can be done
	own    string
	raised int // how many children are being started
}

// Prepare is for the time before this process becomes undumpable, after which a
// plain user may not open the files that describe it.
var Prepare = sync.OnceFunc(func() {
	file, err := os.OpenFile(scoreFile, os.O_RDWR, 0)
	if err != nil {
		return
	}
	own := make([]byte, 16)
	n, _ := file.ReadAt(own, 0)
	score.own = strings.TrimSpace(string(own[:n]))
	if _, err := strconv.Atoi(score.own); err != nil {
		_ = file.Close()
		return
	}
	score.file = file
})

// Expendable runs start. Children that it starts, and all that descends from
// them, are the first to be ended when memory runs out, and have the mark. So is
// this program meanwhile: [Bounds] do it better, where the system permits that.
func Expendable(start func() error) error {
	Prepare()
	raise(1)
	defer raise(-1)
	return start()
}

func raise(by int) {
	score.mu.Lock()
	defer score.mu.Unlock()
	before := score.raised
	score.raised += by
	if before == 0 || score.raised == 0 {
		mark(before == 0)
	}
	switch {
	case score.file == nil:
	case before == 0:
		_, _ = score.file.WriteAt([]byte(firstToGo), 0) // permitted to everybody
	case score.raised == 0:
		_, _ = score.file.WriteAt([]byte(score.own), 0) // so is what it was before
	}
}

// Keep gives a child that may have been born meanwhile this process's own values.
func Keep(pid int) {
	limit := unmarked()
	_ = unix.Prlimit(pid, unix.RLIMIT_LOCKS, &limit, nil) // it may have ended
	if score.file != nil {
		_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte(score.own), 0) // it may have ended
	}
}
