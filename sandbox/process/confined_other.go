//go:build !linux

package process

import (
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
)

// cagedStarter does not exist here: no cage can be made.
type cagedStarter struct{ cage *cage }

func (cagedStarter) start(launch) (tree, error) { return nil, confine.ErrUnavailable }
