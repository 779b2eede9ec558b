//go:build amd64 || arm64

package namespaces

import (
	"fmt"
	"syscall"
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// An arena is memory that this process shares with a keeper and the processes
// that it makes: the calls they make, what those point to, and the results.
type arena struct {
	mem   []byte
	used  int
	calls []*kernel.Call
}

// arenaSize has room for the longest arguments and environment that the kernel
// takes (6 MB). Only what was written takes memory.
const arenaSize = 8 << 20

func newArena(size, sharing int) (*arena, error) {
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, sharing|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	return &arena{mem: mem}, nil
}

// free gives the memory back; nothing fits in any more.
func (a *arena) free() {
	if a != nil && a.mem != nil {
		_ = unix.Munmap(a.mem)
		a.mem = nil
	}
}

// reset forgets what was written after used.
func (a *arena) reset(used int) { a.used, a.calls = used, nil }

// full reports whether something did not fit; then nothing of it may be run.
func (a *arena) full() bool { return a.used > len(a.mem) }

// take finds room for n bytes.
func (a *arena) take(n int) unsafe.Pointer {
	at := (a.used + 7) &^ 7
	a.used = at + n
	if a.full() {
		return unsafe.Pointer(unsafe.SliceData(make([]uint64, n/8+1)))
	}
	return unsafe.Pointer(&a.mem[at])
}

// put copies a value into the arena.
func put[T any](a *arena, v T) *T {
	p := (*T)(a.take(int(unsafe.Sizeof(v))))
	*p = v
	return p
}

// pointer is put for an argument of a call.
func pointer[T any](a *arena, v T) uintptr { return address(put(a, v)) }

// text copies a string, which must not hold NUL.
func (a *arena) text(s string) uintptr {
	p := a.take(len(s) + 1)
	b := unsafe.Slice((*byte)(p), len(s)+1)
	copy(b, s)
	b[len(s)] = 0
	return uintptr(p)
}

// texts copies strings as execve(2) takes them.
func (a *arena) texts(list []string) uintptr {
	p := a.take(8 * (len(list) + 1))
	pointers := unsafe.Slice((*uintptr)(p), len(list)+1)
	for i, s := range list {
		pointers[i] = a.text(s)
	}
	pointers[len(list)] = 0
	return uintptr(p)
}

// slice copies the elements of s, of which there must be one.
func slice[T any](a *arena, s []T) *T {
	p := (*T)(a.take(len(s) * int(unsafe.Sizeof(s[0]))))
	copy(unsafe.Slice(p, len(s)), s)
	return p
}

// address is where p points to, which must be in an arena: there nothing moves.
func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// Add appends a call that nothing leads to yet.
func (a *arena) Add(nr uintptr, args ...uintptr) *kernel.Call {
	c := put(a, kernel.Call{Nr: nr, Ret: kernel.NotRun})
	copy(c.Args[:], args)
	a.calls = append(a.calls, c)
	return c
}

// must is add for a call without which nothing may follow.
func (a *arena) must(nr uintptr, args ...uintptr) *kernel.Call {
	c := a.Add(nr, args...)
	c.Must = 1
	return c
}

// failed is the first call that had to succeed and did not, nil when there is none.
func (a *arena) failed() *kernel.Call {
	for _, c := range a.calls {
		if c.Must == 1 && c.Errno() != 0 {
			return c
		}
	}
	return nil
}

// chain makes calls follow one another.
func chain(calls ...*kernel.Call) {
	for i := range calls[:len(calls)-1] {
		calls[i].Then(calls[i+1])
	}
}

// noNUL fails where the system would see the end of a string too early.
func noNUL(texts ...string) error {
	for _, s := range texts {
		if _, err := syscall.ByteSliceFromString(s); err != nil {
			return err
		}
	}
	return nil
}
