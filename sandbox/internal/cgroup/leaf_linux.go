package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// Limits are those of one leaf; zero is none.
type Limits struct {
	Memory    int64 // bytes
	Processes int   // and threads
	CPUs      float64
}

// A Leaf is the group of one session's commands.
type Leaf struct {
	Procs *os.File // takes a process in, which writes 0, or whose id is written
	dir   string
}

// period is how long, in microseconds, processor time is counted together.
const period = 100_000

// NewLeaf makes a group with limits. What the tree does not count is left out.
func (t *Tree) NewLeaf(l Limits) (*Leaf, error) {
	leaf := &Leaf{dir: filepath.Join(t.dir, "session-"+strconv.FormatInt(t.count.Add(1), 10))}
	if err := os.Mkdir(leaf.dir, 0o755); err != nil {
		return nil, err
	}
	err := leaf.limit(t, l)
	if err == nil {
		leaf.Procs, err = os.OpenFile(leaf.dir+procs, os.O_WRONLY, 0)
	}
	if err != nil {
		_ = os.Remove(leaf.dir)
		return nil, fmt.Errorf("a control group for the session: %w", err)
	}
	return leaf, nil
}

func (l *Leaf) limit(t *Tree, most Limits) error {
	if t.Memory && most.Memory > 0 {
		err := errors.Join(l.write("memory.max", strconv.FormatInt(most.Memory, 10)), l.write("memory.oom.group", "1"))
		if _, absent := os.Stat(l.dir + "/memory.swap.max"); absent == nil { // it is where the kernel knows no swap
			err = errors.Join(err, l.write("memory.swap.max", "0"))
		}
		if err != nil {
			return err
		}
	} else if most := t.spare(); t.Memory && most > 0 {
		if err := l.write("memory.max", strconv.FormatInt(most, 10)); err != nil {
			return err
		}
	}
	if t.Processes && most.Processes > 0 {
		if err := l.write("pids.max", strconv.Itoa(most.Processes)); err != nil {
			return err
		}
	}
	if t.CPU && most.CPUs > 0 {
		return l.write("cpu.max", fmt.Sprintf("%d %d", int64(most.CPUs*period), period))
	}
	return nil
}

// reserve is what a session leaves of memory that is limited for all of the program, to
// the server; of little, a quarter.
const reserve = 64 << 20

// spare is how much memory a session may have for the server to have some, 0 where
// nothing limits what they have together.
func (t *Tree) spare() int64 {
	text, _ := os.ReadFile(t.above + "/memory.max") // there is none at the top
	all, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return all - min(reserve, all/4)
}

func (l *Leaf) write(name, text string) error {
	return os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0)
}

// Events count what the limits of a leaf have done.
type Events struct {
	MemoryReached   int // the limit of memory was, and nothing could be given back
	MemoryKilled    int // processes that were ended for want of memory, whose ever that is
	ProcessesRefuse int // processes that were not made
}

// Events are those so far.
func (l *Leaf) Events() Events {
	memory, pids := countersOf(l.dir+"/memory.events"), countersOf(l.dir+"/pids.events")
	return Events{MemoryReached: memory["oom"], MemoryKilled: memory["oom_kill"], ProcessesRefuse: pids["max"]}
}

// Processes is how many processes and threads are in the leaf, 0 where nobody counts.
func (l *Leaf) Processes() int {
	text, _ := os.ReadFile(l.dir + "/pids.current") // there is none
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}

// countersOf reads a file of names and numbers.
func countersOf(path string) map[string]int {
	text, _ := os.ReadFile(path) // nothing is counted
	return counters(string(text))
}

func counters(text string) map[string]int {
	all := map[string]int{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[name], _ = strconv.Atoi(value)
	}
	return all
}

// removal bounds how long the end of what was killed is waited for.
const removal = 2 * time.Second

// Close ends what is in the leaf, and removes it.
func (l *Leaf) Close() error {
	_ = l.Procs.Close()
	return remove(l.dir, removal)
}

// remove ends what is in a leaf, and removes that. The next server removes what is left.
func remove(leaf string, most time.Duration) error {
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		err := os.Remove(leaf)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if time.Since(begun) > most {
			return err
		}
		if os.WriteFile(leaf+"/cgroup.kill", []byte("1"), 0) != nil { // before Linux 5.14
			killEach(leaf)
		}
	}
}

func killEach(leaf string) {
	pids, _ := words(leaf + procs)
	for _, text := range pids {
		if pid, err := strconv.Atoi(text); err == nil && pid > 1 {
			_ = proc.Signal(pid, unix.SIGKILL)
		}
	}
}

// removeLeftovers removes what servers have left that were killed: those whose own
// leaf is empty, and was not made a moment ago.
func removeLeftovers(dir string) {
	servers, _ := filepath.Glob(filepath.Join(escaped(dir), prefix+"*")) // the pattern is well formed
	for _, old := range servers {
		info, err := os.Stat(old)
		if err != nil || time.Since(info.ModTime()) < settling || countersOf(old + "/server/cgroup.events")["populated"] != 0 {
			continue
		}
		leaves, _ := os.ReadDir(old)
		for _, leaf := range leaves {
			if leaf.IsDir() {
				_ = remove(filepath.Join(old, leaf.Name()), removal)
			}
		}
		_ = os.Remove(old)
	}
}

// settling is how long a server may take from the making of its leaf to moving in.
const settling = 5 * time.Second

// escaped is a path as a pattern.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
