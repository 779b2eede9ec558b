package proc

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// What descends from a process can be read without the rest of the table, which takes far
// less time on a machine that does much else. What begins or ends meanwhile may be missing
// with its descendants: it does for looking, not for ending.

// Near reads the lines of some processes, of what was left to this one, which has not
// started it, and of all descendants of those.
func Near(pids ...int) []Process {
	self := os.Getpid()
	left, listed := childrenOf("/proc", self, self) // the kernel leaves them to the first thread
	if !listed {
		return All()
	}
	Settle()
	return withDescendants("/proc", append(slices.DeleteFunc(left, Known), pids...))
}

// Below reads the lines of the descendants of a process of one thread, shown below dir,
// which is /proc or looks like it.
func Below(dir string, pid int) []Process {
	born, listed := childrenOf(dir, pid, pid)
	if !listed {
		return Family(table(dir), func(p Process) bool { return p.Parent == pid })
	}
	return withDescendants(dir, born)
}

func withDescendants(dir string, pids []int) (all []Process) {
	seen := map[int]bool{}
	for ; len(pids) > 0; pids = pids[1:] {
		p, ok := read(dir, pids[0])
		if !ok || seen[p.PID] {
			continue
		}
		seen[p.PID], all = true, append(all, p)
		for _, tid := range threads(dir, p) {
			born, _ := childrenOf(dir, p.PID, tid)
			pids = append(pids, born...)
		}
	}
	return all
}

// threads lists those of a process.
func threads(dir string, p Process) []int {
	if p.Threads <= 1 {
		return []int{p.PID}
	}
	return numbers(entries(dir + "/" + strconv.Itoa(p.PID) + "/task"))
}

// childrenOf lists those of a thread; false where the kernel does not.
func childrenOf(dir string, pid, tid int) (pids []int, listed bool) {
	text, err := readFile(fmt.Sprintf("%s/%d/task/%d/children", dir, pid, tid))
	return numbers(strings.Fields(string(text))), err == nil
}

// numbers are those among some names.
func numbers(names []string) []int {
	all := make([]int, 0, len(names))
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			all = append(all, n)
		}
	}
	return all
}
