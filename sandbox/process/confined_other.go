//go:build !linux

package process

import (
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
)

// startConfined cannot be done here.
func startConfined(jail, launch) (tree, error) { return nil, confine.ErrUnavailable }
