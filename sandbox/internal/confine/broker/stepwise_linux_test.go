//go:build amd64 || arm64

package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenStepwise: without openat2 a path leads where it leads with it, or fails alike.
func TestOpenStepwise(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "a/b"), 0o755), os.WriteFile(filepath.Join(dir, "a/file"), nil, 0o644),
		os.Symlink("a/b", filepath.Join(dir, "relative")), os.Symlink(filepath.Join(dir, "a"), filepath.Join(dir, "absolute")),
		os.Symlink("../file", filepath.Join(dir, "a/b/up")), os.Symlink("nowhere", filepath.Join(dir, "dangling")),
		os.Symlink("loop", filepath.Join(dir, "loop")), os.Symlink("relative/up", filepath.Join(dir, "twice")),
		os.Symlink("a/file/", filepath.Join(dir, "slash")), os.Symlink("/proc/self/cwd", filepath.Join(dir, "magic")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	start, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(start)
	paths := strings.Fields(". a a/ a/b a/b/ a/file a/file/ a/file/x a//b/../file a/./b/.. relative relative/ relative/up absolute/b/up " +
		"dangling dangling/ loop loop/x twice twice/ slash missing missing/x .. ../.. / /../usr /proc/self/cwd /proc/self/fd/0 /proc/self/cwd/x magic magic/a /proc")
	for _, path := range append(paths, "", dir, filepath.Join(dir, "absolute", "file"), strings.Repeat("n", 300)) {
		for _, follow := range []bool{true, false} {
			how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
			if !follow {
				how.Flags |= unix.O_NOFOLLOW
			}
			fd, err := unix.Openat2(start, path, &how)
			if err == unix.ENOSYS {
				t.Skip("this kernel has no openat2 to compare with")
			}
			want, wantErr := where(t, fd, err)
			if strings.HasPrefix(want, "/proc/") { // by a plain link of /proc: of whom that tells
				want, wantErr = "", unix.ELOOP
			}
			fd, err = openStepwise(start, path, follow)
			got, gotErr := where(t, fd, err)
			if got != want || gotErr != wantErr {
				t.Errorf("%q, follow %v: %q %v instead of %q %v", path, follow, got, gotErr, want, wantErr)
			}
		}
	}
}

// where tells what a descriptor leads to, and closes it.
func where(t *testing.T, fd int, err error) (string, error) {
	t.Helper()
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		t.Fatal(err)
	}
	return link, nil
}
