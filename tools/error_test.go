package tools

import (
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/tools/internal/patch"
	"github.com/perstack-ai/perstack-base/tools/internal/search"
)

// What could not be put back is told whatever else went wrong.
func TestRestoreErrorNamesTheFiles(t *testing.T) {
	err := &sandbox.RestoreError{Names: []string{"a", "b"}, Err: &sandbox.PathError{Path: "c", Err: sandbox.ErrNotWritable}}
	e := asError(&Env{}, err)
	if e.Code != Denied || e.Msg != "File c is not writable. These could not be put back as they were: a, b." {
		t.Errorf("%s %s", e.Code, e.Msg)
	}
}

// No refusal of an engine is taken for a fault of the server.
func TestEnginesHaveCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code Code
	}{
		{&patch.SyntaxError{}, BadInput}, {&patch.MatchError{}, NoMatch},
		{&patch.PathError{Err: patch.ErrTooLarge}, TooLarge}, {&patch.PathError{Err: patch.ErrParentIsFile}, Conflict},
		{&patch.PathError{Err: patch.ErrNotRelative}, BadInput}, {&patch.PathError{Err: patch.ErrNotWritable}, Denied},
		{&search.PatternError{}, BadInput}, {&search.GlobError{}, BadInput}, {&search.TypeError{}, BadInput},
		{&search.PastEndError{}, BadInput}, {&search.TimeoutError{}, TimedOut},
	} {
		if got := codeOf(c.err); got != c.code {
			t.Errorf("%T: %s", c.err, got)
		}
	}
}
