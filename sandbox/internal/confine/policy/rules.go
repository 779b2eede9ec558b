package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// A Rule is one line of what commands may reach, for people.
type Rule struct {
	Access string `json:"access"` // read, write, device, or no
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Rules are what the policy, once it was looked up, grants and leaves out: a path
// a line. What another path covers is not repeated.
func (p Policy) Rules() (rules []Rule) {
	for _, place := range p.Places {
		if place.Covered {
			continue
		}
		r := Rule{"read", place.Real, place.Reason}
		if place.Write {
			r.Access = "write"
		}
		if place.Path != place.Real {
			r.Reason += " (as " + place.Path + ")"
		}
		rules = append(rules, r)
	}
	for _, path := range p.Devices {
		rules = append(rules, Rule{"device", path, "devices that every program may expect"})
	}
	for _, place := range p.Dropped {
		rules = append(rules, Rule{"no", place.Path, place.Reason})
	}
	slices.SortStableFunc(rules, func(a, b Rule) int {
		order := []string{"write", "read", "device", "no"}
		return cmp.Or(cmp.Compare(slices.Index(order, a.Access), slices.Index(order, b.Access)), strings.Compare(a.Path, b.Path))
	})
	return slices.Compact(rules)
}

// DefaultRules are what the default policy names on every machine: ~ is HOME.
func DefaultRules() (rules []Rule) {
	add := func(access, dir string, g Group) {
		for i, p := range g.paths {
			g.paths[i] = path.Join(dir, p)
		}
		rules = append(rules, Rule{access, strings.Join(g.paths, " "), g.Reason})
	}
	clone := func(g Group) Group { return Group{g.Reason, slices.Clone(g.paths)} }
	for _, g := range System {
		add("read", "", clone(g))
	}
	etc := clone(Etc)
	slices.Sort(etc.paths)
	rules = append(rules, Rule{"read", "of /etc: " + strings.Join(etc.paths, " "), etc.Reason})
	add("read", "/etc", clone(Users))
	for _, g := range home {
		add("read", "~", clone(g))
	}
	rules = append(rules, Rule{"read", "the directories of PATH called " + strings.Join(binNames, ", ") + ", the programs in others, and programs that links in them lead to", onPath})
	for _, t := range toolchains {
		parts := slices.Clone(t.parts)
		slices.Sort(parts)
		rules = append(rules, Rule{"read", "of " + strings.Join(t.names, ", ") + ": " + strings.Join(parts, " "), "known toolchains that programs on PATH belong to"})
	}
	for _, m := range marks {
		rules = append(rules, Rule{"read", "beside " + m.file + ": " + strings.Join(m.parts, " "), "known toolchains that programs on PATH belong to"})
	}
	add("no", "~", Group{"secrets, whatever is on PATH", slices.Clone(secrets)})
	add("device", "", Group{"devices that every program may expect", slices.Clone(defaultDevices)})
	return rules
}
