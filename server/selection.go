package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/tools"
)

// A selected tool, with the profile that it belongs to.
type selected struct {
	profile *tools.Profile
	tool    *tools.Tool
}

func (s selected) name() string { return s.profile.Name + "." + s.tool.Name }

// choices are what is listed while no skill is known, and while one is.
type choices struct{ without, with []selected }

// choose makes the selection of a configuration. The skill tools join the default
// one only while there is a skill to use them on.
func choose(profiles []*tools.Profile, cfg Config) (c choices, err error) {
	if c.without, err = allowedTools(profiles, DefaultTools, cfg); err != nil {
		return c, err
	}
	c.with, err = allowedTools(profiles, slices.Concat(DefaultTools, SkillTools), cfg)
	return c, err
}

func allowedTools(profiles []*tools.Profile, defaults []string, cfg Config) ([]selected, error) {
	chosen, err := selectTools(profiles, defaults, cfg.Tools)
	if err != nil || !cfg.ReadOnly {
		return chosen, err
	}
	chosen = slices.DeleteFunc(chosen, func(c selected) bool { return !c.tool.Effect.AllowedReadOnly() })
	if len(chosen) == 0 {
		return nil, errors.New("--read-only leaves out every selected tool")
	}
	return chosen, nil
}

// everything is the item of --tools that means all profiles.
const everything = "all"

// selectTools reads --tools: PROFILE adds a profile, PROFILE.TOOL one tool,
// -PROFILE.TOOL takes one away, all adds every profile. A list that begins by
// taking away begins with defaults. The result is sorted by tool name; unknown
// names, an empty result and two tools of one name are errors that say what to
// write instead. What all adds gives way: to a tool of the same name that is named
// itself, else to that of an earlier profile.
func selectTools(profiles []*tools.Profile, defaults, list []string) ([]selected, error) {
	list = slices.DeleteFunc(slices.Clone(list), func(item string) bool { return strings.TrimSpace(item) == "" })
	if len(list) == 0 || strings.HasPrefix(strings.TrimSpace(list[0]), "-") {
		list = append(slices.Clone(defaults), list...)
	}
	var named, rest []selected // rest: by all alone
	for _, item := range list {
		name, take := strings.CutPrefix(strings.TrimSpace(item), "-")
		matches, err := lookUp(profiles, name)
		if err != nil {
			return nil, err
		}
		isMatch := func(s selected) bool { return slices.Contains(matches, s) }
		if name != everything || take {
			named = slices.DeleteFunc(named, isMatch)
		}
		rest = slices.DeleteFunc(rest, isMatch)
		switch {
		case take:
		case name == everything:
			rest = append(rest, matches...)
		default:
			named = append(named, matches...)
		}
	}
	chosen := fill(named, rest)
	if len(chosen) == 0 {
		return nil, fmt.Errorf("--tools %s selects no tool", strings.Join(list, ","))
	}
	slices.SortStableFunc(chosen, func(a, b selected) int { return strings.Compare(a.tool.Name, b.tool.Name) })
	return chosen, clash(chosen, list)
}

// fill adds those of rest whose name is still free.
func fill(chosen, rest []selected) []selected {
	for _, r := range rest {
		if !slices.ContainsFunc(chosen, func(c selected) bool { return c.tool.Name == r.tool.Name }) {
			chosen = append(chosen, r)
		}
	}
	return chosen
}

// lookUp returns what PROFILE, PROFILE.TOOL or all means.
func lookUp(profiles []*tools.Profile, item string) ([]selected, error) {
	if item == everything {
		return allTools(profiles), nil
	}
	name, toolName, one := strings.Cut(item, ".")
	i := slices.IndexFunc(profiles, func(p *tools.Profile) bool { return p.Name == name })
	if i < 0 {
		return nil, noProfile(profiles, item, name)
	}
	p := profiles[i]
	if !one {
		return allTools(profiles[i : i+1]), nil
	}
	t := p.Tool(toolName)
	if t == nil {
		names := toolNames(p)
		return nil, fmt.Errorf("--tools %s: profile %s has no tool %q%s; its tools are %s", item, name, toolName, meant(Nearest(toolName, names)), strings.Join(names, ", "))
	}
	return []selected{{p, t}}, nil
}

func allTools(profiles []*tools.Profile) (all []selected) {
	for _, p := range profiles {
		for _, t := range p.Tools {
			all = append(all, selected{p, t})
		}
	}
	return all
}

// noProfile says what to write for an item that begins with no profile's name:
// that of a tool alone is a frequent one.
func noProfile(profiles []*tools.Profile, item, name string) error {
	var names, full []string
	for _, p := range profiles {
		names = append(names, p.Name)
		if p.Tool(item) != nil {
			full = append(full, p.Name+"."+item)
		}
	}
	if full != nil {
		return fmt.Errorf("--tools %s: a tool is named with its profile: %s", item, strings.Join(full, " or "))
	}
	return fmt.Errorf("--tools %s: there is no profile %q%s; profiles are %s, and %s means every one", item, name, meant(Nearest(name, names)), strings.Join(names, ", "), everything)
}

// meant puts a near name into a sentence, if there is one.
func meant(near string) string {
	if near == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", near)
}

// clash finds two selected tools of one name; chosen is sorted by it.
func clash(chosen []selected, list []string) error {
	for i := 1; i < len(chosen); i++ {
		a, b := chosen[i-1], chosen[i]
		if a.tool.Name == b.tool.Name {
			return fmt.Errorf("%s and %s have the same name; leave one out, for example with --tools %s,-%s",
				a.name(), b.name(), strings.Join(list, ","), b.name())
		}
	}
	return nil
}

func toolNames(p *tools.Profile) []string {
	names := make([]string, len(p.Tools))
	for i, t := range p.Tools {
		names[i] = t.Name
	}
	slices.Sort(names)
	return names
}

// Nearest returns the candidate that a word was probably meant to be, or "". They
// may differ in case, or in one letter of three that is wrong, missing, extra
// or swapped with the next: what is farther off is another word.
func Nearest(word string, candidates []string) string {
	best, least := "", 0
	lower := strings.ToLower(word)
	for _, candidate := range candidates {
		d := typos(lower, strings.ToLower(candidate))
		if d <= min(len(word), len(candidate))/3 && (best == "" || d < least) {
			best, least = candidate, d
		}
	}
	return best
}

// typos counts the slips between two words: the optimal string alignment distance.
func typos(a, b string) int {
	before, last := []int(nil), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
