package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// The scenarios of the official suite that apply to any server. The others look
// for fixtures, which the server of ./conformance has.
var (
	anyLegacy = []string{"server-initialize", "ping", "completion-complete", "tools-list", "server-sse-multiple-streams",
		"resources-list", "prompts-list", "dns-rebinding-protection", "server-session-lifecycle"}
	anyModern = []string{"completion-complete", "tools-list", "server-sse-multiple-streams", "resources-list",
		"sep-2164-resource-not-found", "prompts-list", "dns-rebinding-protection", "caching", "http-header-validation",
		"input-required-result-missing-input-response", "input-required-result-unsupported-methods",
		"input-required-result-ignore-extra-params", "input-required-result-validate-input"}
	// Checks of the scenarios tasks-* that look for no fixture.
	anyTasks = []string{"tasks-extension-advertised", "sep-2663-tasks-methods-non-declaring", "sep-2663-tasks-result-removed-method-not-found",
		"tasks-removed-tasks-list", "sep-2663-tasks-get-invalid-task-id-32602", "tasks-headers-reject-mismatched-method"}
)

// conformanceBinary builds the server with the suite's fixtures.
func conformanceBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "conformance")
	build := exec.Command("go", "build", "-o", path, "./conformance")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestConformance runs the official suite, the current one for two revisions and
// the last stable one, against the release and against the server with fixtures.
func TestConformance(t *testing.T) {
	dir := nodeDir(t)
	release := startSite(t, workspace(t), "http").url
	fixtures := startSiteOf(t, conformanceBinary(t), workspace(t)).url
	current, stable := "@modelcontextprotocol/conformance", "conformance-stable"
	for _, c := range []struct {
		name, suite, url string
		args             []string
		must             []string // scenarios that must pass; nil: all
		checks           []string // checks that must pass
		atLeast          int      // scenarios that must have been run
	}{
		{"release 2025-11-25", current, release, []string{"--requirements", "2025-11-25"}, anyLegacy, nil, 30},
		{"release 2026-07-28", current, release, []string{"--requirements", "2026-07-28"}, anyModern, anyTasks, 50},
		{"fixtures 2025-11-25", current, fixtures, []string{"--requirements", "2025-11-25"}, nil, nil, 33},
		{"fixtures 2026-07-28", current, fixtures, []string{"--requirements", "2026-07-28"}, nil, anyTasks, 50},
		{"fixtures 0.1.16", stable, fixtures, []string{"--suite", "all"}, nil, nil, 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(dir, "node_modules", c.suite, "dist/index.js")
			results := t.TempDir()
			args := append([]string{script, "server", "--url", c.url, "-o", results}, c.args...)
			out, _ := node(dir, args...).CombinedOutput() // it fails when any scenario does
			passed, failed := summary(string(out))
			if len(passed)+len(failed) < c.atLeast {
				t.Fatalf("only %d scenarios were run:\n%s", len(passed)+len(failed), out)
			}
			for _, name := range c.must {
				if !slices.Contains(passed, name) {
					t.Errorf("%s did not pass", name)
				}
			}
			for _, name := range failed {
				if c.must == nil {
					t.Errorf("%s failed", name)
				}
			}
			done := succeeded(t, results)
			for _, id := range c.checks {
				if !slices.Contains(done, id) {
					t.Errorf("the check %s did not succeed", id)
				}
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}

var scenario = regexp.MustCompile(`(?m)^(✓|✗) ([\w-]+): \d+ passed, \d+ failed$`)

// summary reads which scenarios passed and failed.
func summary(out string) (passed, failed []string) {
	for _, m := range scenario.FindAllStringSubmatch(out, -1) {
		if m[1] == "✓" {
			passed = append(passed, m[2])
		} else {
			failed = append(failed, m[2])
		}
	}
	return passed, failed
}

// succeeded reads from the suite's files which single checks did.
func succeeded(t *testing.T, results string) (ids []string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(results, "*", "checks.json"))
	for _, file := range files {
		var checks []struct{ ID, Status string }
		raw, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(raw, &checks) != nil {
			t.Fatalf("%s: %s %v", file, raw, err)
		}
		for _, c := range checks {
			if c.Status == "SUCCESS" {
				ids = append(ids, c.ID)
			}
		}
	}
	return ids
}

// node runs Node 22 with it first on PATH.
func node(dir string, args ...string) *exec.Cmd {
	bin := filepath.Join(dir, "node_modules/node/bin")
	cmd := exec.Command(filepath.Join(bin, "node"), args...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}
