package sandbox

import (
	"errors"
	"io/fs"
	"syscall"
)

// explain turns what the system said about name into a *PathError: facts in our
// words, no path of the host. denied is what a refused permission means here.
func explain(name string, err, denied error) error {
	var ours *PathError
	if err == nil || errors.As(err, &ours) {
		return err
	}
	e := &PathError{Path: name, Err: reason(err)}
	switch {
	case errors.Is(err, escapeError()):
		e.Err = ErrEscapes
	case errors.Is(err, syscall.ELOOP):
		e.Err = ErrLinkLoop
	case errors.Is(err, syscall.ENAMETOOLONG):
		e.Err, e.Detail = ErrBadPath, "is too long"
	case errors.Is(err, syscall.EISDIR):
		e.Err = ErrIsDirectory
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		e.Err = fs.ErrNotExist
	case errors.Is(err, syscall.EAGAIN):
		e.Err = ErrLeased
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Err = denied
	}
	return e
}
