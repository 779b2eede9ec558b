package tools

import (
	"context"
	"errors"
	"io/fs"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/tools/internal/diff"
)

// A Change is what a call made of one file.
type Change struct {
	From, To string // its path before and after; "" = there was, or is, none
	Old, New []byte
	Omitted  string // why Old is not known, in words that follow "it"
}

// ShowsChanges tells whether a view shows what the call in ctx changes. Where
// none does, no file is read for it and nothing is compared.
func ShowsChanges(ctx context.Context) bool { return shownOf(ctx) != nil }

// ShowChanges shows what a call has changed, when it is done.
func ShowChanges(ctx context.Context, changes ...Change) {
	s := shownOf(ctx)
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range changes {
		s.changes = append(s.changes, diff.Change(c))
	}
}

// MaxCompared is the size of the largest file that is read only to be compared.
const MaxCompared = diff.MaxBytes

// Write writes a file whole, and shows what has changed.
func (e *Env) Write(ctx context.Context, name string, data []byte) (files.Path, error) {
	if !ShowsChanges(ctx) {
		return e.Files.Write(name, data)
	}
	change := Change{To: name, New: data}
	at, err := e.Files.Replace(name, data, MaxCompared, func(old []byte, err error) {
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		change.From, change.Old = name, old
		if err != nil {
			change.Omitted = whyOmitted(err)
		}
	})
	if err == nil {
		ShowChanges(ctx, change)
	}
	return at, err
}

// Edit edits a file as [files.FS.Edit] does, and shows what has changed.
func (e *Env) Edit(ctx context.Context, name string, edit func(old []byte) ([]byte, error)) (files.Path, error) {
	if !ShowsChanges(ctx) {
		return e.Files.Edit(name, edit)
	}
	change := Change{From: name, To: name}
	at, err := e.Files.Edit(name, func(old []byte) (data []byte, err error) {
		change.Old = old
		change.New, err = edit(old)
		return change.New, err
	})
	if err == nil {
		ShowChanges(ctx, change)
	}
	return at, err
}

// whyOmitted says in a few words why a file was not compared.
func whyOmitted(err error) string {
	var large *sandbox.TooLargeError
	if errors.As(err, &large) {
		return large.Error()
	}
	return "could not be read before"
}
