package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
)

// TestRemoveAllOfDeepTrees: a tree deeper than the process may have descriptors,
// with directories that nobody may enter, and names that get into the way.
func TestRemoveAllOfDeepTrees(t *testing.T) {
	dir := t.TempDir()
	levels := 5000
	if testlevel.Quick() {
		levels = 500 // more than descriptors
	}
	filetest.Must(t, os.Mkdir(filepath.Join(dir, "tree"), 0o700))
	at, err := unix.Open(filepath.Join(dir, "tree"), unix.O_PATH|unix.O_DIRECTORY, 0)
	filetest.Must(t, err)
	for i := range levels {
		filetest.Must(t, unix.Mkdirat(at, "d", 0o700))
		next, err := unix.Openat(at, "d", unix.O_PATH|unix.O_DIRECTORY, 0)
		filetest.Must(t, err)
		if i%100 == 0 {
			file, err := unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY, 0o600)
			filetest.Must(t, err)
			unix.Close(file)
			filetest.Must(t, unix.Symlinkat("/", at, "link"))
			filetest.Must(t, unix.Mkdirat(at, fmt.Sprintf("%s%d", TempPrefix, i), 0o700))
			filetest.Must(t, unix.Fchmodat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", at), 0, 0))
		}
		unix.Close(at)
		at = next
	}
	unix.Close(at)
	var old unix.Rlimit
	filetest.Must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	defer func() { filetest.Must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) }()
	filetest.Must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 256, Max: old.Max}))
	root, err := os.OpenRoot(dir)
	filetest.Must(t, err)
	defer root.Close()
	filetest.Must(t, RemoveAll(root, "tree"))
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	filetest.Must(t, RemoveAll(root, "tree")) // which is not there
}

func BenchmarkRemoveAll(b *testing.B) {
	dir := b.TempDir()
	root, err := os.OpenRoot(dir)
	filetest.Must(b, err)
	defer root.Close()
	for name, remove := range map[string]func() error{
		"ours": func() error { return RemoveAll(root, "t") },
		"os":   func() error { return root.RemoveAll("t") },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				for d := range 300 {
					at := filepath.Join(dir, "t", fmt.Sprint(d%20), fmt.Sprint(d))
					filetest.Must(b, os.MkdirAll(at, 0o700))
					for f := range 10 {
						filetest.Must(b, os.WriteFile(filepath.Join(at, fmt.Sprint(f)), nil, 0o600))
					}
				}
				b.StartTimer()
				filetest.Must(b, remove())
			}
		})
	}
}
