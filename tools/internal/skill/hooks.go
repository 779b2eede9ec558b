package skill

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/skillrepo"
	"github.com/perstack-ai/perstack-base/tools/internal/outcut"
)

// The events that hooks are told of.
const (
	preToolUse  = "PreToolUse"
	postToolUse = "PostToolUse"
)

// maxHookBytes bounds what a hook may answer: it may carry the arguments of a
// call that writes a file.
const maxHookBytes = 4 << 20

// A Watch is the hooks that watch one call: those that were registered when it
// began. A nil *Watch watches nothing.
type Watch struct {
	s       *Session
	armed   []*guard // by skill name
	notices []string // about them, for the model
}

// A Verdict is what hooks say to a call. The zero Verdict lets it pass.
type Verdict struct {
	Input    any      // the arguments, as they came or as hooks changed them
	Changed  bool     // hooks changed the arguments
	Blocked  bool     //
	Reason   string   // why it is blocked, or what must be allowed; may be empty
	Ask      bool     // the user must allow the call
	Messages []string // for the model, beside the result
	Mode     string   // the last permission mode that a hook named; it widens nothing
}

// Watch returns the hooks for a call that begins now.
func (s *Session) Watch(ctx context.Context) *Watch {
	if s == nil {
		return nil
	}
	w := &Watch{s: s}
	s.mu.Lock()
	for _, a := range s.active {
		if a.guard != nil {
			w.armed = append(w.armed, a.guard)
		}
	}
	s.mu.Unlock()
	if len(w.armed) == 0 {
		return nil
	}
	slices.SortFunc(w.armed, func(a, b *guard) int { return strings.Compare(a.page.Name, b.page.Name) })
	for _, g := range w.armed {
		if text := s.notice(ctx, g); text != "" {
			w.notices = append(w.notices, text)
		}
	}
	return w
}

// Before asks the hooks before a call. input is the arguments as they came.
func (w *Watch) Before(ctx context.Context, tool string, input any) Verdict {
	v := Verdict{Input: input, Messages: w.notices}
	w.ask(ctx, preToolUse, tool, nil, &v)
	return v
}

// After asks the hooks after a call, whose result has that text.
func (w *Watch) After(ctx context.Context, tool string, input any, output string) Verdict {
	v := Verdict{Input: input}
	w.ask(ctx, postToolUse, tool, &output, &v)
	return v
}

// ask runs the matching hooks in order until one stops it.
func (w *Watch) ask(ctx context.Context, event, tool string, output *string, v *Verdict) {
	if w == nil {
		return
	}
	for _, g := range w.armed {
		for _, group := range g.hooks {
			args, _ := v.Input.(map[string]any)
			if group.Event != event || !Match(group.Matcher, tool, Subject(tool, args)) {
				continue
			}
			for _, h := range group.Hooks {
				if w.run(ctx, g, h, event, tool, output, v) {
					return
				}
			}
		}
	}
}

// run runs one hook and reports whether the hooks stop here.
func (w *Watch) run(ctx context.Context, g *guard, h skillrepo.Hook, event, tool string, output *string, v *Verdict) (stop bool) {
	switch h.Type {
	case "prompt":
		v.Messages = append(v.Messages, h.Prompt)
		return false
	case "permission":
		v.permission(event, h.Decision, h.Reason)
		return true
	}
	d, err := w.command(ctx, g, h, event, tool, output, v)
	if err != nil {
		if event == postToolUse { // the call has been made
			v.Messages = append(v.Messages, err.Error())
			return false
		}
		return v.block(err.Error())
	}
	return v.apply(event, d)
}

// block stops the call, or withholds its result.
func (v *Verdict) block(reason string) bool {
	v.Blocked, v.Ask, v.Reason = true, false, reason
	return true
}

// permission takes allow, deny or ask. Allowing widens nothing.
func (v *Verdict) permission(event, decision, reason string) (stop bool) {
	switch {
	case decision == "deny":
		if reason == "" {
			reason = "Hook denied"
		}
		return v.block(reason)
	case decision == "ask" && event == preToolUse && !v.Ask:
		v.Ask, v.Reason = true, reason
	}
	return false
}

