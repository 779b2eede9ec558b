package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/tools"
)

// A selected tool, with the profile whose wire it speaks.
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

// selectTools reads --tools: PROFILE adds a profile, PROFILE.TOOL one tool,
// -PROFILE.TOOL takes one away. A list that begins by taking away begins with
// defaults. The result is sorted by tool name; unknown names, an empty result
// and two tools of one name are errors that say what to write instead.
func selectTools(profiles []*tools.Profile, defaults, list []string) ([]selected, error) {
	list = slices.DeleteFunc(slices.Clone(list), func(item string) bool { return strings.TrimSpace(item) == "" })
	if len(list) == 0 || strings.HasPrefix(strings.TrimSpace(list[0]), "-") {
		list = append(slices.Clone(defaults), list...)
	}
	var chosen []selected
	for _, item := range list {
		item = strings.TrimSpace(item)
		name, take := strings.CutPrefix(item, "-")
		matches, err := lookUp(profiles, name)
		if err != nil {
			return nil, err
		}
		for _, m := range matches {
			chosen = slices.DeleteFunc(chosen, func(s selected) bool { return s.tool == m.tool })
			if !take {
				chosen = append(chosen, m)
			}
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("--tools %s selects no tool", strings.Join(list, ","))
	}
	slices.SortStableFunc(chosen, func(a, b selected) int { return strings.Compare(a.tool.Name, b.tool.Name) })
	return chosen, clash(chosen, list)
}

// lookUp returns what PROFILE or PROFILE.TOOL means.
func lookUp(profiles []*tools.Profile, item string) ([]selected, error) {
	name, toolName, one := strings.Cut(item, ".")
	i := slices.IndexFunc(profiles, func(p *tools.Profile) bool { return p.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("--tools %s: there is no profile %q; profiles are %s", item, name, profileNames(profiles))
	}
	p := profiles[i]
	if one {
		t := p.Tool(toolName)
		if t == nil {
			return nil, fmt.Errorf("--tools %s: profile %s has no tool %q; its tools are %s", item, name, toolName, toolNames(p))
		}
		return []selected{{p, t}}, nil
	}
	all := make([]selected, len(p.Tools))
	for i, t := range p.Tools {
		all[i] = selected{p, t}
	}
	return all, nil
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

func profileNames(profiles []*tools.Profile) string {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

func toolNames(p *tools.Profile) string {
	names := make([]string, len(p.Tools))
	for i, t := range p.Tools {
		names[i] = t.Name
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
