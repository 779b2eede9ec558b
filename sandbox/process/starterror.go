package process

import (
	"errors"
	"io/fs"
	"syscall"
)

// startError words what the system said when the program was to be started.
func startError(c *Command, l launch, err error) error {
	if dirErr := checkDir(l.Dir); dirErr != nil {
		return dirErr // it vanished meanwhile
	}
	known := []struct{ system, ours error }{
		{syscall.ENOEXEC, ErrBadFormat}, {syscall.E2BIG, ErrArgsTooLong},
		{syscall.ENAMETOOLONG, ErrNoProgram}, {fs.ErrNotExist, ErrNoProgram},
		{syscall.ENOTDIR, ErrNoProgram}, {fs.ErrPermission, ErrNotExecutable}, {syscall.EISDIR, ErrNotExecutable},
	}
	for _, k := range known {
		if ofProgram(err) && errors.Is(err, k.system) {
			err = k.ours
			break
		}
	}
	refused := ""
	if l.cage != nil && (errors.Is(err, ErrNotExecutable) || errors.Is(err, ErrNoProgram)) {
		if refused = l.cage.explainProgram(l.Path); refused != "" {
			err = ErrNotExecutable // it was found, but where commands do not see it
		}
	}
	return &StartError{Command: c.Name, What: c.Name, Err: err, Refused: refused}
}

// ofProgram reports whether an error is the system's answer to the program itself: what
// failed before it was tried says so, and is not to be taken for a fault of the program.
func ofProgram(err error) bool {
	_, plain := err.(syscall.Errno)
	path, ofStart := err.(*fs.PathError) // of os.StartProcess
	return plain || ofStart && path.Op == "fork/exec"
}
