package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// pids waits until the files hold process ids.
func pids(t *testing.T, dir string, names ...string) []int {
	t.Helper()
	ids := make([]int, len(names))
	deadline := time.Now().Add(hangGuard)
	for i, name := range names {
		for ids[i] == 0 {
			data, _ := os.ReadFile(filepath.Join(dir, name))
			ids[i], _ = strconv.Atoi(strings.TrimSpace(string(data)))
			if time.Now().After(deadline) {
				t.Fatalf("%s was never written", name)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return ids
}

// gone waits until none of the processes is there any more.
func gone(t *testing.T, ids []int) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("whether processes are gone is seen in /proc: ", err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for _, id := range ids {
		for alive(id) {
			if time.Now().After(deadline) {
				t.Errorf("process %d survived", id)
				if p, err := os.FindProcess(id); err == nil {
					p.Kill()
				}
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// alive tells whether a process runs; a zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// stubborn ignores SIGTERM, leaves a child and a daemon that left the process
// group, and writes its process ids.
const stubborn = `trap '' TERM; echo $$ > leader; (trap '' TERM; echo $$; sleep 300) & echo $! > child
setsid sh -c 'trap "" TERM; echo $$ > daemon; sleep 300' & sleep 300; sleep 300`
