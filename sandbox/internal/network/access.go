package network

import (
	"fmt"
	"strings"
)

// An Access says what of the network commands may use. The zero value: nothing but
// servers that commands of their session start.
type Access struct {
	open  bool
	rules Rules
}

// Everything lets commands use all of the network.
var Everything = Access{open: true}

// ParseAccess reads "deny", "allow", or a list of rules, separated by commas: names
// and addresses with ports.
func ParseAccess(s string) (Access, error) {
	switch strings.TrimSpace(s) {
	case "deny":
		return Access{}, nil
	case "allow":
		return Everything, nil
	}
	rules, err := Parse(s)
	return Access{rules: rules}, err
}

// Open reports whether all of the network can be used.
func (n Access) Open() bool { return n.open }

// Closed reports whether none of it can be used.
func (n Access) Closed() bool { return !n.open && n.rules.Empty() }

// Rules lists what can be reached where that is neither all nor nothing.
func (n Access) Rules() []string { return n.rules.List() }

// Named are the rules.
func (n Access) Named() Rules { return n.rules }

// String is what ParseAccess reads.
func (n Access) String() string {
	switch {
	case n.open:
		return "allow"
	case n.Closed():
		return "deny"
	}
	return strings.Join(n.rules.List(), ",")
}

// maxToldRules bounds the rules that a description lists.
const maxToldRules = 10

// Sentence says what of the network commands reach, for whoever writes them; "" for
// all of it.
func (n Access) Sentence() string {
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
