package skill

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/skillrepo"
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
	s     *Session
	armed []*activation // by skill name
}

// A Verdict is what hooks say to a call. The zero Verdict lets it pass.
type Verdict struct {
	Input    any      // the arguments, as they came or as hooks changed them
	Changed  bool     // hooks changed the arguments
	Blocked  bool     //
	Reason   string   // why it is blocked, or what must be allowed; may be empty
	Ask      bool     // somebody must allow the call
	Messages []string // for the model, beside the result
	Mode     string   // the last permission mode that a hook named; it widens nothing
}

// registrable are the hooks that may watch: under --read-only no commands.
func (s *Session) registrable(groups []skillrepo.HookGroup) []skillrepo.HookGroup {
	if !s.engine.ReadOnly {
		return groups
	}
	var kept []skillrepo.HookGroup
	for _, g := range groups {
		g.Hooks = slices.DeleteFunc(slices.Clone(g.Hooks), func(h skillrepo.Hook) bool { return h.Type == "command" })
		if len(g.Hooks) > 0 {
			kept = append(kept, g)
		}
	}
	return kept
}

// Watch returns the hooks for a call that begins now. Those of a skill that
// changed or vanished since its activation are dropped.
func (s *Session) Watch(ctx context.Context) *Watch {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	var armed []*activation
	for _, a := range s.active {
		if len(a.hooks) > 0 {
			armed = append(armed, a)
		}
	}
	s.mu.Unlock()
	armed = slices.DeleteFunc(armed, func(a *activation) bool {
		if s.unchanged(ctx, a) {
			return false
		}
		s.mu.Lock()
		a.hooks = nil
		s.mu.Unlock()
		return true
	})
	if len(armed) == 0 {
		return nil
	}
	slices.SortFunc(armed, func(a, b *activation) int { return strings.Compare(a.page.Name, b.page.Name) })
	return &Watch{s: s, armed: armed}
}

// unchanged reports whether a skill is still the one that was activated. When the
// call has ended it need not be known: nothing will be done.
func (s *Session) unchanged(ctx context.Context, a *activation) bool {
	sk, ok := s.engine.Repo.Get(ctx, a.page.Name)
	if ctx.Err() != nil {
		return true
	}
	if !ok || !sk.Trusted {
		return false
	}
	digest, err := sk.Digest(ctx)
	return ctx.Err() != nil || err == nil && digest == a.digest
}

// Before asks the hooks before a call. input is the arguments as they came.
func (w *Watch) Before(ctx context.Context, tool string, input any) Verdict {
	v := Verdict{Input: input}
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
	for _, a := range w.armed {
		for _, g := range a.hooks {
			args, _ := v.Input.(map[string]any)
			if g.Event != event || !Match(g.Matcher, tool, Subject(tool, args)) {
				continue
			}
			for _, h := range g.Hooks {
				if w.one(ctx, a, h, event, tool, output, v) {
					return
				}
			}
		}
	}
}

// one runs one hook and reports whether the hooks stop here.
func (w *Watch) one(ctx context.Context, a *activation, h skillrepo.Hook, event, tool string, output *string, v *Verdict) (stop bool) {
	switch h.Type {
	case "prompt":
		v.Messages = append(v.Messages, h.Prompt)
		return false
	case "permission":
		v.permission(event, h.Decision, h.Reason)
		return true
	}
	d, err := w.command(ctx, a, h, event, tool, output, v.Input)
	if err != nil {
		if event == postToolUse { // the deed is done
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
func (w *Watch) command(ctx context.Context, a *activation, h skillrepo.Hook, event, tool string, output *string, input any) (*directive, error) {
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
	}{event, tool, alias, input, output, w.s.ID, root, a.page.Name})
	if err != nil {
		return nil, errorf(ErrDenied, "Hook could not run: %v", err)
	}
	r := runner{w.s}.Run(ctx, Command{
		Argv: a.page.argv(h.Shell, h.Command), Dir: a.page.Dir, Stdin: append(told, '\n'), Timeout: h.Timeout, MaxOutput: maxHookBytes,
		Env: append(a.page.Env(), "HOOK_EVENT="+event, "CWD="+root, "CLAUDE_PROJECT_DIR="+root, "CLAUDE_PLUGIN_ROOT="+a.page.Dir),
	})
	switch stderr := clip(strings.TrimSpace(r.Stderr)); {
	case r.Err != nil:
		return nil, errorf(ErrDenied, "Hook could not run: %v", r.Err)
	case r.TimedOut:
		return nil, errorf(ErrDenied, "Hook timed out after %ds", int(h.Timeout.Seconds()))
	case r.ExitCode != 0 && stderr != "":
		return nil, errorf(ErrDenied, "Hook exited with code %d: %s", r.ExitCode, stderr)
	case r.ExitCode != 0:
		return nil, errorf(ErrDenied, "Hook exited with code %d", r.ExitCode)
	}
	return parseDirective(r.Stdout)
}

// parseDirective reads what a hook printed: nothing, text, or one JSON object.
func parseDirective(stdout string) (*directive, error) {
	text := strings.TrimSpace(stdout)
	if !strings.HasPrefix(text, "{") {
		return nil, nil
	}
	invalid := errorf(ErrDenied, "Hook printed invalid JSON")
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
