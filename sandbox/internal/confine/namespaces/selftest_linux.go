//go:build amd64 || arm64

package namespaces

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/selftest"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// Status tries out what the namespaces promise, once: forbidden calls are made
// outside, where they must succeed, and in a cell, where they must fail.
func (i *Isolator) Status() selftest.Status { return i.status() }

// SelfTest is Status as an error: nil when commands are confined.
func (i *Isolator) SelfTest() error { return i.Status().Failure() }

func (i *Isolator) selfTest() selftest.Status {
	s := selftest.Status{Tier: selftest.Namespaces, LandlockABI: i.kernel.Landlock}
	canary, cleanup := selftest.Canary(i.policy)
	defer cleanup()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return s.Unproven(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	var free selftest.Results
	outside := make(chan error, 1)
	go func() {
		var err error
		free, err = selftest.Outside(canary, unix.AF_INET)
		free.Socket = connectTo(listener.Addr().String())
		outside <- err
	}()
	caged, kill, err := i.probe(canary, port)
	if err := errors.Join(<-outside, err); err != nil {
		return s.Unproven(err)
	}
	s.Seccomp = caged.Mode == unix.SECCOMP_MODE_FILTER
	s.Files = selftest.Verdict("read "+canary, free.Read, caged.Read)
	s.Network = selftest.Verdict("connect to a port of the server", free.Socket, caged.Socket)
	switch {
	case i.policy.Network:
		s.Network = i.openNetwork()
	case i.Way != nil:
		s.Network = i.Way.Proof(s.Network, caged.Beyond)
	}
	s.Signals = selftest.Verdict("signal a process outside", free.Signal, caged.Signal)
	s.Kill = kill
	return s
}

// openNetwork is what the network promises when it is open: not the abstract Unix
// sockets of other programs, which belong to it. Below ABI 6 nothing keeps commands
// from these.
func (i *Isolator) openNetwork() selftest.Check {
	if i.kernel.Landlock < 6 {
		return selftest.Check{Detail: "with the network open, commands could reach the abstract Unix sockets of other programs; to refuse these takes Landlock ABI 6 (Linux 6.12)"}
	}
	return selftest.Check{Proven: true, Detail: "open by --network allow"}
}

func connectTo(address string) unix.Errno {
	conn, err := net.DialTimeout("tcp4", address, time.Second)
	if err != nil {
		return unix.ECONNREFUSED
	}
	conn.Close()
	return 0
}

// A cellProbe is a leader that makes the forbidden calls instead of executing a
// program, and leaves a process behind.
type cellProbe struct{ connect, beyond, read, signal, mode *kernel.Call }

func (i *Isolator) writeProbe(r *CellRun, canary string, port, victim int) (p cellProbe, first *kernel.Call) {
	place := func(at netip.AddrPort) uintptr {
		address := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: at.Addr().As4()}
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&address.Port))[:], at.Port())
		return pointer(r.arena, address)
	}
	const sock = 3 // the first descriptor when all but the streams are closed
	cwd := unix.AT_FDCWD
	p = cellProbe{
		connect: r.Add(unix.SYS_CONNECT, sock, place(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))), unix.SizeofSockaddrInet4),
		beyond:  r.Add(unix.SYS_CONNECT, sock, place(i.Way.Unnamed()), unix.SizeofSockaddrInet4),
		read:    r.Add(unix.SYS_OPENAT, uintptr(cwd), r.text(canary), unix.O_RDONLY),
		signal:  r.Add(unix.SYS_KILL, uintptr(victim), 0),
		mode:    r.Add(unix.SYS_PRCTL, unix.PR_GET_SECCOMP),
	}
	fork := r.must(unix.SYS_CLONE, unix.CLONE_VM|uintptr(unix.SIGCHLD), 0)
	steps := append(i.leader(r, "/"),
		r.must(unix.SYS_CLOSE_RANGE, sock, kernel.MaxDescriptor),
		r.must(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0),
		p.connect, p.beyond, p.read, p.signal, p.mode, fork)
	chain(steps...)
	fork.OrElse = r.Add(unix.SYS_SETSID)
	fork.OrElse.Then(r.Add(unix.SYS_PPOLL))
	return p, steps[0]
}

// probe makes the forbidden calls in a cell and tries to end what they left.
func (i *Isolator) probe(canary string, port int) (p selftest.Results, kill selftest.Check, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return p, kill, err
	}
	defer null.Close()
	victim, end, err := bystand()
	if err != nil {
		return p, kill, err
	}
	defer end()
	i.Keeper.Starting.Lock()
	defer i.Keeper.Starting.Unlock()
	var calls cellProbe
	c, err := i.StartCalls([3]uintptr{null.Fd(), null.Fd(), null.Fd()}, nil, nil, func(r *CellRun) (first *kernel.Call) {
		calls, first = i.writeProbe(r, canary, port, victim)
		return first
	})
	if err != nil {
		return p, kill, err
	}
	c.Wait()
	p = selftest.Results{Read: calls.read.Errno(), Socket: calls.connect.Errno(), Beyond: calls.beyond.Errno(), Signal: calls.signal.Errno(), Mode: int(calls.mode.Ret)}
	return p, c.tryKill(), nil
}

// tryKill proves that killing a cell leaves nobody.
func (c *Cell) tryKill() selftest.Check {
	left, err := c.members()
	if err != nil {
		return selftest.Check{Detail: "the processes of a command cannot be listed: " + err.Error()}
	}
	if err := c.Kill(); err != nil {
		return selftest.Check{Detail: "killing a command: " + err.Error()}
	}
	for _, m := range left {
		if err := c.isolator.Keeper.signal(m.PID, 0); err != unix.ESRCH {
			return selftest.Check{Detail: fmt.Sprintf("process %d outlived its command (%v)", m.PID, err)}
		}
	}
	if len(left) == 0 {
		return selftest.Check{Detail: "there was no process left to kill"}
	}
	return selftest.Check{Proven: true, Detail: "process namespace"}
}

// lowIDs are those that the first processes of a session have.
const lowIDs = 16

// bystand starts a process that waits to be signalled, outside of every session,
// and whose id nobody has inside.
func bystand() (pid int, end func(), err error) {
	pause := &kernel.Call{Nr: unix.SYS_PPOLL}
	var pin runtime.Pinner
	pin.Pin(pause)
	if pid, err = kernel.Spawn(unix.CLONE_VM, pause); err != nil {
		pin.Unpin()
		return 0, nil, err
	}
	end = func() {
		_ = proc.Signal(pid, unix.SIGKILL)
		kernel.ReapClone(pid)
		pin.Unpin()
	}
	if pid <= lowIDs {
		defer end()
		return bystand()
	}
	return pid, end, nil
}
