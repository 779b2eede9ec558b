//go:build !linux && !darwin

package pty

import (
	"errors"
	"os"
)

// Open fails.
func Open() (*Pair, error) { return nil, errors.New("perstack-base makes no terminals on this system") }

// Resize does nothing.
func (*Pair) Resize(uint16, uint16) error { return nil }

// ModesOf knows nothing.
func ModesOf(*os.File) (Modes, bool) { return Modes{}, false }
