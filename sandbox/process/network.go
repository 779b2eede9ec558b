package process

import (
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// A Network says what of the network commands may use. The zero value: nothing but
// servers that commands of their session start.
type Network = network.Access

// OpenNetwork lets commands use all of the network.
var OpenNetwork = network.Everything

// ParseNetwork reads "deny", "allow", or a list of rules, separated by commas: names
// and addresses with ports.
func ParseNetwork(s string) (Network, error) { return network.ParseAccess(s) }

// gate makes the way out of a session's commands; nil where there are no rules.
func (c *confinement) gate() *network.Gate {
	access := c.cfg.Network
	if access.Open() || access.Closed() {
		return nil
	}
	return network.NewGate(network.Config{Rules: access.Named(), Log: c.cfg.Log, Own: confine.Owns})
}
