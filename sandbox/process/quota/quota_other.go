//go:build !linux

package quota

import "github.com/perstack-ai/perstack-base/sandbox/internal/proc"

// hostMeans are none here.
func (c *Rules) hostMeans() means {
	const why = "nothing keeps limits on this system"
	return means{Unkept, Unkept, Unkept, why, why, why}
}

// A Ration does nothing here.
type Ration struct{}

// An Account is what a Ration has counted.
type Account struct{}

// Begin bounds nothing.
func (*Ration) Begin(*Rules, Session) (proc.Bounds, Account, error) {
	return proc.Bounds{}, Account{}, nil
}

// Reasons knows none.
func (*Ration) Reasons(*Rules, Ended) []string { return nil }

// Close does nothing.
func (*Ration) Close() {}
