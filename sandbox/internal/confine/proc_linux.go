//go:build amd64 || arm64

package confine

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// A proc is what /proc says about one process.
type proc struct {
	pid, parent, group, session int
	zombie                      bool
}

// processes lists all processes that /proc shows.
func processes() []proc {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var out []proc
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readProc(pid); ok {
				out = append(out, p)
			}
		}
	}
	return out
}

// readProc parses /proc/PID/stat, whose second field may hold anything.
func readProc(pid int) (proc, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	end := bytes.LastIndexByte(b, ')')
	if err != nil || end < 0 {
		return proc{}, false
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 4 {
		return proc{}, false
	}
	p := proc{pid: pid, zombie: f[0] == "Z"}
	for i, to := range []*int{&p.parent, &p.group, &p.session} {
		*to, _ = strconv.Atoi(f[i+1])
	}
	return p, true
}

// statusField returns a field of /proc/PID/status, "" when there is none.
func statusField(pid int, field string) string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && name == field {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// commandOf returns the name of a task's program.
func commandOf(tid int) string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/comm")
	return strings.TrimSpace(string(b))
}
