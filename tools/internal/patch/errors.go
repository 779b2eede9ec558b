package patch

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/tools/internal/outcut"
)

// MaxBytes is the size of the largest file that is patched.
const MaxBytes = 64 << 20

// MaxLines is the number of lines of the largest file that is patched: what
// the search needs per line must fit in memory.
const MaxLines = 8 << 20

// What can be wrong with a path, besides fs.ErrNotExist and what package fault names; see [PathError].
var (
	ErrNotRelative   = fault.New(fault.BadInput, "path is absolute")
	ErrTooLarge      = fault.New(fault.TooLarge, "is too large")
	ErrTooManyLines  = fault.New(fault.TooLarge, "has too many lines")
	ErrTooRepetitive = fault.New(fault.TooLarge, "repeats the lines of the patch too often")
	ErrExists        = fault.New(fault.Conflict, "exists already")
	ErrLeftOver      = fault.New(fault.NoMatch, "has more lines than the patch removes")
)

// A PathError says why a path of the patch cannot be changed as the patch wants.
type PathError struct {
	Path   string // as the patch spells it
	Parent string // for fault.ErrParentIsFile: the parent, spelled likewise
	Err    error  // one of those above, of package fault, or fs.ErrNotExist
}

// sentences say each error of a path; %[1]s is the path, %[2]s the parent.
var sentences = []struct {
	err    error
	format string
}{
	{fs.ErrNotExist, "File %[1]s does not exist."},
	{ErrNotRelative, "path must be relative: %[1]s"},
	{fault.ErrIsDirectory, "%[1]s is a directory, not a file."},
	{fault.ErrNotRegular, "%[1]s is not a regular file."},
	{fault.ErrParentIsFile, "%[2]s is a file, so %[1]s cannot be created below it."},
	{fault.ErrNotWritable, "File %[1]s is not writable."},
	{ErrTooLarge, "File %[1]s is too large to patch (limit 64 MiB)."},
	{ErrExists, "File %[1]s exists already."},
	{ErrLeftOver, "File %[1]s has more lines than the patch removes, so it is not deleted."},
	{ErrTooRepetitive, "File %[1]s repeats the lines of the patch so often that finding their places takes too long; send the patch in parts."},
	{ErrTooManyLines, "File %[1]s has too many lines to patch (limit 8,388,608)."},
}

func (e *PathError) Error() string {
	for _, s := range sentences {
		if errors.Is(e.Err, s.err) {
			return fmt.Sprintf(s.format+"%.0[2]s", e.Path, e.Parent)
		}
	}
	return e.Path + ": " + e.Err.Error()
}

func (e *PathError) Unwrap() error { return e.Err }

// At is the path at fault, as the patch spells it.
func (e *PathError) At() string { return e.Path }

// A SyntaxError says why a text is not a patch.
type SyntaxError struct {
	Line   int    // of the patch, counted from 1; 0: the patch as a whole
	Reason string // the whole sentence
	Help   string // further lines: what would be right
}

func (e *SyntaxError) Error() string  { return e.Reason }
func (*SyntaxError) Code() fault.Code { return fault.BadInput }

// Hint says what a right patch looks like, "" where the sentence says it all.
func (e *SyntaxError) Hint() string { return e.Help }

const example = `A patch looks like this:
*** Begin Patch
*** Update File: path/to/file.py
@@ def example():
-    return 1
+    return 2
*** End Patch`

func noBegin(first string) error {
	got := outcut.Prefix(string(outcut.AppendValid(nil, first)), 200)
	return &SyntaxError{Line: 1,
		Reason: "Invalid patch: The first line of the patch must be '*** Begin Patch'",
		Help:   "Got: " + got + "\n" + example}
}

var (
	errNoEnd     = &SyntaxError{Reason: "Invalid patch: The last line of the patch must be '*** End Patch'"}
	errNoSection = &SyntaxError{Reason: "No files were modified."}
)

func invalidHunk(line int, what, help string) error {
	return &SyntaxError{Line: line, Reason: fmt.Sprintf("Invalid patch hunk on line %d: %s", line, what), Help: help}
}

func notAHeader(n int, line string) error {
	return invalidHunk(n, fmt.Sprintf("'%s' is not a valid hunk header.", line),
		"Valid hunk headers: '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'")
}

func unexpectedLine(n int, line string) error {
	return invalidHunk(n, fmt.Sprintf("Unexpected line '%s'.", line),
		"Every line of a chunk begins with ' ' (context), '-' (removed) or '+' (added); "+
			"a new chunk begins with '@@' or '@@ ' and a line of the file")
}

func noLines(n int) error { return invalidHunk(n, "Update hunk does not contain any lines", "") }

func emptyUpdate(n int, path string) error {
	return invalidHunk(n, fmt.Sprintf("Update file hunk for path '%s' is empty", path), "")
}
