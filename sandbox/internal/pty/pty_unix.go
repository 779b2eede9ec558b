//go:build linux || darwin

package pty

import (
	"os"

	"golang.org/x/sys/unix"
)

// made wraps two descriptors. Ours never blocks a thread.
func made(master, slave, number int) *Pair {
	return &Pair{Master: os.NewFile(uintptr(master), "terminal"), Slave: os.NewFile(uintptr(slave), "terminal"), Number: number}
}

// Resize sets how many characters the terminal shows.
func (p *Pair) Resize(rows, columns uint16) error {
	return unix.IoctlSetWinsize(int(p.Slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
}

// ModesOf asks the master for the modes of its terminal.
func ModesOf(master *os.File) (modes Modes, known bool) {
	conn, err := master.SyscallConn()
	if err != nil {
		return modes, false
	}
	_ = conn.Control(func(fd uintptr) {
		t, err := unix.IoctlGetTermios(int(fd), getModes)
		if err != nil {
			return
		}
		modes, known = Modes{Lines: t.Lflag&unix.ICANON != 0, Echo: t.Lflag&unix.ECHO != 0}, true
	})
	return modes, known
}
