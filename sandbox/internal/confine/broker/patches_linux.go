//go:build amd64 || arm64

package broker

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"os"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A patch is what shall stand somewhere in the asker's memory.
type patch struct {
	at uint64
	b  []byte
}

func (p patch) end() uint64 { return p.at + uint64(len(p.b)) }

// number32 is a patch that is a number of 32 bits.
func number32(at uint64, n int) patch {
	return patch{at, binary.NativeEndian.AppendUint32(nil, uint32(n))}
}

// writeAll changes the asker's memory: that of the process which asked, should another
// have its id by then, which rules process_vm_writev(2) out. The file overrides that
// memory can only be read, so that is looked up, once for all: a command can have its
// memory consist of so many parts that it takes long.
func (q *Question) writeAll(patches []patch) bool {
	mem, err := unix.Open(q.inProc("mem"), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(mem)
	maps, err := os.Open(q.inProc("maps"))
	if err != nil {
		return false
	}
	defer maps.Close()
	if !q.valid() || forbidden(maps, patches) {
		return false
	}
	for _, p := range patches {
		n, err := unix.Pwrite(mem, p.b, int64(p.at))
		if err != nil || n != len(p.b) {
			return false
		}
	}
	return true
}

// forbidden reports whether some of what shall be changed is mapped, and not to be
// written. The kernel tells it of an address since 6.11, and before that of all memory.
func forbidden(maps *os.File, patches []patch) bool {
	for _, p := range patches {
		switch forbids, known := forbiddenAt(maps, p); {
		case !known:
			return anyReadOnly(maps, patches)
		case forbids:
			return true
		}
	}
	return false
}

// A mapQuery is struct procmap_query.
type mapQuery struct {
	size, flags, at, first, end, rights uint64
	_                                   [7]uint64
}

const (
	ioctlMapQuery = 0xc0686611 // PROCMAP_QUERY
	mapWritable   = 0x2        // PROCMAP_QUERY_VMA_WRITABLE
	mapAtOrBehind = 0x10       // PROCMAP_QUERY_COVERING_OR_NEXT_VMA
)

// forbiddenAt is forbidden for one; it is not known where the kernel does not tell it.
func forbiddenAt(maps *os.File, p patch) (forbids, known bool) {
	for at := p.at; at < p.end(); {
		query := mapQuery{size: uint64(unsafe.Sizeof(mapQuery{})), flags: mapAtOrBehind, at: at}
		_, _, e := unix.Syscall(unix.SYS_IOCTL, maps.Fd(), ioctlMapQuery, uintptr(unsafe.Pointer(&query)))
		switch {
		case e == unix.ENOENT || e == 0 && query.first >= p.end():
			return false, true
		case e != 0 || query.end <= at:
			return false, false
		case query.rights&mapWritable == 0:
			return true, true
		}
		at = query.end
	}
	return false, true
}

// anyReadOnly is forbidden by the text of maps, which has the parts of memory in their
// order.
func anyReadOnly(maps io.Reader, patches []patch) bool {
	left := slices.SortedFunc(slices.Values(patches), func(a, b patch) int { return cmp.Compare(a.at, b.at) })
	lines := bufio.NewScanner(maps)
	for len(left) > 0 && lines.Scan() {
		first, end, writable, ok := part(lines.Bytes())
		if !ok {
			return true
		}
		for len(left) > 0 && left[0].end() <= first {
			left = left[1:]
		}
		for i := 0; !writable && i < len(left) && left[i].at < end; i++ {
			if left[i].end() > first && len(left[i].b) > 0 {
				return true
			}
		}
	}
	return lines.Err() != nil
}

// part reads a line of maps, such as "7f0000000000-7f0000001000 rw-p ...".
func part(line []byte) (first, end uint64, writable, ok bool) {
	from, rest, ok := bytes.Cut(line, []byte{'-'})
	to, rest, ok2 := bytes.Cut(rest, []byte{' '})
	first, err := strconv.ParseUint(string(from), 16, 64)
	end, err2 := strconv.ParseUint(string(to), 16, 64)
	return first, end, len(rest) > 1 && rest[1] == 'w', ok && ok2 && err == nil && err2 == nil
}
