package skillrepo_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/perstack-ai/perstack-base/skillrepo"
)

// The skills of a directory, as a server finds and shows them.
func ExampleOpen() {
	project, err := filepath.Abs("..")
	if err != nil {
		panic(err)
	}
	repo, err := skillrepo.Open(context.Background(), []skillrepo.Root{{
		FS: os.DirFS(project), Path: "testdata/skills", Dir: filepath.Join(project, "testdata/skills"), Trusted: true,
	}}, skillrepo.Options{})
	if err != nil {
		panic(err)
	}
	for _, s := range repo.List() {
		fmt.Println(s.Name, s.Paths, len(s.Hooks))
	}
	notes, _ := repo.Get(context.Background(), "release-notes")
	files, _ := notes.Files(context.Background())
	for _, f := range files.Files {
		fmt.Println(f.Path)
	}
	// Output:
	// code-review [] 0
	// python-check [*.py] 0
	// release-notes [] 0
	// safe-shell [] 2
	// SKILL.md
	// assets/notes.md.tmpl
	// references/data.md
	// scripts/fill.py
}
