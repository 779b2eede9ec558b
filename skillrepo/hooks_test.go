package skillrepo

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestHooks(t *testing.T) {
	s, diags := one(t, `---
name: demo
description: d
shell: powershell
hooks:
  PreToolUse:
    - matcher: "Bash(rm:*)|Edit"
      hooks:
        - {type: command, command: "${SKILL_DIR}/guard.sh", shell: bash, timeout: 5}
        - {type: permission, decision: ask, reason: careful, suggestions: [a, {b: 1}]}
    - hooks:
        - {type: command, command: x}
  PostToolUse:
    - matcher: ""
      hooks:
        - {type: prompt, prompt: "Check the output"}
---
`)
	if len(diags) != 0 {
		t.Fatal(diags)
	}
	want := "[{PreToolUse Bash(rm:*)|Edit [{command ${SKILL_DIR}/guard.sh bash 5s    } {permission   0s  ask careful [\"a\",{\"b\":1}]}]}" +
		" {PreToolUse * [{command x powershell 10s    }]} {PostToolUse * [{prompt   0s Check the output   }]}]"
	if got := fmt.Sprintf("%s", s.Hooks); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMalformedHooksAreLeftOut(t *testing.T) {
	const good = "{type: prompt, prompt: p}"
	tests := []struct {
		name, yaml, diag string
		hooks            int // that remain
	}{
		{"no mapping", "hooks: [a]", "hooks is not a mapping", 0},
		{"unknown event", "hooks: {Stop: []}", `the event "Stop" is unknown`, 0},
		{"event no list", "hooks: {PreToolUse: x}", "PreToolUse is not a list", 0},
		{"group no mapping", "hooks: {PreToolUse: [x, {hooks: [" + good + "]}]}", "an entry of PreToolUse is not a mapping", 1},
		{"matcher a list", "hooks: {PreToolUse: [{matcher: [a], hooks: [" + good + "]}]}", "malformed matcher", 0},
		{"matcher open", "hooks: {PreToolUse: [{matcher: 'Bash(x', hooks: [" + good + "]}]}", "malformed matcher", 0},
		{"matcher with an empty alternative", "hooks: {PreToolUse: [{matcher: 'Bash||Read', hooks: [" + good + "]}]}", "malformed matcher", 0},
		{"matcher without a name", "hooks: {PreToolUse: [{matcher: '(x)', hooks: [" + good + "]}]}", "malformed matcher", 0},
		{"no hooks", "hooks: {PreToolUse: [{matcher: a}]}", "no list of hooks", 0},
		{"hook no mapping", "hooks: {PreToolUse: [{hooks: [x, " + good + "]}]}", "a hook of PreToolUse is not a mapping", 1},
		{"unknown type", "hooks: {PreToolUse: [{hooks: [{type: http}, " + good + "]}]}", `unknown type "http"`, 1},
		{"no type", "hooks: {PreToolUse: [{hooks: [{command: x}]}]}", `unknown type ""`, 0},
		{"no command", "hooks: {PreToolUse: [{hooks: [{type: command}]}]}", "has no command", 0},
		{"no prompt", "hooks: {PreToolUse: [{hooks: [{type: prompt, prompt: ' '}]}]}", "has no prompt", 0},
		{"no decision", "hooks: {PreToolUse: [{hooks: [{type: permission, decision: maybe}]}]}", "has no decision", 0},
		{"timeout too long", "hooks: {PreToolUse: [{hooks: [{type: command, command: x, timeout: 301}]}]}", "10 s are used", 1},
		{"timeout zero", "hooks: {PreToolUse: [{hooks: [{type: command, command: x, timeout: 0}]}]}", "10 s are used", 1},
		{"timeout text", "hooks: {PreToolUse: [{hooks: [{type: command, command: x, timeout: soon}]}]}", "10 s are used", 1},
		{"shell unknown", "hooks: {PreToolUse: [{hooks: [{type: command, command: x, shell: fish}]}]}", "shell is neither", 1},
		{"suggestions no list", "hooks: {PreToolUse: [{hooks: [{type: permission, decision: deny, suggestions: x}]}]}", "suggestions is not a list", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, diags := one(t, "---\nname: demo\ndescription: d\n"+tt.yaml+"\n---\n")
			if s == nil || len(diags) != 1 || diags[0].Error || !strings.Contains(diags[0].Message, tt.diag) {
				t.Fatalf("diagnostics %v; want one warning with %q", diags, tt.diag)
			}
			n := 0
			for _, g := range s.Hooks {
				n += len(g.Hooks)
			}
			if n != tt.hooks {
				t.Errorf("%d hooks remain; want %d", n, tt.hooks)
			}
		})
	}
}

func TestSplitMatcher(t *testing.T) {
	tests := map[string][]string{
		"*": {"*"}, "Bash": {"Bash"}, "Edit | Write": {"Edit", "Write"}, "Bash(a|b)|Read": {"Bash(a|b)", "Read"},
		"Bash((a)|b)|c": {"Bash((a)|b)", "c"}, "a)|b": {"a)", "b"}, "": {""},
	}
	for in, want := range tests {
		if got := SplitMatcher(in); !slices.Equal(got, want) {
			t.Errorf("%q: %q; want %q", in, got, want)
		}
	}
}
