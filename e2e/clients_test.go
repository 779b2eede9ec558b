package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// nodeScript runs one script of e2e/clients with Node 22 and fails on anything
// but the given number of ok lines.
func nodeScript(t *testing.T, checks int, script string, args ...string) {
	t.Helper()
	dir := nodeDir(t)
	path, err := filepath.Abs(filepath.Join(dir, script))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "node_modules/node/bin/node"), append([]string{path}, args...)...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	if got := strings.Count("\n"+string(out), "\nok "); got != checks {
		t.Errorf("%s passed %d of %d checks:\n%s", script, got, checks, out)
	}
}

// TestTypeScriptSDK drives all nine tools with the client library that most MCP
// hosts are built on.
func TestTypeScriptSDK(t *testing.T) {
	nodeScript(t, 12, "sdk_v1.mjs", binary, workspace(t))
}
