package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFind(t *testing.T) {
	const unified = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
	for _, c := range []struct{ name, mounts, groups, want string }{
		{"systemd", unified, "0::/user.slice/a.scope\n", "/sys/fs/cgroup/user.slice/a.scope"},
		{"hybrid", "36 35 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", "8:pids:/\n0::/x\n", "/sys/fs/cgroup/unified/x"},
		{"the top", unified, "0::/\n", "/sys/fs/cgroup"},
		{"a part is mounted", "30 24 0:26 /a/b /mnt/with\\040blank rw - cgroup2 none rw\n", "0::/a/b/c\n", "/mnt/with blank/c"},
		{"another part is mounted", "30 24 0:26 /a/b /mnt rw - cgroup2 none rw\n", "0::/a\n", ""},
		{"outside of the namespace", unified, "0::/../x\n", ""},
		{"version 1", "30 24 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n", "8:pids:/\n", ""},
		{"not mounted", "30 24 0:26 / /sys rw - sysfs sysfs rw\n", "0::/x\n", ""},
	} {
		got, err := find(c.mounts, c.groups)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q %v, want %q", c.name, got, err, c.want)
		}
	}
}

// group is a directory with the files of a control group.
func group(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLimitsAreWritten(t *testing.T) {
	dir := group(t, map[string]string{"memory.max": "max", "memory.swap.max": "max", "memory.oom.group": "0", "pids.max": "max", "cpu.max": "max 100000"})
	all := &Tree{Memory: true, Processes: true, CPU: true, above: t.TempDir()}
	if err := (&Leaf{dir: dir}).limit(all, Limits{Memory: 512 << 20, Processes: 64, CPUs: 1.5}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"memory.max": "536870912", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "64", "cpu.max": "150000 100000"} {
		if got, _ := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// TestServerKeepsMemory: where memory is limited for the server and its sessions
// together, a session that has no limit of its own leaves some.
func TestServerKeepsMemory(t *testing.T) {
	for above, want := range map[string]string{"1073741824\n": "1006632960", "104857600\n": "78643200", "max\n": "none"} {
		dir := group(t, map[string]string{"memory.max": "none"})
		tree := &Tree{Memory: true, above: group(t, map[string]string{"memory.max": above})}
		if err := (&Leaf{dir: dir}).limit(tree, Limits{}); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(dir + "/memory.max"); string(got) != want {
			t.Errorf("of %s a session has %s, want %s", strings.TrimSpace(above), got, want)
		}
	}
}

func TestEvents(t *testing.T) {
	dir := group(t, map[string]string{"memory.events": "low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\n", "pids.events": "max 5\n"})
	if got := (&Leaf{dir: dir}).Events(); got != (Events{MemoryReached: 2, MemoryKilled: 3, ProcessesRefuse: 5}) {
		t.Errorf("%+v", got)
	}
}

// TestLeftovers: what belongs to a server that lives, or that has just begun, stays.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for name, populated := range map[string]string{"dead": "0", "alive": "1", "young": "0"} {
		server := filepath.Join(dir, prefix+name, "server")
		if err := os.MkdirAll(server, 0o755); err != nil {
			t.Fatal(err)
		}
		if name != "dead" { // a control group with files can be removed, this directory cannot
			if err := os.WriteFile(server+"/cgroup.events", []byte("populated "+populated+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if name != "young" {
			if err := os.Chtimes(filepath.Dir(server), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "another's"), 0o755); err != nil {
		t.Fatal(err)
	}
	removeLeftovers(dir)
	left, _ := filepath.Glob(dir + "/*")
	if got := strings.ReplaceAll(strings.Join(left, " "), dir+"/", ""); got != "another's "+prefix+"alive "+prefix+"young" {
		t.Errorf("left: %s", got)
	}
}
