package tools

import (
	"fmt"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/files"
)

// ArgProblem is what is wrong with arguments.
type ArgProblem int

// The problems, in the order in which bind looks for them.
const (
	ArgUnknown ArgProblem = iota // Names are not arguments of the tool
	ArgMissing                   // Names are required
	ArgTwice                     // Names mean the same, and both are given
	ArgType                      // Names[0] must be Want, and is something else altogether
	ArgWrong                     // Names[0] must be Want
	ArgBelow                     // Names[0] must be at least Limit
	ArgAbove                     // Names[0] must be at most Limit
	ArgEmpty                     // Names[0] must not be empty
	ArgNUL                       // Names[0] must not contain NUL
	ArgTooLong                   // Names[0] has Size characters, Limit are allowed
)

// An ArgError says what is wrong with the arguments of a call. Its sentences are
// those of most dialects; a dialect with words of its own reads the fields.
type ArgError struct {
	Problem ArgProblem
	Names   []string // the places, as in `steps[1].status`
	Near    string   // for ArgUnknown: the known name most like it, or ""
	Known   []string // for ArgUnknown and ArgMissing: all names
	Want    string   // for ArgType and ArgWrong: what is allowed, to follow "must be"
	Size    int64    // for ArgTooLong, in characters
	Limit   int64    // for ArgTooLong, in characters; for ArgBelow and ArgAbove
}

func (e *ArgError) Code() fault.Code {
	if e.Problem == ArgTooLong {
		return fault.TooLarge
	}
	return fault.BadInput
}

func (e *ArgError) Error() string {
	switch e.Problem {
	case ArgUnknown:
		return fmt.Sprintf("Unknown argument%s %s.", plural(len(e.Names)), quoted(e.Names))
	case ArgMissing:
		return fmt.Sprintf("Missing required argument%s %s.", plural(len(e.Names)), quoted(e.Names))
	case ArgTwice:
		return strings.Join(e.Names, " and ") + " mean the same; give one of them."
	case ArgBelow:
		return fmt.Sprintf("%s must be at least %d.", e.Names[0], e.Limit)
	case ArgAbove:
		return fmt.Sprintf("%s must be at most %d.", e.Names[0], e.Limit)
	case ArgEmpty:
		return e.Names[0] + " must not be empty."
	case ArgNUL:
		return e.Names[0] + " must not contain NUL."
	case ArgTooLong:
		return fmt.Sprintf("%s has %d characters, more than the %d allowed.", e.Names[0], e.Size, e.Limit)
	}
	return fmt.Sprintf("%s must be %s.", e.Names[0], e.Want)
}

// Hint says what the tool takes.
func (e *ArgError) Hint() string {
	if e.Problem != ArgUnknown {
		return ""
	}
	if len(e.Known) == 0 {
		return "This tool takes no arguments."
	}
	known := "Known arguments: " + strings.Join(e.Known, ", ") + "."
	if e.Near == "" {
		return known
	}
	return fmt.Sprintf("Did you mean %q? %s", e.Near, known)
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(out, ", ")
}

// nearest returns the candidate most like name, or "" when none is near enough
// to be meant.
func nearest(name string, candidates []string) string {
	if near := files.Similar(name, candidates, 1); len(near) > 0 {
		return near[0]
	}
	return ""
}
