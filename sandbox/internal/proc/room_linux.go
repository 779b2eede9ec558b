package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// reserved is how many processes and threads commands leave to this program,
// whose runtime cannot go on when the system refuses it a thread: half of a
// small limit, and of a large one what many commands at once need.
func reserved(limit uint64) uint64 { return min(max(limit/2, fewProcesses), manyProcesses) }

const (
	fewProcesses  = 64
	manyProcesses = 1024
)

// ownLimit is the user's limit of processes. Nothing has to be reserved for
// root, whom the system does not count.
var ownLimit = sync.OnceValue(func() unix.Rlimit {
	limit := unix.Rlimit{Cur: unix.RLIM_INFINITY}
	if os.Getuid() != 0 {
		_ = unix.Getrlimit(unix.RLIMIT_NPROC, &limit) // fails on no system
	}
	return limit
})

// A FullError: the system's limit of processes is nearly reached.
type FullError struct{ Now, Most int }

func (e *FullError) Error() string {
	return fmt.Sprintf("%d processes run, and the limit for all of them is %d: end what earlier commands left running", e.Now, e.Most)
}

// shared is false for no limit, and for one too low to be shared.
func shared(limit unix.Rlimit) bool {
	return limit.Cur != unix.RLIM_INFINITY && limit.Cur > 2*fewProcesses
}

// MostCommands is how many commands can run at once with what [Reserved] leaves: each
// takes its first process, one that watches it, a thread to start it and one that
// waits for it. 0 is no limit.
func MostCommands() int {
	limit := ownLimit()
	if !shared(limit) {
		return 0
	}
	const each, besides = 4, 32
	return int(reserved(limit.Cur)-besides) / each
}

// Room returns a FullError when the control group of this program has hardly
// room for more processes. It waits a moment for what was killed to be gone.
func Room() (err error) {
	for begun := time.Now(); ; time.Sleep(settling / 20) {
		if err = room(); err == nil || time.Since(begun) > settling {
			return err
		}
	}
}

// settling is how long the kernel may take to count out what has ended.
const settling = 500 * time.Millisecond

func room() error {
	dir := countedIn()
	if dir == "" {
		return nil
	}
	most, err := readNumber(dir + "/pids.max") // not a number: no limit
	now, err2 := readNumber(dir + "/pids.current")
	if err != nil || err2 != nil || now < most-min(fewProcesses, most/2) {
		return nil
	}
	return &FullError{Now: now, Most: most}
}

// MostInGroup is how many processes commands may have for the control group of this
// program to have room for more; 0 is no limit.
func MostInGroup() int {
	dir := countedIn()
	if dir == "" {
		return 0
	}
	most, err := readNumber(dir + "/pids.max") // not a number: no limit
	if err != nil {
		return 0
	}
	return most - min(fewProcesses, most/2)
}

// countedIn is the directory of the control group that counts our processes, ""
// when none can be seen.
var countedIn = sync.OnceValue(func() string {
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[1] != "" && parts[1] != "pids" {
			continue
		}
		top := filepath.Join("/sys/fs/cgroup", parts[1])
		for _, dir := range []string{filepath.Join(top, parts[2]), top} { // the second in a container
			if _, err := readNumber(dir + "/pids.current"); err == nil {
				return dir
			}
		}
	}
	return ""
})

// readNumber reads a file of one number, by no more calls than that takes: the first command
// waits for a look at two such files before each thread that is made.
func readNumber(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	text := make([]byte, 32)
	n, err := unix.Read(fd, text)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text[:n])))
}
