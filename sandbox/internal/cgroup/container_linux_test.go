package cgroup

import (
	"maps"
	"testing"
)

// second and first are the files of a container's group in both versions.
var (
	second = map[string]string{"memory.max": "67108864\n", "memory.events": "oom 2\noom_kill 3\n", "pids.max": "60\n", "pids.current": "1007\n",
		"pids.events": "max 5\n", "cpu.max": "50000 100000\n"}
	first = map[string]string{"memory/memory.limit_in_bytes": "67108864\n", "memory/memory.max_usage_in_bytes": "67000000\n",
		"memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "pids/pids.max": "60\n", "pids/pids.current": "1007\n",
		"pids/pids.events": "max 5\n", "cpu/cpu.cfs_quota_us": "50000\n"}
)

func TestContainerEvents(t *testing.T) {
	starved := maps.Clone(first) // the machine had no more memory, the container was far from its limit
	starved["memory/memory.max_usage_in_bytes"] = "1000000\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  Events
	}{
		"2":          {second, Events{2, 3, 5}},
		"1":          {first, Events{3, 3, 5}},
		"1, starved": {starved, Events{0, 3, 5}},
		"none":       {nil, Events{}},
	} {
		if got := (&Container{group(t, c.files)}).Events(); got != c.want {
			t.Errorf("version %s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestContainerKeeps(t *testing.T) {
	unlimited := map[string]string{"memory.max": "max\n", "pids.max": "max\n", "cpu.max": "max 100000\n"}
	unlimitedFirst := map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n", "pids/pids.max": "max\n", "cpu/cpu.cfs_quota_us": "-1\n"}
	asked := Limits{Memory: 64 << 20, Processes: 60, CPUs: 0.5}
	for name, c := range map[string]struct {
		files map[string]string
		asked Limits
		kept  bool
	}{
		"2":              {second, asked, true},
		"1":              {first, asked, true},
		"2 without":      {unlimited, asked, false},
		"1 without":      {unlimitedFirst, asked, false},
		"not asked":      {unlimited, Limits{}, true},
		"nothing to see": {nil, asked, true},
	} {
		memory, processes, cpus := (&Container{group(t, c.files)}).Keeps(c.asked)
		if memory != c.kept || processes != c.kept || cpus != c.kept {
			t.Errorf("%s: %v %v %v", name, memory, processes, cpus)
		}
	}
}

func TestContainerProcesses(t *testing.T) {
	for name, files := range map[string]map[string]string{"2": second, "1": first} {
		if n := (&Container{group(t, files)}).Processes(); n <= 0 || n >= 1007 {
			t.Errorf("version %s: %d of 1007 are others", name, n)
		}
	}
}
