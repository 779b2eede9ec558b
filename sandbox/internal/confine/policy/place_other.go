//go:build !linux

package policy

import (
	"io/fs"
	"os"
)

type FileID struct{}

type descriptor struct{}

type met struct{}

// Pin changes nothing here: nothing is confined.
func (p Policy) Pin() Policy { return p }

// Short is nil.
func (p Policy) Short() error { return nil }

// OfGit changes nothing here.
func (Policy) OfGit(map[string]Kind) {}

// Changed is always the same here.
func (Policy) Changed() int64 { return 0 }

// Straight is true: nothing is confined here.
func (Policy) Straight([]string) bool { return true }

// With changes nothing here.
func (p Policy) With(_, _ []string, _ string) (Policy, func()) { return p, func() {} }

// Close does nothing here.
func (Policy) Close() {}

// Safe is true: commands are not confined here.
func (Policy) Safe(string) bool { return true }

// Reach opens a regular file for reading.
func (Policy) Reach(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrPermission
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}
