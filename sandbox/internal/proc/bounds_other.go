//go:build !linux

package proc

import "os"

// Bounds are what a program is put under; here there are none.
type Bounds struct{ Group *os.File }

// MostInGroup is 0: there is no limit.
func MostInGroup() int { return 0 }

// Reserved is nothing here.
func Reserved() Bounds { return Bounds{} }

// With is nothing here.
func (b Bounds) With(Bounds) Bounds { return b }

// Start has fork start a program.
func (Bounds) Start(fork func(stopped bool) (int, error)) (int, error) { return fork(false) }
