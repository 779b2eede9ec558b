package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRightsOfPrograms: a program that has rights of its own, as sudo has, gets them
// under limits, too, where commands are not confined.
func TestRightsOfPrograms(t *testing.T) {
	id, err := os.ReadFile("/usr/bin/id")
	if err != nil || os.Getuid() != 0 {
		t.Skip("only root makes such a program, of id")
	}
	for _, g := range guests(t) {
		if g.uid == 0 {
			continue
		}
		path := filepath.Join(g.dir, "rootid")
		if err := os.WriteFile(path, id, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o755|os.ModeSetuid); err != nil {
			t.Fatal(err)
		}
		for _, flags := range [][]string{nil, {"--max-memory", "512M", "--max-processes", "50"}} {
			c := startCommand(t, guestCommand(g, append([]string{"serve", "--sandbox", "off"}, flags...)...))
			c.initialize()
			result, err := c.call("exec", json.RawMessage(fmt.Sprintf(`{"command":%q,"args":["-u"],"env":{},"cwd":"","stdout":true,"stderr":true}`, path)))
			if err != nil {
				t.Fatal(err)
			}
			if got := text(t, result); !strings.Contains(got, `"0\n"`) {
				t.Errorf("with %v: %s", flags, got)
			}
		}
	}
}

// TestFilesFillMemory: commands that fill, with files in memory that stay, all that the
// server and they may use do not end the server; what comes next removes the files.
func TestFilesFillMemory(t *testing.T) {
	for _, g := range guests(t) {
		for _, tier := range tiers {
			t.Run(g.name+", "+tier, func(t *testing.T) {
				needTier(t, g, tier)
				cmd := guestCommand(g, "serve", "--sandbox", tier)
				enterGroup(cmd, smallMemory(t, "300M"))
				c := startCommand(t, cmd)
				c.initialize()
				files := fmt.Sprintf("/dev/shm/perstack-test-%d-", time.Now().UnixNano())
				t.Cleanup(func() { removeAll(t, files+"*") })
				first := answer(t, c, "head -c 400M /dev/zero > "+files+"a; echo first")
				short := false
				for i := range 8 {
					got := answer(t, c, fmt.Sprintf("head -c 400M /dev/zero > %s%d; echo on", files, i))
					short = short || strings.Contains(got, "cannot write to files until")
				}
				if !short && tier != "isolate" { // whose files end with the session
					t.Errorf("commands were not told: %s", first)
				}
				if got := answer(t, c, "rm -f "+files+"*; echo removed"); !strings.Contains(got, "removed") {
					t.Errorf("nothing can be removed: %s", got)
				}
				for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) { // the kernel counts a moment later
					got := answer(t, c, "head -c 20M /dev/zero > "+files+"b && wc -c < "+files+"b")
					if strings.Contains(got, "20971520") && !strings.Contains(got, "cannot write") {
						break
					}
					if time.Since(begun) > hangGuard {
						t.Fatalf("afterwards: %s", got)
					}
				}
				c.in.Close()
				if code := c.end(); code != 0 {
					t.Errorf("the server ended with %d: %s", code, c.stderr.String())
				}
			})
		}
	}
}

func removeAll(t *testing.T, pattern string) {
	t.Helper()
	all, _ := filepath.Glob(pattern)
	for _, name := range all {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}

// smallMemory is the file by which processes enter a control group that has little memory.
func smallMemory(t *testing.T, most string) string {
	t.Helper()
	return groupWith(t, map[string]string{"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max"}, most)
}
