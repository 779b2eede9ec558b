//go:build amd64 || arm64

package confine

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// connectMany has many connects wait at once, on a server that accepts nobody: by
// TCP and by a Unix socket, half of them with a time limit of their own.
func connectMany() error {
	const waiting = 60
	local := &unix.SockaddrUnix{Name: "full.sock"}
	servers := map[int]unix.Sockaddr{unix.AF_INET: &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}, unix.AF_UNIX: local}
	for domain, at := range servers {
		l, err := unix.Socket(domain, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if err := unix.Bind(l, at); err != nil {
			return err
		}
		if err := unix.Listen(l, 0); err != nil {
			return err
		}
		to, err := unix.Getsockname(l)
		if err != nil {
			return err
		}
		for i := range waiting {
			s, err := unix.Socket(domain, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			if i%2 == 0 {
				_ = unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 1000})
			}
			go func() { _ = unix.Connect(s, to) }()
		}
	}
	if err := os.WriteFile("up", nil, 0o600); err != nil {
		return err
	}
	select {}
}

// hangConnects has connects wait on a server that accepts nobody, and takes away
// the time limits that the broker sets for them.
func hangConnects() error {
	at := &unix.SockaddrUnix{Name: "full.sock"}
	l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(l, at); err != nil {
		return err
	}
	if err := unix.Listen(l, 0); err != nil {
		return err
	}
	var waiting []int
	for range 60 {
		s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		waiting = append(waiting, s)
		go func() { _ = unix.Connect(s, at) }()
	}
	for {
		for _, s := range waiting {
			_ = unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{})
		}
	}
}

// connectLoopback listens and connects on loopback, many times.
func connectLoopback() error {
	for range 128 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return err
		}
		conn.Close()
		l.Close()
	}
	return nil
}

// abstractAddress is that of the abstract socket of the scene.
func abstractAddress() []byte {
	return append([]byte{unix.AF_UNIX, 0, 0}, os.Getenv("PROBE_ABSTRACT")[1:]...)
}

// posing listens at an address that resembles another program's abstract one, and
// then connects to that.
func posing(kind int, at []byte) error {
	l, err := unix.Socket(unix.AF_UNIX, kind, 0)
	if err != nil {
		return err
	}
	if err := kernel.SockaddrCall(unix.SYS_BIND, l, at); err != nil {
		return err
	}
	if err := unix.Listen(l, 1); err != nil {
		return err
	}
	return dialTo("unix", "PROBE_ABSTRACT")()
}

// steerNetlink gives a netlink socket an address, or a peer.
func steerNetlink(call func(int, unix.Sockaddr) error, at unix.SockaddrNetlink) error {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	at.Family = unix.AF_NETLINK
	return call(s, &at)
}

// openQueue opens, or makes, a POSIX message queue of one byte.
func openQueue(name string, flags int) error {
	path := append([]byte(name), 0)
	attr := [8]uintptr{0, 1, 1} // struct mq_attr
	fd, _, e := unix.Syscall6(unix.SYS_MQ_OPEN, ptr(&path[0]), uintptr(flags), 0o600, ptr(&attr), 0, 0)
	if e != 0 {
		return e
	}
	return unix.Close(int(fd))
}

func unlinkQueue(name string) error {
	path := append([]byte(name), 0)
	return syscallErr(unix.SYS_MQ_UNLINK, ptr(&path[0]))
}

// otherIPC finds by its key an object that somebody else made.
func otherIPC(get uintptr, idVar string, args ...uintptr) error {
	key := uintptr(number(idVar + "_KEY"))
	return syscallErr(get, append([]uintptr{key}, args...)...)
}

func watchPath(path string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_CREATE)
	return err
}

// pidfdOwn ends a child by its descriptor.
func pidfdOwn() error {
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		return err
	}
	if err := pidfdSignal(child.Process.Pid, unix.SIGTERM); err != nil {
		return err
	}
	_ = child.Wait()
	if child.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGTERM {
		return errors.New("it ended otherwise")
	}
	return nil
}

func pidfdSignal(pid int, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

func pushInput() error {
	m, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	b := byte('x')
	return syscallErr(unix.SYS_IOCTL, uintptr(m), unix.TIOCSTI, uintptr(unsafe.Pointer(&b)))
}
