package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
)

// What can be wrong with a path, besides fs.ErrNotExist. Every error about a
// path is a *PathError that wraps one of these, so callers use errors.Is.
var (
	// ErrEscapes: the path, or a link on its way, leads out of the workspace.
	ErrEscapes = fault.New(fault.OutsideWorkspace, "outside the workspace")
	// ErrReserved: the path is the workspace's perstack directory or below it.
	ErrReserved = fault.New(fault.Denied, "in the reserved perstack directory")
	// ErrBadPath: the path is empty, holds NUL, or is too long for the system.
	ErrBadPath = fault.New(fault.BadInput, "not a usable path")
	// ErrIsDirectory: a file was wanted, a directory is there.
	ErrIsDirectory = fault.ErrIsDirectory
	// ErrNotDirectory: a directory was wanted, something else is there.
	ErrNotDirectory = fault.New(fault.UnsupportedType, "is not a directory")
	// ErrNotRegular: a FIFO, socket or device where only a regular file will do.
	ErrNotRegular = fault.ErrNotRegular
	// ErrParentIsFile: a directory to be created or passed is a file; PathError.Parent names it.
	ErrParentIsFile = fault.ErrParentIsFile
	// ErrNotReadable and ErrNotWritable: the system's permissions forbid it.
	ErrNotReadable = fault.New(fault.Denied, "is not readable")
	ErrNotWritable = fault.ErrNotWritable
	// ErrLeased: another program has a lease on the file and does not give it up.
	ErrLeased = fmt.Errorf("%w now: another program holds a lease on it; try again when that has ended", ErrNotReadable)
	// ErrGuarded: the path decides what git runs for its user, and FS.Guarded is set.
	ErrGuarded = fmt.Errorf("%w: with --sandbox isolate only git's data in .git may be changed, not its settings and hooks", ErrNotWritable)
	// ErrLinkLoop: links on the way lead in a circle, or are more than
	// Limits.LinkHops. It is an fs.ErrNotExist as well: nothing can be there.
	ErrLinkLoop = fmt.Errorf("has too many links on its way: %w", fs.ErrNotExist)
)

// A PathError says what is wrong with one path, in the spelling the caller used.
type PathError struct {
	Path   string // as it was given
	Parent string // for ErrParentIsFile: the parent that is a file, in the caller's spelling
	Link   string // for ErrEscapes: the link inside the workspace that leads out, if it was one
	Detail string // for ErrBadPath: what is wrong ("is empty", "contains NUL", "is too long")
	Err    error  // one of the errors above, fs.ErrNotExist, or the system's error
}

func (e *PathError) Error() string {
	if e.Detail != "" {
		return e.Path + ": " + e.Detail
	}
	if e.Link != "" {
		return e.Path + ": " + e.Err.Error() + " (the link " + e.Link + " leads there)"
	}
	return e.Path + ": " + e.Err.Error()
}

func (e *PathError) Unwrap() error { return e.Err }

// At is the path at fault, as it was given.
func (e *PathError) At() string { return e.Path }

// A TooLargeError is a file over a size limit. It comes wrapped in a *PathError.
type TooLargeError struct {
	Path  string // as it was given
	Size  int64  // bytes
	Limit int64  // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("has %d bytes, more than the %d allowed", e.Size, e.Limit)
}
func (*TooLargeError) Code() fault.Code { return fault.TooLarge }

// A RestoreError is a transaction that failed and could not be taken back
// completely: Names (below the root) are not as they were before.
type RestoreError struct {
	Names []string
	Err   error // why the transaction failed
}

func (e *RestoreError) Error() string {
	return fmt.Sprintf("%v; not restored: %s", e.Err, strings.Join(e.Names, ", "))
}

func (e *RestoreError) Unwrap() error { return e.Err }

// reason is the innermost error: "no space left on device" without the call.
func Reason(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
