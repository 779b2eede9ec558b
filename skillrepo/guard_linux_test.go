package skillrepo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/files"
)

// hostRoot is the root of a --skills flag that names dir, in a workspace that
// commands may write.
func hostRoot(t testing.TB, dir, workspace string) Root {
	t.Helper()
	tree, p, abs, err := files.HostTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Root{FS: tree, Path: p, Dir: abs, Trusted: true, Writable: []string{workspace}}
}

// exchange swaps two entries in one step.
func exchange(t testing.TB, a, b string) {
	t.Helper()
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		t.Skip("this file system cannot exchange names: ", err)
	}
}

// A swapper puts a link in the place of a directory right after somebody saw that
// a file is in it.
type swapper struct {
	fs.ReadLinkFS
	file string
	swap func()
}

func (s *swapper) Lstat(name string) (fs.FileInfo, error) {
	info, err := s.ReadLinkFS.Lstat(name)
	if strings.HasSuffix(name, s.file) && s.swap != nil {
		s.swap()
		s.swap = nil
	}
	return info, err
}

// TestSwappedDirectory: a command that turns a directory of a skill into a link
// while a file in it is being read makes no reader leave the skill.
func TestSwappedDirectory(t *testing.T) {
	base := realTempDir(t)
	write(t, base, map[string]string{
		"ws/sk/s/SKILL.md": md("s", "d"), "ws/sk/s/d/f": "inside", "ws/l": "-> " + base + "/outside", "outside/f": "SECRET",
	})
	dir, link := filepath.Join(base, "ws/sk/s/d"), filepath.Join(base, "ws/l")
	read := func(root Root, swap func()) string {
		sw := &swapper{ReadLinkFS: root.FS.(fs.ReadLinkFS), file: "s/d/f"}
		root.FS = sw
		s := open(t, root).List()[0]
		sw.swap = swap
		f, err := s.Resource("d/f")
		if err != nil {
			return ""
		}
		content, _ := s.ReadFile(f, 100)
		return string(content)
	}
	swap := func() { exchange(t, dir, link) }
	root := hostRoot(t, base+"/ws/sk", base+"/ws")
	if got := read(root, nil); got != "inside" {
		t.Fatalf("undisturbed: %q", got)
	}
	if got := read(root, swap); got != "" {
		t.Errorf("the link was followed: %q", got)
	}
	swap()
	if got := read(wide(base+"/ws/sk"), swap); got != "SECRET" {
		t.Errorf("a tree that follows links was not led outside (%q), so this test proves nothing", got)
	}
}

// TestSwapLoop reads while a command swaps a directory and a link all the time.
func TestSwapLoop(t *testing.T) {
	base := realTempDir(t)
	write(t, base, map[string]string{
		"ws/sk/s/SKILL.md": md("s", "d"), "ws/sk/s/d/f": "inside", "ws/sk/s/d/SKILL.md": md("n", "d"),
		"ws/l": "-> " + base + "/outside", "outside/f": "SECRET", "outside/SKILL.md": md("secret", "SECRET"),
	})
	dir, link := filepath.Join(base, "ws/sk/s/d"), filepath.Join(base, "ws/l")
	exchange(t, dir, link)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	r := open(t, hostRoot(t, base+"/ws/sk", base+"/ws"))
	for range 400 {
		s, ok := r.Get(t.Context(), "s")
		if !ok {
			t.Fatal("the skill is gone")
		}
		if f, err := s.Resource("d/f"); err == nil {
			if content, err := s.ReadFile(f, 100); err == nil && string(content) != "inside" {
				t.Fatalf("read %q", content)
			}
		}
		if list, err := s.Files(t.Context()); err == nil {
			for _, f := range list.Files {
				if content, err := s.ReadFile(f, 100); err == nil && strings.Contains(string(content), "SECRET") {
					t.Fatalf("read %s: %q", f.Path, content)
				}
			}
		}
		if err := r.refresh(t.Context(), r.snap.Load().started.Add(1)); err != nil || strings.Contains(names(r), "secret") {
			t.Fatalf("skills: %s (%v)", names(r), err)
		}
	}
}

