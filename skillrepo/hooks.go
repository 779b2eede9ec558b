package skillrepo

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/perstack-ai/perstack-base/skillrepo/internal/front"
)

// A HookGroup is the hooks of one event for the tools that one matcher names.
// Groups stand in the order of the file.
type HookGroup struct {
	Event   string // PreToolUse or PostToolUse
	Matcher string // "*" when none was given
	Hooks   []Hook
}

// A Hook is one action. Type tells which of the other fields count.
type Hook struct {
	Type string // command, prompt or permission

	Command string        // command: what the shell runs
	Shell   string        // command: bash or powershell
	Timeout time.Duration // command: 1 s to 300 s

	Prompt string // prompt: the message

	Decision    string          // permission: allow, deny or ask
	Reason      string          // permission: may be empty
	Suggestions json.RawMessage // permission: a JSON array, nil without one
}

// Hook timeouts, in seconds.
const (
	defaultHookTimeout = 10
	maxHookTimeout     = 300
)

// parseHooks reads the hooks field; every malformed part is left out with a warning.
func parseHooks(v *yaml.Node, shell string, n *notes) (groups []HookGroup) {
	if v == nil || front.IsNull(v) {
		return nil
	}
	if v.Kind != yaml.MappingNode {
		n.warn("hooks is not a mapping and is ignored")
		return nil
	}
	for event, list := range front.Pairs(v) {
		switch {
		case event != "PreToolUse" && event != "PostToolUse":
			n.warn("hooks: the event %q is unknown and is ignored", event)
		case list.Kind != yaml.SequenceNode:
			n.warn("hooks: %s is not a list and is ignored", event)
		default:
			for _, g := range list.Content {
				if group, ok := parseGroup(event, g, shell, n); ok {
					groups = append(groups, group)
				}
			}
		}
	}
	return groups
}

func parseGroup(event string, v *yaml.Node, shell string, n *notes) (HookGroup, bool) {
	g := HookGroup{Event: event, Matcher: "*"}
	if v.Kind != yaml.MappingNode {
		n.warn("hooks: an entry of %s is not a mapping and is ignored", event)
		return g, false
	}
	if m := front.Get(v, "matcher"); m != nil && !front.IsNull(m) {
		s, ok := front.Text(m)
		if !ok || !validMatcher(s) {
			n.warn("hooks: an entry of %s has a malformed matcher and is ignored", event)
			return g, false
		}
		if s != "" {
			g.Matcher = s
		}
	}
	list := front.Get(v, "hooks")
	if list == nil || list.Kind != yaml.SequenceNode {
		n.warn("hooks: an entry of %s has no list of hooks and is ignored", event)
		return g, false
	}
	for _, h := range list.Content {
		if hook, ok := parseHook(event, h, shell, n); ok {
			g.Hooks = append(g.Hooks, hook)
		}
	}
	return g, len(g.Hooks) > 0
}

// validMatcher reports whether every alternative of a matcher has a name and
// closes the parenthesis that it opens.
func validMatcher(s string) bool {
	if s == "" {
		return true
	}
	for _, alt := range SplitMatcher(s) {
		name, pattern, found := strings.Cut(alt, "(")
		if strings.TrimSpace(name) == "" || found && !strings.HasSuffix(pattern, ")") {
			return false
		}
	}
	return true
}

// SplitMatcher returns the alternatives of a matcher, trimmed: it splits at "|"
// outside parentheses, so that Bash(a|b*)|Read has two.
func SplitMatcher(s string) (alts []string) {
	depth, start := 0, 0
	for i, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')' && depth > 0:
			depth--
		case r == '|' && depth == 0:
			alts, start = append(alts, strings.TrimSpace(s[start:i])), i+1
		}
	}
	return append(alts, strings.TrimSpace(s[start:]))
}

func parseHook(event string, v *yaml.Node, shell string, n *notes) (Hook, bool) {
	if v.Kind != yaml.MappingNode {
		n.warn("hooks: a hook of %s is not a mapping and is ignored", event)
		return Hook{}, false
	}
	h := Hook{}
	h.Type, _ = front.Text(front.Get(v, "type"))
	var problem string
	switch h.Type {
	case "command":
		problem = h.fillCommand(v, shell, n)
	case "prompt":
		if h.Prompt, _ = front.Text(front.Get(v, "prompt")); h.Prompt == "" {
			problem = "has no prompt"
		}
	case "permission":
		problem = h.fillPermission(v, n)
	default:
		problem = "has the unknown type " + strconv.Quote(h.Type)
	}
	if problem != "" {
		n.warn("hooks: a hook of %s %s and is ignored", event, problem)
	}
	return h, problem == ""
}

func (h *Hook) fillCommand(v *yaml.Node, shell string, n *notes) (problem string) {
	if h.Command, _ = front.Text(front.Get(v, "command")); h.Command == "" {
		return "has no command"
	}
	h.Shell = shellField(front.Get(v, "shell"), shell, n)
	seconds := defaultHookTimeout
	if t := front.Get(v, "timeout"); t != nil {
		s, _ := front.Text(t)
		if got, err := strconv.Atoi(s); err == nil && got >= 1 && got <= maxHookTimeout {
			seconds = got
		} else {
			n.warn("hooks: a timeout is not a whole number from 1 to %d; %d s are used", maxHookTimeout, seconds)
		}
	}
	h.Timeout = time.Duration(seconds) * time.Second
	return ""
}

func (h *Hook) fillPermission(v *yaml.Node, n *notes) (problem string) {
	switch h.Decision, _ = front.Text(front.Get(v, "decision")); h.Decision {
	case "allow", "deny", "ask":
	default:
		return "has no decision allow, deny or ask"
	}
	h.Reason = optionalText(v, "reason", n)
	if s := front.Get(v, "suggestions"); s != nil && s.Kind == yaml.SequenceNode {
		h.Suggestions = front.AppendJSON(nil, s)
	} else if s != nil {
		n.warn("hooks: suggestions is not a list and is ignored")
	}
	return ""
}
