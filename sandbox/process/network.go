package process

import (
	"fmt"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// A Network says what of the network commands may use. The zero value: nothing but
// servers that commands of their session start.
type Network struct {
	open  bool
	rules network.Rules
}

// OpenNetwork lets commands use all of the network.
var OpenNetwork = Network{open: true}

// ParseNetwork reads "deny", "allow", or a list of rules, separated by commas: names
// and addresses with ports.
func ParseNetwork(s string) (Network, error) {
	switch strings.TrimSpace(s) {
	case "deny":
		return Network{}, nil
	case "allow":
		return OpenNetwork, nil
	}
	rules, err := network.Parse(s)
	return Network{rules: rules}, err
}

// Open reports whether all of the network can be used.
func (n Network) Open() bool { return n.open }

// Closed reports whether none of it can be used.
func (n Network) Closed() bool { return !n.open && n.rules.Empty() }

// Rules lists what can be reached where that is neither all nor nothing.
func (n Network) Rules() []string { return n.rules.List() }

// String is what ParseNetwork reads.
func (n Network) String() string {
	switch {
	case n.open:
		return "allow"
	case n.Closed():
		return "deny"
	}
	return strings.Join(n.rules.List(), ",")
}

// gate makes the way out of a session's commands; nil where there are no rules.
func (c *confinement) gate() *network.Gate {
	if c.cfg.Network.rules.Empty() {
		return nil
	}
	return network.NewGate(network.Config{Rules: c.cfg.Network.rules, Log: c.cfg.Log, Own: confine.Owns})
}

// maxToldRules bounds the rules that a description lists.
const maxToldRules = 10

// sentence says what of the network commands reach, for whoever writes them; "" for
// all of it.
func (n Network) sentence() string {
	const own = "servers that commands of this session start"
	switch {
	case n.open:
		return ""
	case n.Closed():
		return " There is no network but " + own + "."
	}
	rules := n.rules.List()
	told := strings.Join(rules[:min(len(rules), maxToldRules)], ", ")
	if more := len(rules) - maxToldRules; more > 0 {
		told += fmt.Sprintf(" and %d more", more)
	}
	told = " Of the network they reach, over TCP, only what the user has named (" + told + ") and " + own + "."
	if strings.Contains(told, "(-") || strings.Contains(told, " -") {
		told = strings.TrimSuffix(told, ".") + "; what follows a minus they never reach."
	}
	return told
}
