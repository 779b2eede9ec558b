package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/process/quota"
	"github.com/perstack-ai/perstack-base/tools/internal/media"
	"github.com/perstack-ai/perstack-base/tools/internal/patch"
	"github.com/perstack-ai/perstack-base/tools/internal/plan"
	"github.com/perstack-ai/perstack-base/tools/internal/search"
	"github.com/perstack-ai/perstack-base/tools/internal/skill"
	"github.com/perstack-ai/perstack-base/tools/internal/textedit"
)

// A Code says what kind of failure a call met, for programs to branch on.
type Code string

// The codes. What each is for stands in the table of [codes].
const (
	BadInput         Code = "bad_input"
	NotFound         Code = "not_found"
	OutsideWorkspace Code = "outside_workspace"
	Denied           Code = "denied"
	UnsupportedType  Code = "unsupported_type"
	Conflict         Code = "conflict"
	TooLarge         Code = "too_large"
	NotText          Code = "not_text"
	NoMatch          Code = "no_match"
	Failed           Code = "failed"
	TimedOut         Code = "timed_out"
	Cancelled        Code = "cancelled"
	Unavailable      Code = "unavailable"
	Internal         Code = "internal"
)

// An Error is a failure the model can act on: what kind, what happened, what to try next.
type Error struct {
	Code Code
	Msg  string // a sentence: what was wrong, and what is allowed
	Hint string // what to try next, or ""
	Err  error  // the cause, for dialects and logs
	Data any    // what this tool's API adds to its errors: a struct, or nil
}

func (e *Error) Error() string { return e.Msg }
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error for what only the tool's own API demands; errors of
// engines are returned as they are.
func Errorf(code Code, hint, format string, args ...any) *Error {
	return &Error{Code: code, Hint: hint, Msg: fmt.Sprintf(format, args...)}
}

// kinds and codes are the one table from what engines and the sandbox say to
// codes: by type, then by value. The first match counts.
var kinds = []struct {
	is   func(error) bool
	code Code
}{
	{is[*ArgError], BadInput},
	{is[*sandbox.TooLargeError], TooLarge},
	{is[*process.NoRoomError], Unavailable},
	{is[*process.ContainerError], Unavailable},
	{is[*process.TooManyError], Unavailable},
	{is[*quota.FullError], Unavailable},
	{is[*process.InputFullError], Unavailable},
	{is[*process.EndedError], Conflict},
	{is[*plan.TooLargeError], TooLarge},
	{is[*plan.BlankError], BadInput},
	{is[*patch.SyntaxError], BadInput},
	{is[*patch.MatchError], NoMatch},
	{is[*search.PatternError], BadInput},
	{is[*search.GlobError], BadInput},
	{is[*search.TypeError], BadInput},
	{is[*search.PastEndError], BadInput},
	{is[*search.TimeoutError], TimedOut},
	{is[*textedit.PastEndError], BadInput},
	{is[*textedit.NotTextError], NotText},
	{is[*media.UnsupportedError], UnsupportedType},
	{is[*media.TooLargeError], TooLarge},
}

func is[T error](err error) bool {
	var kind T
	return errors.As(err, &kind)
}

var codes = []struct {
	err  error
	code Code
}{
	{skill.ErrBadInput, BadInput},
	{skill.ErrNotFound, NotFound},
	{skill.ErrOutside, OutsideWorkspace},
	{skill.ErrDenied, Denied},
	{skill.ErrUnsupported, UnsupportedType},
	{skill.ErrTooBig, TooLarge},
	{skill.ErrUnavailable, Unavailable},
	{sandbox.ErrEscapes, OutsideWorkspace},
	{sandbox.ErrReserved, Denied},
	{sandbox.ErrBadPath, BadInput},
	{sandbox.ErrIsDirectory, UnsupportedType},
	{sandbox.ErrNotDirectory, UnsupportedType},
	{sandbox.ErrNotRegular, UnsupportedType},
	{sandbox.ErrParentIsFile, Conflict},
	{sandbox.ErrNotReadable, Denied},
	{sandbox.ErrNotWritable, Denied},
	{patch.ErrNotRelative, BadInput},
	{patch.ErrIsDirectory, UnsupportedType},
	{patch.ErrNotRegular, UnsupportedType},
	{patch.ErrParentIsFile, Conflict},
	{patch.ErrNotWritable, Denied},
	{patch.ErrTooLarge, TooLarge},
	{patch.ErrTooManyLines, TooLarge},
	{patch.ErrTooRepetitive, TooLarge},
	{patch.ErrExists, Conflict},
	{patch.ErrLeftOver, NoMatch},
	{fs.ErrNotExist, NotFound},
	{fs.ErrPermission, Denied},
	{process.ErrNoProgram, NotFound},
	{process.ErrNotExecutable, Denied},
	{process.ErrBadFormat, UnsupportedType},
	{process.ErrArgsTooLong, TooLarge},
	{process.ErrEnvName, BadInput},
	{process.ErrHasNUL, BadInput},
	{process.ErrEnding, Cancelled},
	{process.ErrUnconfined, Unavailable},
	{process.ErrNoTerminal, Unavailable},
	{process.ErrInputEnded, Conflict},
	{context.Canceled, Cancelled},
	{context.DeadlineExceeded, Cancelled},
}

func codeOf(err error) Code {
	for _, row := range kinds {
		if row.is(err) {
			return row.code
		}
	}
	for _, row := range codes {
		if errors.Is(err, row.err) {
			return row.code
		}
	}
	return Internal
}

// asError words an error of an engine for a model. env is used to look for
// names like one that does not exist.
func asError(env *Env, err error) *Error {
	var done *Error
	if errors.As(err, &done) {
		return done
	}
	e := &Error{Code: codeOf(err), Msg: sentence(err.Error()), Err: err}
	var hinter interface{ Hint() string }
	if errors.As(err, &hinter) {
		e.Hint = hinter.Hint()
	}
	var arg *ArgError
	var path *sandbox.PathError
	var patched *patch.PathError
	var start *process.StartError
	var large *sandbox.TooLargeError
	var exact *skill.Error
	switch {
	case errors.As(err, &exact):
		e.Msg = exact.Msg // worded for its API already
	case errors.As(err, &large):
		e.Msg = tooLarge(large)
	case errors.As(err, &arg):
		if arg.Problem == ArgTooLong {
			e.Code = TooLarge
		}
	case errors.As(err, &patched):
		if e.Code == NotFound {
			e.Hint = nearHint(env, patched.Path)
		}
	case errors.As(err, &path):
		e.Msg = pathSentence(path)
		if e.Code == NotFound && e.Hint == "" {
			e.Hint = nearHint(env, path.Path)
		}
	case errors.As(err, &start):
		e.Msg = startSentence(start)
	case e.Code == Cancelled:
		e.Msg = "The call was cancelled."
	}
	if e.Hint == "" && (errors.Is(err, sandbox.ErrNotWritable) || errors.Is(err, patch.ErrNotWritable)) {
		e.Hint = env.Files.OwnerHint()
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
