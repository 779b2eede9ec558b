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

// pids waits until the files hold ids of processes that run in dir, and returns
// the ids that these have here.
func pids(t *testing.T, dir string, names ...string) []int {
	t.Helper()
	ids := make([]int, len(names))
	deadline := time.Now().Add(hangGuard)
	for i, name := range names {
		for ids[i] == 0 {
			ids[i] = outside(dir, written(dir, name))
			if time.Now().After(deadline) {
				t.Fatalf("%s was never written, or its process does not run", name)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return ids
}

// told waits until the files hold process ids, and returns them as they are.
func told(t *testing.T, dir string, names ...string) []int {
	t.Helper()
	ids := make([]int, len(names))
	deadline := time.Now().Add(hangGuard)
	for i, name := range names {
		for ids[i] == 0 {
			ids[i] = written(dir, name)
			if time.Now().After(deadline) {
				t.Fatalf("%s was never written", name)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return ids
}

// goneIn is gone for processes that may have ended before their ids could be looked up.
func goneIn(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if written(dir, name) == 0 {
			t.Errorf("%s was never written", name)
		}
		if id := outside(dir, written(dir, name)); id != 0 {
			gone(t, []int{id})
		}
	}
}

// written is the id in a file, 0 for none.
func written(dir, name string) (id int) {
	data, _ := os.ReadFile(filepath.Join(dir, name))
	id, _ = strconv.Atoi(strings.TrimSpace(string(data)))
	return id
}

// outside is the id that a process in dir has here, 0 when there is none: in
// namespaces it knows itself by another one.
func outside(dir string, id int) int {
	want, err := os.Stat(dir)
	if err != nil || id == 0 {
		return 0
	}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range all {
		status, _ := os.ReadFile(proc + "/status")
		_, rest, _ := strings.Cut(string(status), "NSpid:")
		line, _, _ := strings.Cut(rest, "\n")
		ids := strings.Fields(line)
		if len(ids) == 0 || ids[len(ids)-1] != strconv.Itoa(id) {
			continue
		}
		if at, err := os.Stat(proc + "/cwd"); err == nil && os.SameFile(at, want) {
			found, _ := strconv.Atoi(filepath.Base(proc))
			return found
		}
	}
	return 0
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