// TestLinksInWritablePlaces: where commands write, a link out of the root is the
// command's and not the user's.
func TestLinksInWritablePlaces(t *testing.T) {
	base := realTempDir(t)
	write(t, base, map[string]string{
		"ws/sk/s/SKILL.md": md("s", "d"), "ws/sk/s/f": "-> " + base + "/secret/key", "ws/sk/out": "-> " + base + "/secret",
		"ws/sk/rel": "-> ../../secret", "ws/sk/in": "-> s/nested", "ws/sk/s/nested/SKILL.md": md("nested", "d"), "ws/sk/side": "-> ../other",
		"ws/other/SKILL.md": md("other", "d"), "secret/SKILL.md": md("secret", "d"), "secret/key": "KEY",
	})
	root := hostRoot(t, base+"/ws/sk", base+"/ws")
	r := open(t, root)
	if names(r) != "nested s" {
		t.Errorf("skills: %s", names(r))
	}
	for _, link := range []string{"out", "rel", "side", "s/f"} {
		told := func(d Diagnostic) bool {
			return d.Path == base+"/ws/sk/"+link && strings.Contains(d.Message, "leads outside")
		}
		if !slices.ContainsFunc(r.Diagnostics(), told) {
			t.Errorf("%s: %v", link, r.Diagnostics())
		}
	}
	s, _ := r.Get(t.Context(), "s")
	if _, err := s.Resource("f"); !errors.Is(err, ErrOutside) {
		t.Errorf("link to a file: %v", err)
	}
	root.Writable = nil
	if r := open(t, root); names(r) != "nested other s secret" {
		t.Errorf("without writable places the links were not followed (%s), so this test proves nothing", names(r))
	}
	// The user's own links stay good where no command can make one.
	write(t, base, map[string]string{"home/skills/mine": "-> " + base + "/ws/other", "home/skills/far": "-> " + base + "/ws/sk/out"})
	if r := open(t, hostRoot(t, base+"/home/skills", base+"/ws")); names(r) != "other" {
		t.Errorf("links from outside: %s, %s", names(r), messages(r.Diagnostics()))
	}
}

// TestSkillBecomesALink: a skill directory, or the root, that a command replaces
// by a link is unknown from then on.
func TestSkillBecomesALink(t *testing.T) {
	for _, replaced := range []string{"ws/sk/s", "ws/sk"} {
		base := realTempDir(t)
		write(t, base, map[string]string{"ws/sk/s/SKILL.md": md("s", "d"), "secret/SKILL.md": md("s", "stolen"), "secret/s/SKILL.md": md("s", "stolen"), "secret/key": "KEY"})
		r := open(t, hostRoot(t, base+"/ws/sk", base+"/ws"))
		before, ok := r.Get(t.Context(), "s")
		if !ok {
			t.Fatal("unknown")
		}
		if err := errors.Join(os.Rename(filepath.Join(base, replaced), base+"/ws/old"), os.Symlink(base+"/secret", filepath.Join(base, replaced))); err != nil {
			t.Fatal(err)
		}
		if _, err := before.Resource("key"); !errors.Is(err, ErrOutside) && err == nil {
			t.Errorf("%s: the old skill reads through the link", replaced)
		}
		if s, ok := r.Get(t.Context(), "s"); ok {
			t.Errorf("%s: loaded %s %q", replaced, s.RealDir, s.Description)
		}
		if got := messages(r.Diagnostics()); !strings.Contains(got, "outside") {
			t.Errorf("%s: %s", replaced, got)
		}
	}
}

// TestRootNamedThroughALink: the user's --skills may be a link in the workspace;
// where it led at the start counts.
func TestRootNamedThroughALink(t *testing.T) {
	base := realTempDir(t)
	write(t, base, map[string]string{"mine/s/SKILL.md": md("s", "d"), "ws/sk": "-> ../mine", "secret/x/SKILL.md": md("x", "d")})
	r := open(t, hostRoot(t, base+"/ws/sk", base+"/ws"))
	if names(r) != "s" {
		t.Fatalf("%s, %s", names(r), messages(r.Diagnostics()))
	}
	if err := errors.Join(os.Remove(base+"/ws/sk"), os.Symlink(base+"/secret", base+"/ws/sk")); err != nil {
		t.Fatal(err)
	}
	if err := r.refresh(t.Context(), r.snap.Load().started.Add(1)); err != nil || names(r) != "s" {
		t.Errorf("after the link was changed: %s %v", names(r), err)
	}
}

// TestReservedDirectory: a link put in the place of a directory of a skill in the
// workspace does not lead into the directory that is not for tools.
func TestReservedDirectory(t *testing.T) {
	base := realTempDir(t)
	write(t, base, map[string]string{
		"skills/s/SKILL.md": md("s", "d"), "skills/s/d/f": "inside", "l": "-> ../../perstack", "perstack/f": "RESERVED",
	})
	files, err := files.Open(base, sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	sw := &swapper{ReadLinkFS: files.Tree(), file: "s/d/f"}
	s := open(t, Root{FS: sw, Path: "skills", Dir: base + "/skills"}).List()[0]
	sw.swap = func() { exchange(t, filepath.Join(base, "skills/s/d"), filepath.Join(base, "l")) }
	f, err := s.Resource("d/f")
	if err != nil {
		t.Fatal(err)
	}
	if content, err := s.ReadFile(f, 100); err == nil {
		t.Errorf("the link was followed: %q", content)
	}
	if through, err := os.ReadFile(filepath.Join(base, "skills/s/d/f")); string(through) != "RESERVED" {
		t.Errorf("the link leads nowhere (%v), so this test proves nothing", err)
	}
}
