//go:build amd64 || arm64

package kernel

import (
	"os"
	"testing"
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
	"golang.org/x/sys/unix"
)

// TestReadMemory: both ways to read a process's memory give the same, also where
// memory ends in the middle and where there is none.
func TestReadMemory(t *testing.T) {
	page := os.Getpagesize()
	mem, err := unix.MmapPtr(-1, 0, nil, uintptr(2*page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	filetest.Must(t, err)
	filetest.Must(t, unix.MunmapPtr(unsafe.Add(mem, page), uintptr(page)))
	defer func() { filetest.Must(t, unix.MunmapPtr(mem, uintptr(page))) }()
	copy(unsafe.Slice((*byte)(mem), page)[page-4:], "text")
	end := uint64(uintptr(mem)) + uint64(page)
	for _, way := range []struct {
		name string
		read func(pid int, from uint64, to []byte) (int, error)
	}{{"by call", readMemoryCall}, {"by file", readMemoryFile}} {
		for _, c := range []struct {
			name  string
			pid   int
			from  uint64
			bytes int
			want  string
		}{
			{"all of it", os.Getpid(), end - 4, 4, "text"},
			{"beyond the end", os.Getpid(), end - 3, 8, "ext"},
			{"nothing there", os.Getpid(), 1, 4, ""},
			{"beyond any address", os.Getpid(), 1 << 63, 4, ""},
			{"no such process", 1<<22 + 1, end - 4, 4, ""},
		} {
			to := make([]byte, c.bytes)
			n, err := way.read(c.pid, c.from, to)
			if string(to[:max(n, 0)]) != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%s, %s: got %q (%v), want %q", way.name, c.name, to[:max(n, 0)], err, c.want)
			}
		}
	}
}

// TestCanReadMemory: the child of the trial is one that we may read, although we
// are undumpable and it begins as our copy.
func TestCanReadMemory(t *testing.T) {
	filetest.Must(t, PrepareProcess())
	if !canReadMemoryFile() {
		t.Error("the file of a dumpable child cannot be read")
	}
}
