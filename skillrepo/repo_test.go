package skillrepo

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

func TestGetSeesTheDiskAsItIs(t *testing.T) {
	dir := realTempDir(t)
	r := open(t, wide(filepath.Join(dir, "skills"))) // which does not exist yet
	get := func(name string) *Skill {
		s, _ := r.Get(t.Context(), name)
		return s
	}
	if get("a") != nil {
		t.Fatal("found before it exists")
	}
	write(t, dir, map[string]string{"skills/a/SKILL.md": md("a", "first")})
	if s := get("a"); s == nil || s.Description != "first" {
		t.Fatalf("a new skill: %+v", s)
	}
	write(t, dir, map[string]string{"skills/a/SKILL.md": md("a", "other")}) // same size, within the clock's step
	if s := get("a"); s == nil || s.Description != "other" {
		t.Errorf("a changed skill: %+v", s)
	}
	old := get("a")
	write(t, dir, map[string]string{"skills/a/SKILL.md": md("b", "renamed")})
	if get("a") != nil || get("b") == nil {
		t.Errorf("a renamed skill: %q", names(r))
	}
	if old.Name != "a" || old.Description != "other" {
		t.Errorf("a snapshot changed: %+v", old)
	}
	if err := os.RemoveAll(filepath.Join(dir, "skills/a")); err != nil {
		t.Fatal(err)
	}
	if get("b") != nil || len(r.List()) != 0 {
		t.Error("a deleted skill is still known")
	}
}

func TestUnchangedSkillIsTheSameObject(t *testing.T) {
	dir := realTempDir(t)
	write(t, dir, map[string]string{"a/SKILL.md": md("a", "d")})
	r := open(t, wide(dir))
	time.Sleep(50 * time.Millisecond) // past the step of the file system's clock
	r.Get(t.Context(), "unknown")     // scans, and reads the skill once more
	first, _ := r.Get(t.Context(), "a")
	r.Get(t.Context(), "unknown")
	if again, _ := r.Get(t.Context(), "a"); again != first || first == nil {
		t.Error("an unchanged skill was loaded again")
	}
}

func TestRefreshReusesAYoungScan(t *testing.T) {
	dir := realTempDir(t)
	r := open(t, wide(dir))
	write(t, dir, map[string]string{"a/SKILL.md": md("a", "d")})
	scanned := r.snap.Load().started
	if err := r.Refresh(t.Context()); err != nil || r.snap.Load().started != scanned && time.Since(scanned) < recent {
		t.Error("scanned again at once", err)
	}
	time.Sleep(recent)
	if err := r.Refresh(t.Context()); err != nil || names(r) != "a" {
		t.Errorf("%q, %v", names(r), err)
	}
}

func TestRepoEndsWithItsContext(t *testing.T) {
	dir := realTempDir(t)
	write(t, dir, map[string]string{"a/SKILL.md": md("a", "d")})
	r := open(t, wide(dir))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.lock <- struct{}{} // as if a scan never ended
	if _, ok := r.Get(ctx, "unknown"); ok {
		t.Error("found an unknown skill")
	}
	<-r.lock
	if _, err := r.List()[0].Manifest(ctx); err == nil {
		t.Error("a manifest in spite of the context")
	}
	if _, err := r.Inventory(ctx); err == nil {
		t.Error("an inventory in spite of the context")
	}
}

func TestConcurrentUse(t *testing.T) {
	dir := realTempDir(t)
	write(t, dir, map[string]string{"a/SKILL.md": md("a", "d"), "a/x": "x"})
	r := open(t, wide(dir))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				if s, ok := r.Get(t.Context(), "a"); ok {
					_, _ = s.Digest(t.Context())
				}
				r.Get(t.Context(), "unknown")
				_, _ = r.Published(t.Context())
				if i == 0 {
					write(t, dir, map[string]string{"a/x": time.Now().String()})
				}
			}
		})
	}
	wg.Wait()
}

func TestWatchAnnouncesChanges(t *testing.T) {
	testlevel.NotQuick(t, "waits for the watch to look")
	dir := realTempDir(t)
	write(t, dir, map[string]string{"a/SKILL.md": md("a", "d")})
	r := open(t, wide(dir), wide(filepath.Join(dir, "../none")))
	ctx, cancel := context.WithCancel(t.Context())
	changed, done := make(chan struct{}, 10), make(chan struct{})
	go func() {
		defer close(done)
		r.Watch(ctx, func() { changed <- struct{}{} })
	}()
	expect := func(what string) {
		t.Helper()
		select {
		case <-changed:
		case <-time.After(20 * time.Second): // the promise is 2 s; a busy machine may be slower
			t.Fatal("not announced:", what)
		}
	}
	write(t, dir, map[string]string{"b/SKILL.md": md("b", "d")})
	expect("a new skill")
	write(t, dir, map[string]string{"b/SKILL.md": md("b", "e")})
	expect("another description")
	write(t, dir, map[string]string{"c/SKILL.md": md("c", "d")})
	r.Get(ctx, "c") // someone else notices first
	expect("a skill found by a call")
	if err := os.RemoveAll(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	expect("a deleted skill")
	write(t, dir, map[string]string{"a/SKILL.md": md("a", "d") + "more body", "a/new.txt": "x"})
	select {
	case <-changed:
		t.Error("a change of a body was announced")
	case <-time.After(2 * pollEvery):
	}
	cancel()
	<-done
}

func TestPauseGrowsWithSkills(t *testing.T) {
	for skills, want := range map[int]time.Duration{0: pollEvery, 320: pollEvery, 3200: 10 * pollEvery, 1e6: pollMost} {
		if got := pause(skills); got != want {
			t.Errorf("%d skills: %v, not %v", skills, got, want)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := realTempDir(t)
	write(t, dir, map[string]string{"a/SKILL.md": md("a", "d"), "a/b/SKILL.md": md("b", "d"), "broken/SKILL.md": "x", "empty/": "", "file": "x", "link": "-> a"})
	for _, p := range []string{"a", "a/SKILL.md", "link"} {
		s, err := Load(t.Context(), wide(filepath.Join(dir, p)))
		if err != nil || s.Name != "a" || !s.Trusted || s.RealDir != filepath.Join(dir, "a") {
			t.Errorf("%s: %+v, %v", p, s, err)
			continue
		}
		if d, err := s.Digest(t.Context()); err != nil || len(d) != len("sha256:")+64 {
			t.Errorf("%s: %q, %v", p, d, err)
		}
	}
	for p, want := range map[string]string{
		"broken": "SKILL.md has no frontmatter: the first line is not ---", "empty": "SKILL.md: file does not exist",
		"file": "the skill directory: is not a directory", "missing": "the skill directory: no such file or directory",
	} {
		if s, err := Load(t.Context(), wide(filepath.Join(dir, p))); err == nil || err.Error() != want {
			t.Errorf("%s: %v, %v; want %q", p, s, err, want)
		}
	}
	if _, err := Load(t.Context(), Root{Dir: "x"}); err == nil {
		t.Error("loaded without a tree")
	}
}
