package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perstack-ai/perstack-base/server"
)

// TestSkillsRoot: $SKILLS_ROOT names trusted skills, behind those of --skills.
func TestSkillsRoot(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "demo"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "demo/SKILL.md"), []byte("---\nname: demo\ndescription: d\n---\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]int{"": 0, root: 1} {
		t.Setenv("SKILLS_ROOT", value)
		inventory, err := takeInventory(t.Context(), &options{cfg: server.Config{Workspace: t.TempDir(), NoDiscover: true}})
		if err != nil || len(inventory.Skills) != want || want == 1 && inventory.Skills[0].Trust != "trusted" {
			t.Errorf("%q: %+v %v", value, inventory, err)
		}
	}
	t.Setenv("SKILLS_ROOT", root)
	o := options{cfg: server.Config{Skills: []string{"a"}}}
	if got := o.skillDirs(); len(got) != 2 || got[0] != "a" || got[1] != root || len(o.cfg.Skills) != 1 {
		t.Error(got)
	}
}
