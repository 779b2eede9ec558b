package skill

import (
	"fmt"
	"slices"
	"strings"
)

// A restricted tool is one of the three that allowed-tools can forbid.
type restricted struct {
	class   string   // the word that allows it without naming it
	profile []string // the tools among which it stands
}

var (
	skillsTools = []string{"skill_load", "skill_select_docs", "skill_list_docs", "skill_run"}
	echoTools   = []string{"activate_skill", "read_skill_resource", "run_skill_script"}
)

var restrictions = map[string]restricted{
	"read_skill_resource": {"Read", echoTools},
	"run_skill_script":    {"Bash", echoTools},
	"skill_run":           {"Bash", skillsTools},
}

// Permits reports whether a skill's allowed-tools let one of its tools run. lines
// are the ways to write the command, for tools that run one. The list restricts
// only: tools that it cannot restrict are always permitted.
func Permits(allowed []string, tool string, lines ...string) bool {
	r, ok := restrictions[tool]
	if !ok || len(allowed) == 0 || slices.Contains(allowed, "*") || slices.Contains(allowed, tool) {
		return true
	}
	names := func(item string) bool { return slices.Contains(r.profile, item) }
	if slices.ContainsFunc(allowed, names) {
		return false
	}
	return slices.Contains(allowed, r.class) || r.class == "Bash" && permitsLine(allowed, lines)
}

// permitsLine reports whether an item Bash(pattern) allows one of the lines.
func permitsLine(allowed, lines []string) bool {
	for _, item := range allowed {
		pattern, ok := strings.CutPrefix(item, "Bash(")
		if !ok || !strings.HasSuffix(pattern, ")") {
			continue
		}
		for _, line := range lines {
			if !chains(line) && matchSubject(strings.TrimSuffix(pattern, ")"), line) {
				return true
			}
		}
	}
	return false
}

// chains reports whether a line may hold more than one command or send its output elsewhere.
func chains(line string) bool {
	return strings.ContainsAny(line, "\n;&|<>`") || strings.Contains(line, "$(")
}

// Refusal words what Permits forbids.
func Refusal(skill, tool string, allowed []string) string {
	return fmt.Sprintf("Skill '%s' does not permit tool '%s'; allowed-tools: %s", skill, tool, strings.Join(allowed, ", "))
}
