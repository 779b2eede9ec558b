package skillrepo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fiveHundred makes 500 skills of the usual shape: long bodies, a script, two references.
func fiveHundred(b *testing.B) Root {
	dir := realTempDir(b)
	body := strings.Repeat("Instructions that say what to do, and why.\n", 200)
	for i := range 500 {
		name := fmt.Sprintf("skill-%03d", i)
		write(b, dir, map[string]string{
			name + "/SKILL.md":            "---\nname: " + name + "\ndescription: Does the work that skill " + name + " is for. Use it when asked.\nlicense: MIT\nallowed-tools: Read Bash(git:*)\n---\n" + body,
			name + "/scripts/run.sh":      "#!/bin/sh\necho hi\n",
			name + "/references/guide.md": body,
			name + "/references/more.md":  body,
		})
	}
	return wide(dir)
}

// BenchmarkOpen is what 500 skills add to the start of a server.
func BenchmarkOpen(b *testing.B) {
	root := fiveHundred(b)
	for b.Loop() {
		if r := open(b, root); len(r.List()) != 500 {
			b.Fatal(len(r.List()))
		}
	}
}

// BenchmarkOpenWorkspace is the same through an os.Root, as a workspace is read.
func BenchmarkOpenWorkspace(b *testing.B) {
	root := fiveHundred(b)
	r, err := os.OpenRoot(filepath.Dir(root.Dir))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	root.FS, root.Path = r.FS(), filepath.Base(root.Dir)
	for b.Loop() {
		if r := open(b, root); len(r.List()) != 500 {
			b.Fatal(len(r.List()))
		}
	}
}

// BenchmarkRescan is what the poll of a watch costs when nothing changed.
func BenchmarkRescan(b *testing.B) {
	r := settled(b, fiveHundred(b))
	for b.Loop() {
		if err := r.refresh(b.Context(), time.Now()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkManifests lists and digests 500 skills whose hashes are remembered.
func BenchmarkManifests(b *testing.B) {
	r := settled(b, fiveHundred(b))
	for b.Loop() {
		for _, s := range r.List() {
			if m, err := s.Manifest(b.Context()); err != nil || len(m.Files) != 4 {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkPublished is a whole skills/list: a look at the disk, and what may be published.
func BenchmarkPublished(b *testing.B) {
	r := settled(b, fiveHundred(b))
	for b.Loop() {
		if all, err := r.Published(b.Context()); err != nil || len(all) != 500 {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	r := settled(b, fiveHundred(b))
	for b.Loop() {
		if _, ok := r.Get(b.Context(), "skill-250"); !ok {
			b.Fatal("unknown")
		}
	}
}

// settled opens a root whose files are old enough to be remembered, and hashes them.
func settled(b *testing.B, root Root) *Repo {
	time.Sleep(50 * time.Millisecond)
	r := open(b, root)
	for _, s := range r.List() {
		if _, err := s.Manifest(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	return r
}
