package skill

import (
	"errors"
	"fmt"
)

// What kind of failure an *Error is.
var (
	ErrBadInput    = errors.New("not usable as an argument")
	ErrNotFound    = errors.New("not there")
	ErrOutside     = errors.New("outside what may be reached")
	ErrDenied      = errors.New("not permitted")
	ErrUnsupported = errors.New("of an unsupported type")
	ErrTooBig      = errors.New("too large")
	ErrUnavailable = errors.New("not available here")
)

// An Error is a failure in the words of the wire.
type Error struct {
	Kind error // one of the errors above
	Msg  string
	Way  string // what to try next, or ""
}

func (e *Error) Error() string { return e.Msg }
func (e *Error) Unwrap() error { return e.Kind }

// Hint says what to try next.
func (e *Error) Hint() string { return e.Way }

func errorf(kind error, format string, args ...any) *Error {
	return &Error{Kind: kind, Msg: fmt.Sprintf(format, args...)}
}
