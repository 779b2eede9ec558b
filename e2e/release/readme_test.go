package release

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeTellsHowToBuildTheSame: the command that README gives to whoever wants the same bytes is what a release
// is built with.
func TestReadmeTellsHowToBuildTheSame(t *testing.T) {
	b := theBuild(t)
	want := strings.Join(b.Env, " ") + " go build " + strings.Join(b.Flags, " ")
	for _, f := range b.Ldflags {
		want += ` -ldflags "` + strings.ReplaceAll(f, "{{ .Version }}", "VERSION") + `"`
	}
	want = "\n    " + want + " " + b.Main + "\n"
	if !strings.Contains(string(read(t, filepath.Join(top, "README.md"))), want) {
		t.Errorf("README.md has no line%s", want)
	}
}

// TestBadgesAreChecked: a badge shows what a workflow of this repository found, and nothing else.
func TestBadgesAreChecked(t *testing.T) {
	text := string(read(t, filepath.Join(top, "README.md")))
	badges := regexp.MustCompile(`!\[[^\]]*\]\((https?://[^)]*)\)`).FindAllStringSubmatch(text, -1)
	if len(badges) == 0 {
		t.Fatal("README.md has no badge: this test checks nothing")
	}
	workflow := regexp.MustCompile(`^https://github\.com/perstack-ai/perstack-base/actions/workflows/([\w-]+\.yml)/badge\.svg$`)
	for _, b := range badges {
		m := workflow.FindStringSubmatch(b[1])
		if m == nil {
			t.Errorf("%s shows what nothing here checks", b[1])
			continue
		}
		if _, err := os.Stat(filepath.Join(top, ".github/workflows", m[1])); err != nil {
			t.Errorf("%s: %v", b[1], err)
		}
	}
}
