package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The scenarios of the official suite that apply to any server. The others look
// for fixtures, which a build with the tag conformance has.
var (
	anyLegacy = []string{"server-initialize", "ping", "completion-complete", "tools-list", "server-sse-multiple-streams",
		"resources-list", "prompts-list", "dns-rebinding-protection", "server-session-lifecycle"}
	anyModern = []string{"completion-complete", "tools-list", "server-sse-multiple-streams", "resources-list",
		"sep-2164-resource-not-found", "prompts-list", "dns-rebinding-protection", "caching", "http-header-validation",
		"input-required-result-missing-input-response", "input-required-result-unsupported-methods",
		"input-required-result-ignore-extra-params", "input-required-result-validate-input"}
)

// conformanceBinary builds the server with the suite's fixtures.
func conformanceBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "perstack-base")
	build := exec.Command("go", "build", "-tags", "conformance", "-o", path, "../cmd/perstack-base")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestConformance runs the official suite, the current one for two revisions and
// the last stable one, against the release and against the build with fixtures.
func TestConformance(t *testing.T) {
	dir := nodeDir(t)
	release := startSite(t, workspace(t), "http").url
	fixtures := startSiteOf(t, conformanceBinary(t), workspace(t), "--transport", "http", "--listen", "127.0.0.1:0", "--tools", "conformance").url
	current, stable := "@modelcontextprotocol/conformance", "conformance-stable"
	for _, c := range []struct {
		name, suite, url string
		args             []string
		must             []string // scenarios that must pass; nil: all, but those of mayFail
		mayFail          string   // prefix
		atLeast          int      // scenarios that must have been run
	}{
		{"release 2025-11-25", current, release, []string{"--requirements", "2025-11-25"}, anyLegacy, "", 30},
		{"release 2026-07-28", current, release, []string{"--requirements", "2026-07-28"}, anyModern, "", 40},
		{"fixtures 2025-11-25", current, fixtures, []string{"--requirements", "2025-11-25"}, nil, "", 33},
		{"fixtures 2026-07-28", current, fixtures, []string{"--requirements", "2026-07-28"}, nil, "tasks-", 40},
		{"fixtures 0.1.16", stable, fixtures, []string{"--suite", "all"}, nil, "", 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(dir, "node_modules", c.suite, "dist/index.js")
			args := append([]string{script, "server", "--url", c.url, "-o", t.TempDir()}, c.args...)
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
				if c.must == nil && (c.mayFail == "" || !strings.HasPrefix(name, c.mayFail)) {
					t.Errorf("%s failed", name)
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

// node runs Node 22 with it first on PATH.
func node(dir string, args ...string) *exec.Cmd {
	bin := filepath.Join(dir, "node_modules/node/bin")
	cmd := exec.Command(filepath.Join(bin, "node"), args...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}
