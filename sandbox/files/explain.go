package files

import (
	"errors"
	"github.com/perstack-ai/perstack-base/sandbox"
	"io/fs"
	"syscall"
)

// explain turns what the system said about name into a *PathError: facts in our
// words, no path of the host. denied is what a refused permission means here.
func explain(name string, err, denied error) error {
	var ours *sandbox.PathError
	if err == nil || errors.As(err, &ours) {
		return err
	}
	e := &sandbox.PathError{Path: name, Err: sandbox.Reason(err)}
	switch {
	case errors.Is(err, escapeError()):
		e.Err = sandbox.ErrEscapes
	case errors.Is(err, syscall.ELOOP):
		e.Err = sandbox.ErrLinkLoop
	case errors.Is(err, syscall.ENAMETOOLONG):
		e.Err, e.Detail = sandbox.ErrBadPath, "is too long"
	case errors.Is(err, syscall.EISDIR):
		e.Err = sandbox.ErrIsDirectory
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		e.Err = fs.ErrNotExist
	case errors.Is(err, syscall.EAGAIN):
		e.Err = sandbox.ErrLeased
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Err = denied
	}
	return e
}
