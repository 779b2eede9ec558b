//go:build unix

package process

import "golang.org/x/sys/unix"

// openAtOnce has the opening of a named pipe that nobody reads fail and not wait.
const openAtOnce = unix.O_NONBLOCK
