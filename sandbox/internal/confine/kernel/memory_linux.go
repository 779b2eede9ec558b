//go:build amd64 || arm64

package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ReadMemory copies memory of another process and returns how much it got. Some
// containers forbid the call that is made for it; the file in /proc stands
// behind the same check of the kernel.
func ReadMemory(pid int, from uint64, to []byte) int {
	n, err := readMemoryCall(pid, from, to)
	if err == unix.EPERM || err == unix.ENOSYS {
		n, err = readMemoryFile(pid, from, to)
	}
	if err != nil {
		return 0
	}
	return n
}

func readMemoryCall(pid int, from uint64, to []byte) (int, error) {
	local := []unix.Iovec{{Base: &to[0]}}
	local[0].SetLen(len(to))
	remote := []unix.RemoteIovec{{Base: uintptr(from), Len: len(to)}}
	return unix.ProcessVMReadv(pid, local, remote, 0)
}

func readMemoryFile(pid int, from uint64, to []byte) (int, error) {
	file, err := unix.Open(fmt.Sprintf("/proc/%d/mem", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(file)
	return unix.Pread(file, to, int64(from))
}

// canReadMemory tries the call on ourselves, and where it is forbidden the file
// on a child, because our own may be closed to us: we are undumpable.
func canReadMemory() bool {
	from, to := []byte{1}, []byte{0}
	var pin runtime.Pinner
	pin.Pin(&from[0])
	defer pin.Unpin()
	_, err := readMemoryCall(os.Getpid(), uint64(uintptr(unsafe.Pointer(&from[0]))), to)
	return err == nil && to[0] == 1 || canReadMemoryFile()
}

// A dumpableRun is the program of a process with a copy of our memory that lets
// itself be read, as commands do: it closes our end of the line, becomes
// dumpable, says so, and ends when the line does.
type dumpableRun [4]Call

func newDumpable(ours, its int) *dumpableRun {
	r := new(dumpableRun)
	buf := uintptr(unsafe.Pointer(&r[0])) // any readable byte; r is pinned
	r[0] = Call{Nr: unix.SYS_CLOSE, Args: [6]uintptr{uintptr(ours)}}
	r[1] = Call{Ret: NotRun, Nr: unix.SYS_PRCTL, Args: [6]uintptr{unix.PR_SET_DUMPABLE, 1}}
	r[2] = Call{Nr: unix.SYS_WRITE, Args: [6]uintptr{uintptr(its), buf, 1}}
	r[3] = Call{Nr: unix.SYS_READ, Args: [6]uintptr{uintptr(its), buf, 1}}
	for i := range r[:3] {
		r[i].Then(&r[i+1])
	}
	return r
}

// canReadMemoryFile reads in a child's copy of our memory what only the child
// wrote there.
func canReadMemoryFile() bool {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	r := newDumpable(pair[0], pair[1])
	var pin runtime.Pinner
	pin.Pin(r)
	defer pin.Unpin()
	pid, err := Spawn(0, &r[0])
	unix.Close(pair[1])
	if err != nil {
		unix.Close(pair[0])
		return false
	}
	defer ReapClone(pid)
	defer unix.Close(pair[0])
	said := make([]byte, 1)
	_ = IgnoringEINTR(func() error { _, err := unix.Read(pair[0], said); return err })
	ret := bytes.Repeat([]byte{NotRun}, 8)
	n, err := readMemoryFile(pid, uint64(uintptr(unsafe.Pointer(&r[1].Ret))), ret)
	return err == nil && n == len(ret) && binary.NativeEndian.Uint64(ret) == 0
}
