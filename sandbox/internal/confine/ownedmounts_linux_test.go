//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// TestMountsAreNobodys: it is not the filter alone that keeps commands from mounting. A
// process without filter and ruleset, in the namespaces of a command and with its
// capabilities, has no right over the mounts; with every capability it has.
func TestMountsAreNobodys(t *testing.T) {
	p := newPlace(t)
	i := p.isolator(t, true)
	_, cell := p.begin(t, i, nil, "/bin/sh", "-c", "echo up > up; exec sleep 1111")
	eventually(t, "it did not start", p.isUp)
	command := p.living()
	if len(command) == 0 {
		t.Fatal("the command is not there")
	}
	every := unix.CapUserData{Effective: ^uint32(0), Permitted: ^uint32(0)}
	if e := copyMounts(t, command[0], [2]unix.CapUserData{every, every}); e != 0 {
		t.Skipf("the mounts cannot be copied by who may: %v", e)
	}
	kept := unix.CapUserData{Effective: kernel.KeptCaps, Permitted: kernel.KeptCaps}
	if e := copyMounts(t, command[0], [2]unix.CapUserData{kept}); e != unix.EPERM {
		t.Errorf("a command's copy of the mounts: %v", e)
	}
	must(t, cell.Kill())
}

// TestCommandsOwnTheirMounts: the user namespace of commands is the one that their mounts
// belong to, and has the same ids as the session began with.
func TestCommandsOwnTheirMounts(t *testing.T) {
	p := newPlace(t)
	i := p.isolator(t, true)
	out, _ := p.inSh(t, i, "cat /proc/self/uid_map /proc/self/gid_map; id -u; touch made; stat -c %u:%g made")
	text, err := os.ReadFile("/proc/self/uid_map")
	must(t, err)
	uid := strconv.Itoa(os.Geteuid())
	want := fmt.Sprintf("%10s %10s %10d\n", uid, uid, 1)
	if os.Geteuid() == 0 {
		want = string(text)
	}
	groups := fmt.Sprintf("%10d %10d %10d\n", os.Getegid(), os.Getegid(), 1)
	if os.Geteuid() == 0 {
		text, err := os.ReadFile("/proc/self/gid_map")
		must(t, err)
		groups = string(text)
	}
	if want += groups + fmt.Sprintf("%s\n%s:%d\n", uid, uid, os.Getegid()); out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// copyMounts takes a copy of all mounts in the namespaces of a process, with
// capabilities.
func copyMounts(t *testing.T, pid int, caps [2]unix.CapUserData) unix.Errno {
	t.Helper()
	owner, err := unix.PidfdOpen(pid, 0)
	must(t, err)
	defer unix.Close(owner)
	root := []byte("/\x00")
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var pins runtime.Pinner
	defer pins.Unpin()
	at := func(p any, address unsafe.Pointer) uintptr { pins.Pin(p); return uintptr(address) }
	steps := []*kernel.Call{
		{Nr: unix.SYS_SETNS, Args: [6]uintptr{uintptr(owner), unix.CLONE_NEWUSER | unix.CLONE_NEWNS}, Must: 1},
		{Nr: unix.SYS_CAPSET, Args: [6]uintptr{at(&header, unsafe.Pointer(&header)), at(&caps, unsafe.Pointer(&caps))}, Must: 1},
		{Nr: unix.SYS_OPEN_TREE, Args: [6]uintptr{^uintptr(99), at(&root[0], unsafe.Pointer(&root[0])), unix.OPEN_TREE_CLONE | unix.AT_RECURSIVE}},
	}
	for n, c := range steps {
		pins.Pin(c)
		c.Ret = kernel.NotRun
		if n > 0 {
			steps[n-1].Then(c)
		}
	}
	child, err := kernel.Spawn(unix.CLONE_VM, steps[0])
	must(t, err)
	kernel.ReapClone(child)
	must(t, unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)) // what it became is memory that is ours
	for _, c := range steps[:2] {
		if e := c.Errno(); e != 0 {
			t.Skipf("system call %d: %v", c.Nr, e)
		}
	}
	return steps[2].Errno()
}
