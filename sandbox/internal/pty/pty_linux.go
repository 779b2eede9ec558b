package pty

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const getModes = unix.TCGETS

// Open makes a terminal of the machine's.
func Open() (*Pair, error) { return open(unix.AT_FDCWD, "/dev/ptmx") }

// OpenIn makes one of the terminals that are shown in a directory, which is open.
func OpenIn(dir int) (*Pair, error) { return open(dir, "ptmx") }

func open(dir int, name string) (*Pair, error) {
	master, err := unix.Openat(dir, name, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	p, err := unlock(master, dir)
	if err != nil {
		unix.Close(master)
		return nil, err
	}
	return p, nil
}

// unlock opens the other end. It does so by the master: where that lies in a
// directory of its own, a name would lead to another terminal.
func unlock(master, dir int) (*Pair, error) {
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return nil, fmt.Errorf("unlock a terminal: %w", err)
	}
	number, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return nil, fmt.Errorf("number of a terminal: %w", err)
	}
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	slave, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, flags)
	if e == 0 {
		return made(master, int(slave), number), nil
	}
	if dir != unix.AT_FDCWD {
		return nil, fmt.Errorf("open a terminal: %w", e)
	}
	byName, err := unix.Open(Dir+strconv.Itoa(number), flags, 0) // systems that only look like Linux
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	return made(master, byName, number), nil
}

// NumberOf is the number of the terminal whose master is open, -1 when it is not.
func NumberOf(master *os.File) (number int) {
	number = -1
	conn, err := master.SyscallConn()
	if err != nil {
		return -1
	}
	_ = conn.Control(func(fd uintptr) {
		if n, err := unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err == nil {
			number = n
		}
	})
	return number
}

// Dir is where the kernel shows terminals by their numbers.
const Dir = "/dev/pts/"
