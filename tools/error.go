package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/process"
)

// An Error is a failure the model can act on: what kind, what happened, what to try next.
type Error struct {
	Code fault.Code
	Msg  string // a sentence: what was wrong, and what is allowed
	Hint string // what to try next, or ""
	Err  error  // the cause, for dialects and logs
	Data any    // what this tool's API adds to its errors: a struct, or nil
}

func (e *Error) Error() string { return e.Msg }
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error for what only the tool's own API demands; errors of
// engines are returned as they are.
func Errorf(code fault.Code, hint, format string, args ...any) *Error {
	return &Error{Code: code, Hint: hint, Msg: fmt.Sprintf(format, args...)}
}

// asError words an error of an engine for a model. env is used to look for
// names like one that does not exist.
func asError(env *Env, err error) *Error {
	var done *Error
	if errors.As(err, &done) {
		return done
	}
	e := &Error{Code: fault.Of(err), Msg: sentence(err.Error()), Err: err}
	var hinter interface{ Hint() string }
	if errors.As(err, &hinter) {
		e.Hint = hinter.Hint()
	}
	var path *sandbox.PathError
	var start *process.StartError
	var large *sandbox.TooLargeError
	switch {
	case errors.As(err, &large):
		e.Msg = tooLarge(large)
	case errors.As(err, &path):
		e.Msg = pathSentence(path)
	case errors.As(err, &start):
		e.Msg = startSentence(start)
	case e.Code == fault.Cancelled:
		e.Msg = "The call was cancelled."
	}
	if e.Hint == "" {
		e.Hint = pathHint(env, err)
	}
	var lost *sandbox.RestoreError
	if errors.As(err, &lost) {
		e.Msg += " These could not be put back as they were: " + strings.Join(lost.Names, ", ") + "."
	}
	return e
}

// tooLarge words a file over a limit, wherever that limit was met.
func tooLarge(e *sandbox.TooLargeError) string {
	return fmt.Sprintf("File %s is too large: %d bytes, at most %d are allowed.", e.Path, e.Size, e.Limit)
}

// pathSentence says what is wrong with a path, in the words that the dialects share.
func pathSentence(e *sandbox.PathError) string {
	switch {
	case errors.Is(e.Err, sandbox.ErrEscapes):
		return e.Path + " is outside the workspace."
	case errors.Is(e.Err, sandbox.ErrReserved):
		return "Access to the perstack directory is denied."
	case errors.Is(e.Err, sandbox.ErrBadPath):
		return "path " + e.Detail + "."
	case errors.Is(e.Err, sandbox.ErrIsDirectory):
		return e.Path + " is a directory, not a file."
	case errors.Is(e.Err, sandbox.ErrNotDirectory):
		return e.Path + " is a file, not a directory."
	case errors.Is(e.Err, sandbox.ErrNotRegular):
		return e.Path + " is not a regular file."
	case errors.Is(e.Err, sandbox.ErrParentIsFile):
		return fmt.Sprintf("%s is a file, so %s cannot be created below it.", e.Parent, e.Path)
	case errors.Is(e.Err, sandbox.ErrLeased):
		return fmt.Sprintf("File %s is not readable now: another program holds a lease on it. Try again later.", e.Path)
	case errors.Is(e.Err, sandbox.ErrNotReadable):
		return fmt.Sprintf("File %s is not readable.", e.Path)
	case errors.Is(e.Err, sandbox.ErrNotWritable):
		return fmt.Sprintf("File %s is not writable.", e.Path)
	case errors.Is(e.Err, fs.ErrNotExist):
		return fmt.Sprintf("File %s does not exist.", e.Path)
	}
	return sentence(e.Error())
}

// pathHint is the way on from an error about a path.
func pathHint(env *Env, err error) string {
	if errors.Is(err, sandbox.ErrNotWritable) {
		return env.Files.OwnerHint()
	}
	var place interface{ At() string }
	if fault.Of(err) == fault.NotFound && errors.As(err, &place) {
		return nearHint(env, place.At())
	}
	return ""
}

func nearHint(env *Env, path string) string {
	near := env.Files.Near(path)
	if len(near) == 0 {
		return ""
	}
	return "Did you mean " + strings.Join(near, " or ") + "?"
}

// sentence gives engine text a capital and a full stop.
func sentence(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}
