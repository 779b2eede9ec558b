package release

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// A workflow is what matters here of one of GitHub's.
type workflow struct {
	On          yaml.Node         `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]struct {
		Permissions map[string]string `yaml:"permissions"`
		Timeout     int               `yaml:"timeout-minutes"`
		Steps       []struct {
			Uses string         `yaml:"uses"`
			Run  string         `yaml:"run"`
			With map[string]any `yaml:"with"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

// rights are all that a job may have; everything else is refused here before GitHub grants it.
var rights = map[string][]string{
	"ci.yml/checks":           {"contents: read"},
	"ci.yml/release-dry-run":  {"contents: read"},
	"release.yml/checks":      {"contents: read"},
	"release.yml/release":     {"attestations: write", "contents: write", "id-token: write", "packages: write"},
	"registries.yml/registry": {"contents: read", "id-token: write"},
}

// TestWorkflows: no workflow has a right by default, runs code of others by a name that can be moved, keeps the
// token for later steps, or puts into a script what a stranger can write.
func TestWorkflows(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(top, ".github/workflows/*"))
	if err != nil || len(paths) < 2 {
		t.Fatalf("only %q (%v)", paths, err)
	}
	jobs := 0
	for _, path := range paths {
		name := filepath.Base(path)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if w.Permissions == nil || len(w.Permissions) > 0 {
			t.Errorf("%s: permissions of all jobs must be {}", name)
		}
		if strings.Contains(string(text), "pull_request_target") || strings.Contains(string(text), "workflow_run") {
			t.Errorf("%s runs with rights on what strangers sent", name)
		}
		checkPins(t, name, string(text))
		for id, job := range w.Jobs {
			jobs++
			var has []string
			for right, access := range job.Permissions {
				has = append(has, right+": "+access)
			}
			slices.Sort(has)
			if may := rights[name+"/"+id]; !slices.Equal(has, may) {
				t.Errorf("%s: job %s has the rights %q, not %q", name, id, has, may)
			}
			if job.Timeout == 0 {
				t.Errorf("%s: job %s may run for six hours", name, id)
			}
			for _, step := range job.Steps {
				if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
					t.Errorf("%s: job %s leaves its token with the clone", name, id)
				}
				if strings.Contains(step.Run, "${{") {
					t.Errorf("%s: job %s pastes into a script; use env: %s", name, id, step.Run)
				}
			}
		}
	}
	if jobs != len(rights) {
		t.Errorf("%d jobs are there, %d are known", jobs, len(rights))
	}
}

// checkPins wants every action by its commit, with the version that this was; the same everywhere.
func checkPins(t *testing.T, name, text string) {
	t.Helper()
	pinned := regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	uses := regexp.MustCompile(`(?m)uses: *(.*)$`).FindAllStringSubmatch(text, -1)
	if len(uses) == 0 {
		t.Errorf("%s uses nothing: this test checks nothing", name)
	}
	for _, m := range uses {
		if !pinned.MatchString(m[1]) {
			t.Errorf("%s: %s is not ACTION@COMMIT # vX.Y.Z", name, m[1])
		}
	}
}
