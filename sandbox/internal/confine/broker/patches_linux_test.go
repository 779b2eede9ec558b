//go:build amd64 || arm64

package broker

import (
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
	"golang.org/x/sys/unix"
)

// TestPatchesBothWays: what the kernel tells of an address is what the text says.
func TestPatchesBothWays(t *testing.T) {
	page := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 5*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	filetest.Must(t, err)
	defer func() { filetest.Must(t, unix.Munmap(memory)) }()
	filetest.Must(t, unix.Mprotect(memory[2*page:3*page], unix.PROT_READ))
	filetest.Must(t, unix.Mprotect(memory[4*page:], unix.PROT_NONE))
	open := func() *os.File {
		maps, err := os.Open("/proc/self/maps")
		filetest.Must(t, err)
		t.Cleanup(func() { maps.Close() })
		return maps
	}
	told := 0
	for at := 0; at < len(memory); at += page / 2 {
		for _, size := range []int{0, 1, page / 2, page/2 + 1, page} {
			p := patch{uint64(uintptr(unsafe.Pointer(&memory[at]))), make([]byte, size)}
			want := anyReadOnly(open(), []patch{p})
			if got := forbidden(open(), []patch{{p.at, nil}, p}); got != want {
				t.Errorf("%d bytes at %d: %t, but the text says %t", size, at, got, want)
			}
			if _, known := forbiddenAt(open(), p); known {
				told++
			}
			if free := at+size <= 2*page || at >= 3*page && at+size <= 4*page || size == 0; want == free {
				t.Errorf("%d bytes at %d: %t", size, at, want)
			}
		}
	}
	if told == 0 {
		t.Log("this kernel tells nothing of an address")
	}
}

func TestPatchesWhereNothingMayBeWritten(t *testing.T) {
	const maps = "1000-3000 r--p 0 0:0 0 /a\n3000-5000 rw-p 0 0:0 0\n7000-8000 rw-s 0 0:0 0 /b c\n8000-9000 r-xp 0 0:0 0\nffffffffff600000-ffffffffff601000 --xp 0 0:0 0 [vsyscall]\n"
	b := make([]byte, 0x2000)
	for name, want := range map[string]struct {
		patches []patch
		no      bool
	}{
		"none":                      {nil, false},
		"in the midst":              {[]patch{{0x3000, b}}, false},
		"before":                    {[]patch{{0x2fff, b[:1]}}, true},
		"over the border":           {[]patch{{0x2fff, b[:2]}}, true},
		"out of the end":            {[]patch{{0x4fff, b}}, false}, // the write finds it
		"up to what is behind":      {[]patch{{0x7000, b[:0x1000]}}, false},
		"into what is behind":       {[]patch{{0x7000, b[:0x1001]}}, true},
		"nothing":                   {[]patch{{0x1000, nil}}, false},
		"the last of several":       {[]patch{{0x3000, b[:8]}, {0x4000, b[:8]}, {0x8000, b[:1]}}, true},
		"in any order":              {[]patch{{0x8000, b[:1]}, {0x4000, b[:8]}, {0x3000, b[:8]}}, true},
		"under another":             {[]patch{{0x3000, b}, {0x3800, b[:8]}, {0x7ffe, b[:2]}}, false},
		"beyond another":            {[]patch{{0x3000, b}, {0x3800, b[:8]}, {0x7fff, b[:2]}}, true},
		"at the end of all numbers": {[]patch{{^uint64(0), b[:9]}}, false}, // which no write takes
	} {
		if got := anyReadOnly(strings.NewReader(maps), want.patches); got != want.no {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !anyReadOnly(strings.NewReader("nonsense\n"), []patch{{1, b}}) {
		t.Error("nonsense is taken")
	}
}
