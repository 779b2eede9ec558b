//go:build amd64 || arm64

package confine

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// Status tries out what the namespaces promise, once: forbidden calls are made
// outside, where they must succeed, and in a cell, where they must fail.
func (i *Isolator) Status() Status { return i.status() }

// SelfTest is Status as an error: nil when commands are confined.
func (i *Isolator) SelfTest() error { return i.Status().failure() }

func (i *Isolator) selfTest() Status {
	s := Status{Tier: Namespaces, LandlockABI: i.kernel.Landlock}
	canary, cleanup := canaryFile(i.policy)
	defer cleanup()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return s.unproven(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	free, err := probeOutside(canary, unix.AF_INET)
	if err != nil {
		return s.unproven(err)
	}
	free.socket = connectTo(listener.Addr().String())
	caged, kill, err := i.probe(canary, port)
	if err != nil {
		return s.unproven(err)
	}
	s.Seccomp = caged.mode == unix.SECCOMP_MODE_FILTER
	s.Files = verdict("read "+canary, free.read, caged.read)
	s.Network = verdict("connect to a port of the server", free.socket, caged.socket)
	switch {
	case i.policy.Network:
		s.Network = i.openNetwork()
	case i.way != nil:
		s.Network = i.way.proof(s.Network, caged.beyond)
	}
	s.Signals = verdict("signal a process outside", free.signal, caged.signal)
	s.Kill = kill
	return s
}

// openNetwork is what the network promises when it is open: not the abstract Unix
// sockets of other programs, which belong to it. Below ABI 6 nothing keeps commands
// from these.
func (i *Isolator) openNetwork() Check {
	if i.kernel.Landlock < 6 {
		return Check{Detail: "with the network open, commands could reach the abstract Unix sockets of other programs; to refuse these takes Landlock ABI 6 (Linux 6.12)"}
	}
	return Check{Proven: true, Detail: "open by --network allow"}
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
type cellProbe struct{ connect, beyond, read, signal, mode *call }

func (i *Isolator) writeProbe(r *cellRun, canary string, port, victim int) (p cellProbe, first *call) {
	place := func(at netip.AddrPort) uintptr {
		address := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: at.Addr().As4()}
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&address.Port))[:], at.Port())
		return pointer(r.arena, address)
	}
	const sock = 3 // the first descriptor when all but the streams are closed
	cwd := unix.AT_FDCWD
	p = cellProbe{
		connect: r.add(unix.SYS_CONNECT, sock, place(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))), unix.SizeofSockaddrInet4),
		beyond:  r.add(unix.SYS_CONNECT, sock, place(i.way.unnamed()), unix.SizeofSockaddrInet4),
		read:    r.add(unix.SYS_OPENAT, uintptr(cwd), r.text(canary), unix.O_RDONLY),
		signal:  r.add(unix.SYS_KILL, uintptr(victim), 0),
		mode:    r.add(unix.SYS_PRCTL, unix.PR_GET_SECCOMP),
	}
	fork := r.must(unix.SYS_CLONE, unix.CLONE_VM|uintptr(unix.SIGCHLD), 0)
	steps := append(i.leader(r, "/"),
		r.must(unix.SYS_CLOSE_RANGE, sock, maxDescriptor),
		r.must(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0),
		p.connect, p.beyond, p.read, p.signal, p.mode, fork)
	chain(steps...)
	fork.orElse = r.add(unix.SYS_SETSID)
	fork.orElse.then(r.add(unix.SYS_PPOLL))
	return p, steps[0]
}

// probe makes the forbidden calls in a cell and tries to end what they left.
func (i *Isolator) probe(canary string, port int) (p probes, kill Check, err error) {
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
	i.keeper.starting.Lock()
	defer i.keeper.starting.Unlock()
	var calls cellProbe
	c, err := i.start([3]uintptr{null.Fd(), null.Fd(), null.Fd()}, nil, nil, func(r *cellRun) (first *call) {
		calls, first = i.writeProbe(r, canary, port, victim)
		return first
	})
	if err != nil {
		return p, kill, err
	}
	c.Wait()
	p = probes{read: calls.read.errno(), socket: calls.connect.errno(), beyond: calls.beyond.errno(), signal: calls.signal.errno(), mode: int(calls.mode.ret)}
	return p, c.tryKill(), nil
}

// tryKill proves that killing a cell leaves nobody.
func (c *Cell) tryKill() Check {
	left, err := c.members()
	if err != nil {
		return Check{Detail: "the processes of a command cannot be listed: " + err.Error()}
	}
	if err := c.Kill(); err != nil {
		return Check{Detail: "killing a command: " + err.Error()}
	}
	for _, m := range left {
		if err := c.isolator.keeper.signal(m.pid, 0); err != unix.ESRCH {
			return Check{Detail: fmt.Sprintf("process %d outlived its command (%v)", m.pid, err)}
		}
	}
	if len(left) == 0 {
		return Check{Detail: "there was no process left to kill"}
	}
	return Check{Proven: true, Detail: "process namespace"}
}

// lowIDs are those that the first processes of a session have.
const lowIDs = 16

// bystand starts a process that waits to be signalled, outside of every session,
// and whose id nobody has inside.
func bystand() (pid int, end func(), err error) {
	pause := &call{nr: unix.SYS_PPOLL}
	var pin runtime.Pinner
	pin.Pin(pause)
	if pid, err = spawn(unix.CLONE_VM, pause); err != nil {
		pin.Unpin()
		return 0, nil, err
	}
	end = func() {
		_ = proc.Signal(pid, unix.SIGKILL)
		reapClone(pid)
		pin.Unpin()
	}
	if pid <= lowIDs {
		defer end()
		return bystand()
	}
	return pid, end, nil
}