// A directive is what a command hook may print.
type directive struct {
	Decision         string          `json:"decision"`
	Reason           string          `json:"reason"`
	UpdatedInput     json.RawMessage `json:"updatedInput"`
	Continue         *bool           `json:"continue"`
	Permission       string          `json:"permission_decision"`
	PermissionReason string          `json:"permission_reason"`
	Mode             string          `json:"permission_mode"`
	ModeOverride     string          `json:"permission_mode_override"`
	Context          string          `json:"injected_context"`
	input            map[string]any
}

// apply does what a directive says and reports whether the hooks stop here.
func (v *Verdict) apply(event string, d *directive) (stop bool) {
	if d == nil {
		return false
	}
	if d.Context != "" {
		v.Messages = append(v.Messages, d.Context)
	}
	for _, mode := range []string{d.Mode, d.ModeOverride} {
		if mode != "" {
			v.Mode = mode
		}
	}
	switch {
	case d.Decision == "deny":
		return v.permission(event, "deny", d.Reason)
	case d.Decision == "block":
		return v.block(d.Reason)
	case v.permission(event, d.Permission, d.PermissionReason):
		return true
	}
	if d.input != nil && event == preToolUse {
		v.Input, v.Changed = d.input, true
	}
	return d.Continue != nil && !*d.Continue
}

// command runs a command hook. Every failure is an error in the hook's words.
func (w *Watch) command(ctx context.Context, g *guard, h skillrepo.Hook, event, tool string, output *string, v *Verdict) (*directive, error) {
	root := w.s.engine.Files.Root()
	var alias any
	if name := Alias(tool); name != "" {
		alias = name
	}
	told, err := json.Marshal(struct {
		Event   string  `json:"hook_event_name"`
		Tool    string  `json:"tool_name"`
		Alias   any     `json:"tool_alias"`
		Input   any     `json:"tool_input"`
		Output  *string `json:"tool_output"`
		Session string  `json:"session_id"`
		Cwd     string  `json:"cwd"`
		Skill   string  `json:"skill"`
	}{event, tool, alias, v.Input, output, w.s.ID, root, g.page.Name})
	if err != nil {
		return nil, errorf(fault.Denied, "Hook could not run: %v", err)
	}
	r := runner{w.s}.Run(ctx, Command{
		Argv: g.page.argv(h.Shell, h.Command), Dir: g.page.Dir, Write: []string{g.page.Dir},
		Stdin: append(told, '\n'), Timeout: h.Timeout, MaxOutput: maxHookBytes,
		Env: append(g.page.Env(), "HOOK_EVENT="+event, "CWD="+root, "CLAUDE_PROJECT_DIR="+root, "CLAUDE_PLUGIN_ROOT="+g.page.Dir),
	})
	refused := strings.Join(r.Refused, "\n")
	if reason := failure(r, h.Timeout); reason != "" {
		return nil, errorf(fault.Denied, "%s", strings.TrimSpace(reason+"\n"+refused))
	}
	if refused != "" {
		v.Messages = append(v.Messages, refused)
	}
	return parseDirective(r.Stdout)
}

// failure says why a hook did not do its work, "" when it did.
func failure(r Result, timeout time.Duration) string {
	switch stderr := outcut.Prefix(strings.TrimSpace(r.Stderr), maxCommandBytes); {
	case r.Err != nil:
		return fmt.Sprintf("Hook could not run: %v", r.Err)
	case r.TimedOut:
		return fmt.Sprintf("Hook timed out after %ds", int(timeout.Seconds()))
	case r.ExitCode != 0 && stderr != "":
		return fmt.Sprintf("Hook exited with code %d: %s", r.ExitCode, stderr)
	case r.ExitCode != 0:
		return fmt.Sprintf("Hook exited with code %d", r.ExitCode)
	}
	return ""
}

// parseDirective reads what a hook printed: nothing, text, or one JSON object.
func parseDirective(stdout string) (*directive, error) {
	text := strings.TrimSpace(stdout)
	if !strings.HasPrefix(text, "{") {
		return nil, nil
	}
	invalid := errorf(fault.Denied, "Hook printed invalid JSON")
	d := &directive{}
	if json.Unmarshal([]byte(text), d) != nil {
		return nil, invalid
	}
	if raw := bytes.TrimSpace(d.UpdatedInput); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		if json.Unmarshal(raw, &d.input) != nil || d.input == nil {
			return nil, invalid
		}
	}
	return d, nil
}
