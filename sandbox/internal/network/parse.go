package network

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// A RuleError says which rule is wrong, and what is allowed.
type RuleError struct{ Rule, Why string }

const allowedRules = "rules are host.example and 192.0.2.7 (ports 80 and 443), *.host.example, 10.20.0.0/16:5432, host.example:5432, host.example:*, " +
	"[2001:db8::1]:22, and any of these after a - to deny it; separate them by commas"

func (e *RuleError) Error() string {
	if e.Rule == "" {
		return e.Why + "; " + allowedRules
	}
	return "rule " + strconv.Quote(e.Rule) + ": " + e.Why + "; " + allowedRules
}

// A rule is one entry of the list. Either name or prefix is set.
type rule struct {
	text   string // in the form that List has
	deny   bool
	name   string
	below  bool // *.name
	prefix netip.Prefix
	ports  portSet
}

// Parse reads a list of rules, separated by commas. Its error is a [*RuleError].
func Parse(list string) (Rules, error) {
	if strings.TrimSpace(list) == "" {
		return Rules{}, &RuleError{"", "the list of rules is empty"}
	}
	r := Rules{names: map[string]portSet{}, below: map[string]portSet{}, networks: table[portSet]{of: map[netip.Prefix]portSet{}},
		deniedNames: map[string][]denial{}, deniedBelow: map[string][]denial{}, deniedNetworks: table[[]denial]{of: map[netip.Prefix][]denial{}}}
	seen := map[string]bool{}
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		one, why := parseRule(entry)
		if why != "" {
			return Rules{}, &RuleError{entry, why}
		}
		if !seen[one.text] {
			seen[one.text] = true
			r.add(one)
		}
	}
	if r.ports.empty() {
		return Rules{}, &RuleError{strings.TrimSpace(list), "there are only denials, so nothing is permitted; add what is, or give deny alone to close the network"}
	}
	return r, nil
}

// parseRule reads one entry. Where it cannot, it says why.
func parseRule(entry string) (one rule, why string) {
	text, deny := strings.CutPrefix(entry, "-")
	switch strings.ToLower(text) {
	case "":
		return one, "this is an empty rule"
	case "deny", "allow":
		return one, "deny and allow stand alone, not in a list"
	case "*":
		return one, "* alone would be every name; give allow alone to open all of the network"
	}
	if strings.Contains(text, "://") {
		return one, "this is a URL; leave out " + text[:strings.Index(text, "://")+3] + " and the path, as in host.example"
	}
	one.deny = deny
	host, port, hasPort, why := splitPort(text)
	if why != "" {
		return one, why
	}
	if one.ports, why = parsePorts(port, hasPort, deny); why != "" {
		return one, why
	}
	if strings.ContainsAny(host, ":/") || looksNumeric(host) {
		one.prefix, why = parsePrefix(host)
	} else {
		one.name, one.below, why = parseName(host)
	}
	if why == "" {
		one.text = one.canonical()
	}
	return one, why
}

// splitPort parts HOST:PORT, where HOST is in brackets if it has colons and PORT is given.
func splitPort(text string) (host, port string, hasPort bool, why string) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		host, rest, closed := strings.Cut(inner, "]")
		port, hasPort := strings.CutPrefix(rest, ":")
		if !closed || rest != "" && !hasPort || !strings.Contains(host, ":") {
			return "", "", false, "brackets are for an IPv6 address or network with a port, as in [2001:db8::1]:22 and [2001:db8::/32]:22"
		}
		return host, port, hasPort, ""
	}
	if strings.Count(text, ":") > 1 {
		return text, "", false, "" // IPv6
	}
	host, port, hasPort = strings.Cut(text, ":")
	return host, port, hasPort, ""
}

func parsePorts(port string, given, deny bool) (ports portSet, why string) {
	switch {
	case given && port == "*", !given && deny:
		return everyPort, ""
	case !given:
		return defaultPorts, ""
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		if strings.Contains(port, "/") {
			return ports, "leave out the path"
		}
		return ports, "a port is a number from 1 to 65535, or *"
	}
	return portSet{some: []uint16{uint16(n)}}, ""
}

// looksNumeric reports whether the last label is a number, as some programs read
// addresses: no name ends like that.
func looksNumeric(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	digits, hex := strings.CutPrefix(last, "0x")
	if hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

func parsePrefix(host string) (netip.Prefix, string) {
	if name, _, path := strings.Cut(host, "/"); path && !strings.Contains(name, ":") && !looksNumeric(name) {
		return netip.Prefix{}, "leave out the path"
	}
	prefix, err := netip.ParsePrefix(host)
	if err != nil {
		addr, err := netip.ParseAddr(host)
		if err != nil || addr.Zone() != "" {
			return prefix, "this is neither a name nor an address; an IPv6 address with a port stands in brackets"
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	if prefix != prefix.Masked() {
		return prefix, "this network is written " + prefix.Masked().String()
	}
	if prefix.Addr().Is4In6() {
		return prefix, "write this IPv4 address without ::ffff:"
	}
	for _, own := range loopback {
		if prefix.Overlaps(own) && prefix.Bits() >= 8 {
			return prefix, noLoopback
		}
	}
	return prefix, ""
}

// noLoopback answers a rule for loopback, which leads to the session and not to the host.
const noLoopback = "loopback is the session's own and needs no rule, and that of the host cannot be reached; " +
	"let the server on the host listen on another address of the host, and name that"

// names maps to ASCII as resolvers do. Underscores and inner hyphens are in real names.
var names = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.CheckHyphens(false), idna.BidiRule())

func parseName(host string) (name string, below bool, why string) {
	name, below = strings.CutPrefix(host, "*.")
	if strings.Contains(name, "*") {
		return "", false, "a * stands for all that is below a name, as in *.host.example"
	}
	ascii, err := names.ToASCII(name)
	_, odd := names.ToASCII(ascii) // some letters are taken that do not come back
	name = strings.TrimSuffix(ascii, ".")
	if err != nil || odd != nil || !utf8.ValidString(host) || !validName(name) {
		return "", false, "this is no name of a host"
	}
	for label := range strings.SplitSeq(name, ".") {
		if label[0] == '-' || label[len(label)-1] == '-' {
			return "", false, "this is no name of a host: a part of it begins or ends with a -"
		}
	}
	if looksNumeric(name) {
		return "", false, "this is neither a name nor an address"
	}
	if isLocalhost(name) {
		return "", false, noLoopback
	}
	return name, below, ""
}

// validName reports whether a name, in lower case and without its last dot, is one
// that a host can have.
func validName(name string) bool {
	if len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

func isLocalhost(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// canonical writes the rule as List has it.
func (r rule) canonical() string {
	host := r.name
	if r.below {
		host = "*." + host
	}
	if host == "" {
		host = r.prefix.String()
		if r.prefix.IsSingleIP() {
			host = r.prefix.Addr().String()
		}
	}
	switch {
	case r.deny && r.ports.all:
		return "-" + host
	case r.deny:
		return "-" + withPorts(host, r.ports)
	}
	return withPorts(host, r.ports)
}

// withPorts writes HOST, or HOST:PORT for other ports than the default ones. IPv6
// has brackets where a port follows.
func withPorts(host string, ports portSet) string {
	var port string
	switch {
	case ports.all:
		port = "*"
	case len(ports.some) == 1:
		port = strconv.Itoa(int(ports.some[0]))
	default:
		return host
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port
}
