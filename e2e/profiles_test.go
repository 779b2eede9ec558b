package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// TestProfilesThatClash: two tools of one name cannot be listed; the message
// says how to have both profiles, and that way works.
func TestProfilesThatClash(t *testing.T) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(binary, "serve", "--tools", "perstack,vski")
	cmd.Dir, cmd.Stdout, cmd.Stderr = workspace(t), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || stdout.Len() > 0 {
		t.Errorf("ended with %v, stdout %q", err, stdout.String())
	}
	for _, part := range []string{"perstack.exec", "vski.exec", "--tools perstack,vski,-vski.exec"} {
		if !strings.Contains(stderr.String(), part) {
			t.Errorf("%q does not name %s", stderr.String(), part)
		}
	}
}

func TestSelections(t *testing.T) {
	for selection, want := range map[string]string{
		"perstack,vski,-vski.exec": "attemptCompletion clearTodo editTextFile exec read readImageFile readPdfFile readTextFile todo write writeTextFile",
		"vski":                     "exec read write",
		"vski.read":                "read",
		"baseagent":                "apply_patch grep_files list_dir read_file shell_command update_plan view_image write_file",
		"baseagent,vski":           "apply_patch exec grep_files list_dir read read_file shell_command update_plan view_image write write_file",
	} {
		if got := listed(t, "--tools", selection); got != want {
			t.Errorf("--tools %s lists %s", selection, got)
		}
	}
	if got := listed(t, "--tools", "baseagent,vski", "--read-only"); got != "grep_files list_dir read read_file update_plan view_image" {
		t.Errorf("--read-only lists %s", got)
	}
}

func listed(t *testing.T, flags ...string) string {
	t.Helper()
	c := start(t, workspace(t), append([]string{"serve"}, flags...)...)
	c.initialize()
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(c.request("tools/list", nil), &list); err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(list.Tools))
	for i, tool := range list.Tools {
		names[i] = tool.Name
	}
	return strings.Join(names, " ")
}
