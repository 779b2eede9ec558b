package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

// TestOf: an error's own code counts, the outermost before what it wraps, and before the system's.
func TestOf(t *testing.T) {
	full := New(TooLarge, "full")
	for want, errs := range map[Code][]error{
		TooLarge:  {full, fmt.Errorf("while: %w", full), errors.Join(fs.ErrNotExist, full)},
		Denied:    {&fs.PathError{Op: "open", Path: "f", Err: fs.ErrPermission}, fmt.Errorf("%w: guarded", ErrNotWritable)},
		NotFound:  {fmt.Errorf("too many links: %w", fs.ErrNotExist)},
		Cancelled: {context.Canceled, fmt.Errorf("while: %w", context.DeadlineExceeded)},
		Internal:  {errors.New("something else"), fs.ErrClosed},
	} {
		for _, err := range errs {
			if got := Of(err); got != want {
				t.Errorf("%v: %s, want %s", err, got, want)
			}
		}
	}
	if errors.Is(full, New(TooLarge, "full")) {
		t.Error("two errors with the same text are taken for one")
	}
}
