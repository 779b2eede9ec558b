//go:build !linux

package sandbox

import (
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
)

// cagedStarter does not exist here: no cage can be made.
type cagedStarter struct{ cage *cage }

// A caged tree does not exist here either.
type caged struct {
	tree
	launch
}

func (*caged) gone() <-chan struct{}       { return nil }
func (*caged) refusals() []confine.Refusal { return nil }

func (cagedStarter) start(launch) (tree, error) { return nil, confine.ErrUnavailable }
