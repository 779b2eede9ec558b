package skillrepo

import (
	"strings"
	"testing"
)

func TestCatalogue(t *testing.T) {
	dir := realTempDir(t)
	write(t, dir, map[string]string{
		"py-lint/SKILL.md":   "---\nname: py-lint\ndescription: Lint Python.\npaths: ['*.py', 'tests/**']\n---\n",
		"pdf-forms/SKILL.md": "---\nname: pdf-forms\ndescription: |\n  Fill and\n  flatten   PDF forms.\n---\n",
	})
	r := open(t, wide(dir))
	want := `The following skills provide specialized instructions for specific tasks.
When a task matches a skill's description, call the ` + "`skill_load`" + ` tool with the skill's name to load its full instructions.

- pdf-forms: Fill and flatten PDF forms.
- py-lint: Lint Python. [activates for: *.py, tests/**]`
	if got := r.Catalogue(16<<10, "skill_load"); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := r.Catalogue(len(want), "skill_load"); got != want {
		t.Errorf("what just fits: %s", got)
	}
	cut := r.Catalogue(len(want)-1, "skill_load")
	if lines := strings.Split(cut, "\n"); lines[len(lines)-1] != "… and 1 more skills" || lines[len(lines)-2] != "- pdf-forms: Fill and flatten PDF forms." {
		t.Errorf("cut: %s", cut)
	}
	if got := r.Catalogue(10, "skill_load"); got != "" {
		t.Errorf("no room: %q", got)
	}
	if got := open(t).Catalogue(1000, "x"); got != "" {
		t.Errorf("no skills: %q", got)
	}
}

func TestCatalogueNeverPassesItsLimit(t *testing.T) {
	var skills []*Skill
	for range 200 {
		skills = append(skills, &Skill{Name: "name", Description: strings.Repeat("words ", 20)})
	}
	for limit := range 9000 {
		got := catalogue(skills, limit, "activate_skill")
		if len(got) > limit || got != "" && !strings.HasSuffix(got, " more skills") {
			t.Fatalf("limit %d: %d bytes, %q", limit, len(got), got[max(0, len(got)-60):])
		}
	}
}
