package e2e

import (
	"strings"
	"testing"
)

// TestTraceFileThatIsFull: it is said once that spans are lost, and calls go on.
func TestTraceFileThatIsFull(t *testing.T) {
	c := start(t, workspace(t), "serve", "--trace-file", "/dev/full")
	c.initialize()
	for range 20 {
		if r, err := c.call("exec", run("echo fine")); err != nil || !strings.Contains(text(t, r), "fine") {
			t.Fatalf("%v %v", r, err)
		}
	}
	c.in.Close()
	if code := c.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if said := c.stderr.String(); strings.Count(said, "spans cannot be written") != 1 || strings.Count(said, "no space left") != 1 {
		t.Errorf("standard error says %q", said)
	}
}
