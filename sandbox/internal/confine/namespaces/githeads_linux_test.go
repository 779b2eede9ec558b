//go:build amd64 || arm64

package namespaces

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
)

// TestHeadsAreMended: what git would not take for a repository any more is one again, and
// what git itself has changed stays.
func TestHeadsAreMended(t *testing.T) {
	dir := t.TempDir()
	git := filepath.Join(dir, "a/.git")
	for _, name := range gitData {
		filetest.Must(t, os.MkdirAll(filepath.Join(git, name), 0o755))
	}
	head := filepath.Join(git, "HEAD")
	root, err := os.OpenRoot(dir)
	filetest.Must(t, err)
	defer root.Close()
	h := &gitHeads{root: root}
	good := "ref: refs/heads/main\n"
	filetest.Must(t, os.WriteFile(head, []byte(good), 0o644))
	if err := h.keep([]string{git, "/elsewhere"}, unix.Timespec{}); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func() error{
		"removed":    func() error { return os.Remove(head) },
		"emptied":    func() error { return os.Truncate(head, 0) },
		"other text": func() error { return os.WriteFile(head, []byte("ref: elsewhere"), 0o644) },
		"short id":   func() error { return os.WriteFile(head, []byte("0123456789abcdef"), 0o644) },
		"a link":     func() error { return replaceByLink(head, "../config") },
		"a full directory": func() error {
			return os.MkdirAll(filepath.Join(head+".x", "y"), 0o755) // renamed below
		},
		"a named pipe": func() error {
			if err := os.Remove(head); err != nil {
				return err
			}
			return unix.Mkfifo(head, 0o600)
		},
		"closed":      func() error { return os.Chmod(git, 0) },
		"closed refs": func() error { return os.Chmod(filepath.Join(git, "refs"), 0o600) },
	} {
		filetest.Must(t, spoil())
		if name == "a full directory" {
			filetest.Must(t, os.Remove(head))
			filetest.Must(t, os.Rename(head+".x", head))
		}
		h.mend(mendTime)
		if text, err := os.ReadFile(head); string(text) != good {
			t.Errorf("%s: %q %v", name, text, err)
		}
		for _, path := range []string{git, filepath.Join(git, "refs")} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o700 != 0o700 {
				t.Errorf("%s: %s: %v %v", name, path, info, err)
			}
		}
	}
	for _, other := range []string{"ref:\trefs/heads/topic", "0123456789abcdef0123456789abcdef01234567\n"} {
		filetest.Must(t, os.WriteFile(head, []byte(other), 0o644))
		h.mend(mendTime)
		if text, _ := os.ReadFile(head); string(text) != other {
			t.Errorf("%q became %q", other, text)
		}
	}
	filetest.Must(t, replaceByLink(head, "refs/heads/old")) // as git wrote it once
	h.mend(mendTime)
	if to, _ := os.Readlink(head); to != "refs/heads/old" {
		t.Errorf("a link to a branch became %q", to)
	}
}

func replaceByLink(path, to string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.Symlink(to, path)
}

// TestLinksInManyDirectories: no link is missed among more directories than are held, in
// which others lie.
func TestLinksInManyDirectories(t *testing.T) {
	dir := t.TempDir()
	logs := filepath.Join(dir, ".git/logs")
	long := strings.Repeat("x", 200)
	const wide = 3 * maxNames / 200
	var links []string
	for i := range wide {
		at := filepath.Join(logs, fmt.Sprint(i, long), "a/b")
		filetest.Must(t, os.MkdirAll(at, 0o755))
		links = append(links, filepath.Join(at, "l"))
	}
	links = append(links, filepath.Join(logs, "l"), filepath.Join(logs, "0"+long, "l"))
	root, err := os.OpenRoot(dir)
	filetest.Must(t, err)
	defer root.Close()
	h := &gitHeads{root: root}
	filetest.Must(t, h.keep([]string{filepath.Join(dir, ".git")}, unix.Timespec{}))
	for _, link := range links {
		filetest.Must(t, os.Symlink("../elsewhere", link))
	}
	if !h.mend(mendTime) {
		t.Error("it did not come to the end")
	}
	for _, link := range links {
		if _, err := os.Lstat(link); err == nil {
			t.Errorf("%s is left", link)
		}
	}
	if h.mend(0) {
		t.Error("it came to the end in no time")
	}
}

// TestMendingEndsWithTheSession: who still looks at repositories when their session ends
// does not use what is closed then, whose number may be another directory's. The race
// detector sees that.
func TestMendingEndsWithTheSession(t *testing.T) {
	dir := t.TempDir()
	git := filepath.Join(dir, ".git")
	filetest.Must(t, os.MkdirAll(git, 0o755))
	filetest.Must(t, os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644))
	for range 20 {
		l, err := holdLocks(dir)
		filetest.Must(t, err)
		filetest.Must(t, l.heads.keep([]string{git}, unix.Timespec{}))
		begun, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for n := range 50 {
				l.mend(mendTime)
				if n == 0 {
					close(begun)
				}
			}
		}()
		<-begun
		l.release()
		<-ended
		filetest.Must(t, os.Symlink("/elsewhere", filepath.Join(git, "later")))
		l.mend(mendTime)
		filetest.Must(t, os.Remove(filepath.Join(git, "later")))
	}
}
