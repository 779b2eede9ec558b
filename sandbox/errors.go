package sandbox

import "errors"

// What can be wrong with a path, besides fs.ErrNotExist. Every error about a
// path is a *PathError that wraps one of these, so callers use errors.Is.
var (
	// ErrEscapes: the path, or a link on its way, leads out of the workspace.
	ErrEscapes = errors.New("outside the workspace")
	// ErrReserved: the path is the workspace's perstack directory or below it.
	ErrReserved = errors.New("in the reserved perstack directory")
	// ErrBadPath: the path is empty, holds NUL, or is too long for the system.
	ErrBadPath = errors.New("not a usable path")
	// ErrIsDirectory: a file was wanted, a directory is there.
	ErrIsDirectory = errors.New("is a directory")
	// ErrNotDirectory: a directory was wanted, something else is there.
	ErrNotDirectory = errors.New("is not a directory")
	// ErrNotRegular: a FIFO, socket or device where only a regular file will do.
	ErrNotRegular = errors.New("is not a regular file")
	// ErrParentIsFile: a directory to be created or passed is a file; PathError.Parent names it.
	ErrParentIsFile = errors.New("a parent is a file")
	// ErrNotReadable and ErrNotWritable: the system's permissions forbid it.
	ErrNotReadable = errors.New("is not readable")
	ErrNotWritable = errors.New("is not writable")
)

// A PathError says what is wrong with one path, in the spelling the caller used.
type PathError struct {
	Path   string // as it was given
	Parent string // for ErrParentIsFile: the parent that is a file, in the caller's spelling
	Detail string // for ErrBadPath: what is wrong ("is empty", "contains NUL", "is too long")
	Err    error  // one of the errors above, fs.ErrNotExist, or the system's error
}

func (e *PathError) Error() string {
	if e.Detail != "" {
		return e.Path + ": " + e.Detail
	}
	return e.Path + ": " + e.Err.Error()
}

func (e *PathError) Unwrap() error { return e.Err }
