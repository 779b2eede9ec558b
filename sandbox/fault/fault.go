// Package fault says what kind of failure an error is, for programs to branch on. An
// error gets its code where it is made: by [New], or by a method Code of its type. [Of]
// reads it from whatever wraps that error.
package fault

import (
	"context"
	"errors"
	"io/fs"
)

// A Code is a kind of failure, as tools answer it.
type Code string

const (
	BadInput         Code = "bad_input"         // an argument that is not usable
	NotFound         Code = "not_found"         // no such file, program, session or skill
	OutsideWorkspace Code = "outside_workspace" // a path that leads out
	Denied           Code = "denied"            // permissions, a rule or a hook forbid it
	UnsupportedType  Code = "unsupported_type"  // a directory, device, image or format that the tool does not take
	Conflict         Code = "conflict"          // it does not fit what is there now
	TooLarge         Code = "too_large"         // over a limit of size
	NotText          Code = "not_text"          // a file that is not UTF-8 text
	NoMatch          Code = "no_match"          // the text to be changed was not found
	Failed           Code = "failed"            // a command ended with another exit code than 0
	TimedOut         Code = "timed_out"         // time was up
	Cancelled        Code = "cancelled"         // by the client, or because the server ends
	Unavailable      Code = "unavailable"       // not here, or not now
	Internal         Code = "internal"          // a fault of the server
)

// What can be wrong with a path of files and of patches alike.
var (
	ErrIsDirectory  = New(UnsupportedType, "is a directory")
	ErrNotRegular   = New(UnsupportedType, "is not a regular file")
	ErrParentIsFile = New(Conflict, "a parent is a file")
	ErrNotWritable  = New(Denied, "is not writable")
)

// New makes an error of a kind, to be compared by errors.Is.
func New(code Code, text string) error { return &fault{code, text} }

type fault struct {
	code Code
	text string
}

func (f *fault) Error() string { return f.text }
func (f *fault) Code() Code    { return f.code }

// Of is the code of the outermost error in err's chain that has one. Errors of the
// system and of contexts have theirs as well; everything else is Internal.
func Of(err error) Code {
	var coded interface{ Code() Code }
	switch {
	case errors.As(err, &coded):
		return coded.Code()
	case errors.Is(err, fs.ErrNotExist):
		return NotFound
	case errors.Is(err, fs.ErrPermission):
		return Denied
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Cancelled
	}
	return Internal
}
