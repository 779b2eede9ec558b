//go:build linux

package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
)

// TestBadCache: what a command has put in the place of a tool's directory does not
// outlive its session, and nothing beyond the cache is touched.
func TestBadCache(t *testing.T) {
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		filetest.OwnCaches(t)
		dir, away := t.TempDir(), t.TempDir()
		filetest.Put(t, filepath.Join(away, "kept"), "kept")
		first := shell(t, Config{Dir: dir})
		if res := run(t, first, sh(`cd "${GOCACHE%/*}" && rm -rf go-build pip && echo no directory > go-build && ln -s `+away+` pip`)); res.ExitCode != 0 {
			t.Fatalf("%s", res.Stderr.Head)
		}
		if err := first.c.Close(); err != nil {
			t.Fatal(err)
		}
		res := run(t, shell(t, Config{Dir: dir}), sh(`mkdir -p "$GOCACHE" "$PIP_CACHE_DIR" && echo x > "$GOCACHE/x" && echo x > "$PIP_CACHE_DIR/x" && echo works`))
		if string(res.Stdout.Head) != "works\n" {
			t.Errorf("the next server's commands: %s %s", res.Stdout.Head, res.Stderr.Head)
		}
		if entries, err := os.ReadDir(away); err != nil || len(entries) != 1 {
			t.Errorf("a link out of the cache was followed: %v %v", entries, err)
		}
	})
}

// TestFullDisk: where the cache's disk is full, commands run without one, and nothing of
// the workspace's is lost.
func TestFullDisk(t *testing.T) {
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		filetest.OwnCaches(t)
		full := os.Getenv("XDG_CACHE_HOME")
		if err := unix.Mount("full", full, "tmpfs", 0, "size=64k,nr_inodes=4"); err != nil {
			t.Skip("nothing can be mounted: ", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(full, unix.MNT_DETACH) })
		fill := strings.Repeat("x", 64<<10)
		_ = os.WriteFile(filepath.Join(full, "fills it"), []byte(fill), 0o600) // fails in the end
		if err := os.WriteFile(filepath.Join(full, "more"), []byte("x"), 0o600); err == nil {
			t.Fatal("the disk is not full: the test proves nothing")
		}
		dir := t.TempDir()
		filetest.Put(t, filepath.Join(dir, "file"), "before")
		res := run(t, shell(t, Config{Dir: dir}), sh("cat file && echo after > file && cat file && mkdir -p ~/.cache && echo x > ~/.cache/x"))
		if string(res.Stdout.Head) != "beforeafter\n" || res.ExitCode != 0 {
			t.Errorf("commands say %q %s", res.Stdout.Head, res.Stderr.Head)
		}
	})
}

// TestTwoServersOfAWorkspace: they share the cache, but neither TMPDIR nor HOME, and the
// end of one takes nothing from the other.
func TestTwoServersOfAWorkspace(t *testing.T) {
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		filetest.OwnCaches(t)
		dir := t.TempDir()
		one, two := shell(t, Config{Dir: dir}), shell(t, Config{Dir: dir})
		res := run(t, one, sh(`mkdir -p "$GOCACHE" && echo of one > "$GOCACHE/it" && echo private > "$TMPDIR/it" && echo private > ~/it && echo "$TMPDIR" && cd && pwd`))
		private := strings.Fields(string(res.Stdout.Head))
		if len(private) != 2 {
			t.Fatalf("%s %s", res.Stdout.Head, res.Stderr.Head)
		}
		if res := run(t, two, sh(`cat "$GOCACHE/it" && echo of two > "$GOCACHE/two"`)); string(res.Stdout.Head) != "of one\n" {
			t.Errorf("the other finds %q %s", res.Stdout.Head, res.Stderr.Head)
		}
		for _, at := range private {
			if res := run(t, two, sh("cat "+at+"/it")); res.ExitCode == 0 {
				t.Errorf("the other reads %s", at)
			}
		}
		if err := one.c.Close(); err != nil {
			t.Fatal(err)
		}
		if res := run(t, two, sh(`cat "$GOCACHE/it" "$GOCACHE/two" && echo x > "$TMPDIR/x" && echo x > ~/x`)); string(res.Stdout.Head) != "of one\nof two\n" || res.ExitCode != 0 {
			t.Errorf("when one has ended: %q %s", res.Stdout.Head, res.Stderr.Head)
		}
	})
}

// TestMovedWorkspace: a directory that takes the place of another gets nothing of its
// cache, neither while a server of the other runs nor later; the one that has moved works.
func TestMovedWorkspace(t *testing.T) {
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		filetest.OwnCaches(t)
		top := t.TempDir()
		dir, moved := filepath.Join(top, "ws"), filepath.Join(top, "moved")
		filetest.Put(t, filepath.Join(dir, "file"), "kept")
		first := shell(t, Config{Dir: dir})
		const leave = `mkdir -p "$GOCACHE" && echo poison > "$GOCACHE/it"`
		const look = `mkdir -p "${GOCACHE:-$HOME}" && cat "${GOCACHE:-$HOME}/it"`
		if res := run(t, first, sh(leave)); res.ExitCode != 0 {
			t.Fatalf("%s", res.Stderr.Head)
		}
		if err := os.Rename(dir, moved); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		other := shell(t, Config{Dir: dir})
		if res := run(t, other, sh(look)); res.ExitCode == 0 {
			t.Errorf("another workspace at the path finds %q while the first one is served", res.Stdout.Head)
		}
		for _, s := range []*Shell{first, other} {
			if err := s.c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if res := run(t, shell(t, Config{Dir: dir}), sh(look)); res.ExitCode == 0 {
			t.Errorf("another workspace at the path finds %q", res.Stdout.Head)
		}
		if res := run(t, shell(t, Config{Dir: moved}), sh("cat file; "+leave)); string(res.Stdout.Head) != "kept" || res.ExitCode != 0 {
			t.Errorf("the moved one: %q %s", res.Stdout.Head, res.Stderr.Head)
		}
	})
}
