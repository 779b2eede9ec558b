//go:build !linux

package tree

import (
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
)

// StartConfined cannot be done here.
func StartConfined(Jail, Launch) (Tree, error) { return nil, confine.ErrUnavailable }
