package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
