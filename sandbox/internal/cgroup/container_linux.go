package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mounted is where a container sees its own group: of version 2, or of version 1 with a
// directory for each controller.
const mounted = "/sys/fs/cgroup"

// A Container is the group that an engine of containers has made for this one, seen from
// inside. The engine sets its limits.
type Container struct{ dir string }

// Around is the group of the container that this program runs in.
func Around() *Container { return &Container{mounted} }

// read is the text of a file of the group by its names in both versions, or "".
func (c *Container) read(second, controller, first string) string {
	for _, path := range []string{second, filepath.Join(controller, first)} {
		if text, err := os.ReadFile(filepath.Join(c.dir, path)); err == nil {
			return strings.TrimSpace(string(text))
		}
	}
	return ""
}

// Events are those so far.
func (c *Container) Events() Events {
	const pidsEvents = "pids.events"
	pids := counters(c.read(pidsEvents, "pids", pidsEvents))
	if text := c.read("memory.events", "", ""); text != "" {
		memory := counters(text)
		return Events{MemoryReached: memory["oom"], MemoryKilled: memory["oom_kill"], ProcessesRefuse: pids["max"]}
	}
	all := Events{MemoryKilled: counters(c.read("", "memory", "memory.oom_control"))["oom_kill"], ProcessesRefuse: pids["max"]}
	most, _ := strconv.ParseFloat(c.read("", "memory", "memory.max_usage_in_bytes"), 64)
	limit, _ := strconv.ParseFloat(c.read("", "memory", "memory.limit_in_bytes"), 64)
	if most >= limit*nearly { // newer kernels do not count how often that was
		all.MemoryReached = all.MemoryKilled
	}
	return all
}

// nearly is the part of a limit that usage comes to before a larger piece is refused.
const nearly = 0.98

// Processes is how many processes and threads are in the container besides those of this
// program, 0 where nobody counts.
func (c *Container) Processes() int {
	const current = "pids.current"
	n, _ := strconv.Atoi(c.read(current, "pids", current))
	own, _ := os.ReadDir("/proc/self/task")
	return max(0, n-len(own))
}

// Keeps reports whether the limits are set, as far as that can be seen.
func (c *Container) Keeps(l Limits) (memory, processes, cpus bool) {
	return within(c.read("memory.max", "memory", "memory.limit_in_bytes"), float64(l.Memory)),
		within(c.read("pids.max", "pids", "pids.max"), float64(l.Processes)),
		within(c.read("cpu.max", "cpu", "cpu.cfs_quota_us"), l.CPUs*period)
}

// within reports whether what a file says is no more than a limit, if there is one.
// What cannot be seen is taken for the engine's word.
func within(text string, limit float64) bool {
	words := strings.Fields(text)
	if limit <= 0 || len(words) == 0 {
		return true
	}
	n, err := strconv.ParseInt(words[0], 10, 64)
	return err == nil && n >= 0 && float64(n) <= limit // -1 and "max" are none
}
