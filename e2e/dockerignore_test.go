package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDockerContext: what is sent to a build of the images is what the binary is
// built from: every package of it, and nothing else that lies around.
func TestDockerContext(t *testing.T) {
	text, err := os.ReadFile("../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(l string) bool { return strings.HasPrefix(l, "#") })
	if lines[0] != "*" {
		t.Fatal("everything is sent that is not named")
	}
	var sent []string
	for _, line := range lines {
		if name, ok := strings.CutPrefix(line, "!"); ok {
			sent = append(sent, name)
		}
	}
	top, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.Dir}}{{end}}", "./cmd/perstack-base")
	build.Dir = top
	out, err := build.Output()
	if err != nil {
		t.Fatal(err)
	}
	needed := []string{"go.mod", "go.sum"}
	for dir := range strings.Lines(string(out)) {
		if rel, err := filepath.Rel(top, strings.TrimSpace(dir)); err == nil && filepath.IsLocal(rel) {
			needed = append(needed, strings.Split(filepath.ToSlash(rel), "/")[0])
		}
	}
	slices.Sort(needed)
	slices.Sort(sent)
	if needed = slices.Compact(needed); !slices.Equal(sent, needed) {
		t.Errorf(".dockerignore lets %q be sent; the build needs %q", sent, needed)
	}
}
