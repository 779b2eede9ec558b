//go:build amd64 || arm64

package listeners

import (
	"encoding/binary"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// A Name is what the kernel finds an abstract socket by: all bytes of its
// name from the leading NUL on, and its type, as each type has names of its own.
type Name struct {
	Type int
	Text string
}

// Names are the abstract Unix sockets on which the session listens, each
// with its inode.
type Names struct {
	mu    sync.Mutex
	inode map[Name]uint64
	many  int // with how many the dead are forgotten
}

// Add remembers a listening socket if its name is abstract.
func (a *Names) Add(sock int) {
	name, ino, ok := nameOf(sock)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inode == nil {
		a.inode = map[Name]uint64{}
	}
	if len(a.inode) >= max(a.many, fewNames) {
		alive := unixInodes()
		maps.DeleteFunc(a.inode, func(_ Name, ino uint64) bool { return !alive[ino] })
		a.many = 2 * len(a.inode)
	}
	a.inode[name] = ino
}

// fewNames may be kept without asking which of them still exist.
const fewNames = 64

// unixInodes are all Unix sockets of the machine.
func unixInodes() map[uint64]bool {
	table, _ := os.ReadFile("/proc/net/unix")
	inodes := map[uint64]bool{}
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) >= 7 {
			ino, _ := strconv.ParseUint(f[6], 10, 64)
			inodes[ino] = true
		}
	}
	return inodes
}

// nameOf reads the name as the kernel has it: what package unix makes of
// it ends at the next NUL, and looks like that of a path that begins with '@'.
func nameOf(sock int) (name Name, inode uint64, ok bool) {
	var raw [unix.SizeofSockaddrAny]byte
	size := uint32(len(raw))
	_, _, e := unix.Syscall(unix.SYS_GETSOCKNAME, uintptr(sock),
		uintptr(unsafe.Pointer(&raw[0])), uintptr(unsafe.Pointer(&size)))
	var st unix.Stat_t
	if e != 0 || size <= 2 || int(size) > len(raw) || binary.NativeEndian.Uint16(raw[:]) != unix.AF_UNIX ||
		raw[2] != 0 || unix.Fstat(sock, &st) != nil {
		return Name{}, 0, false
	}
	return Name{Type: kernel.SocketType(sock), Text: string(raw[2:size])}, st.Ino, true
}

// Has reports whether the name still belongs to a socket of the session.
func (a *Names) Has(name Name) bool {
	a.mu.Lock()
	ino, known := a.inode[name]
	a.mu.Unlock()
	return known && unixInodes()[ino]
}
