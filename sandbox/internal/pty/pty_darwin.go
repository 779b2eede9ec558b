package pty

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const getModes = unix.TIOCGETA

// Open makes a terminal.
func Open() (*Pair, error) {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	slave, err := unlock(master)
	if err != nil {
		unix.Close(master)
		return nil, err
	}
	return made(master, slave, -1), nil
}

func unlock(master int) (slave int, err error) {
	if err := unix.IoctlSetInt(master, unix.TIOCPTYGRANT, 0); err != nil {
		return -1, fmt.Errorf("grant a terminal: %w", err)
	}
	if err := unix.IoctlSetInt(master, unix.TIOCPTYUNLK, 0); err != nil {
		return -1, fmt.Errorf("unlock a terminal: %w", err)
	}
	name := make([]byte, 128) // as long as the request says
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(master), unix.TIOCPTYGNAME, uintptr(unsafe.Pointer(&name[0])))
	if e != 0 {
		return -1, fmt.Errorf("name of a terminal: %w", e)
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	if slave, err = unix.Open(string(name), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0); err != nil {
		err = fmt.Errorf("open a terminal: %w", err)
	}
	return slave, err
}
