package tools

import (
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/tools/internal/patch"
	"github.com/perstack-ai/perstack-base/tools/internal/search"
)

// What could not be put back is told whatever else went wrong.
func TestRestoreErrorNamesTheFiles(t *testing.T) {
	err := &sandbox.RestoreError{Names: []string{"a", "b"}, Err: &sandbox.PathError{Path: "c", Err: sandbox.ErrNotWritable}}
	e := asError(&Env{}, err)
	if e.Code != fault.Denied || e.Msg != "File c is not writable. These could not be put back as they were: a, b." {
		t.Errorf("%s %s", e.Code, e.Msg)
	}
}

// No refusal of an engine is taken for a fault of the server.
func TestEnginesHaveCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code fault.Code
	}{
		{&patch.SyntaxError{}, fault.BadInput}, {&patch.MatchError{}, fault.NoMatch},
		{&patch.PathError{Err: patch.ErrTooLarge}, fault.TooLarge}, {&patch.PathError{Err: fault.ErrParentIsFile}, fault.Conflict},
		{&patch.PathError{Err: patch.ErrNotRelative}, fault.BadInput}, {&patch.PathError{Err: fault.ErrNotWritable}, fault.Denied},
		{&search.PatternError{}, fault.BadInput}, {&search.GlobError{}, fault.BadInput}, {&search.TypeError{}, fault.BadInput},
		{&search.PastEndError{}, fault.BadInput}, {&search.TimeoutError{}, fault.TimedOut},
	} {
		if got := fault.Of(c.err); got != c.code {
			t.Errorf("%T: %s", c.err, got)
		}
	}
}
