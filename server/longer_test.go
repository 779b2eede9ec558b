package server

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMoreTimeIsNamed: a command that the default deadline has ended is answered
// with the argument for more, its maximum as listed, and the flag; one with a
// deadline of its own is not.
func TestMoreTimeIsNamed(t *testing.T) {
	dir := workspace(t)
	put(t, dir, map[string]string{
		"trusted/slow/SKILL.md":        "---\nname: slow\ndescription: Is slow.\n---\nBody.\n",
		"trusted/slow/scripts/slow.sh": "sleep 60\n",
	})
	for _, c := range []struct{ profile, tool, args, argument string }{
		{"perstack", "exec", `{"command":"sleep","args":["60"],"env":{},"cwd":".","stdout":true,"stderr":true}`, "timeout"},
		{"baseagent", "shell_command", `{"command":"sleep 60"}`, "timeout_ms"},
		{"vski", "exec", `{"command":"sleep 60"}`, "timeout"},
		{"skills", "skill_run", `{"skill":"slow","command":"sleep 60"}`, "timeout"},
		{"echo", "run_skill_script", `{"skill_name":"slow","script":"scripts/slow.sh"}`, ""},
	} {
		t.Run(c.profile, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, Config{Workspace: dir, Tools: []string{c.profile}, Skills: []string{filepath.Join(dir, "trusted")}, Timeout: time.Second})
			call := inProcess(t, s)
			if c.profile == "echo" {
				mustCall(t, call, "activate_skill", `{"name":"slow"}`)
			}
			r := mustCall(t, call, c.tool, c.args)
			structured, _ := json.Marshal(r.StructuredContent)
			got := texts(r) + string(structured)
			if !strings.Contains(got, "--timeout 10m") {
				t.Errorf("the flag is not named: %s", got)
			}
			if c.argument == "" {
				return
			}
			for _, l := range s.Listed() {
				for _, a := range Arguments(l.Tool) {
					if l.Tool.Name == c.tool && a.Name == c.argument && !strings.Contains(got, fmt.Sprintf("set %s, at most %.0f,", a.Name, *a.Maximum)) {
						t.Errorf("the argument is not named with its maximum %v: %s", *a.Maximum, got)
					}
				}
			}
		})
	}
}
