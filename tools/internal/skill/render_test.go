package skill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// script answers commands by their script.
type script struct {
	answers map[string]Result
	ran     []Command
}

func (s *script) Run(_ context.Context, c Command) Result {
	s.ran = append(s.ran, c)
	return s.answers[c.Argv[2]]
}

func page(body string) *Page {
	return &Page{Name: "demo", Dir: "/s/demo", Body: body, Trusted: true, Shell: "bash", SkillFile: "SKILL.md", Session: "session-0123abcd"}
}

// inner is the rendered body alone.
func inner(t *testing.T, p *Page, run Runner) string {
	t.Helper()
	text, err := p.Render(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	body, _, ok := strings.Cut(strings.TrimPrefix(text, "<skill_content name=\"demo\">\n"), "\n\nSkill directory: ")
	if !ok {
		t.Fatal(text)
	}
	return body
}

func TestRenderFrame(t *testing.T) {
	p := page("\n# Title\n\nText.\n\n")
	p.Name = `a<b>"&`
	p.AllowedTools = []string{"Read", "Bash(git:*)"}
	p.Files = []string{"SKILL.md", "assets/a", "notes.md", "reference/r", "references/r&d.md", "scripts", "scripts/x.sh", "sub/SKILL.md"}
	got, err := p.Render(t.Context(), nil)
	want := `<skill_content name="a&lt;b&gt;&quot;&amp;">
# Title

Text.

Skill directory: /s/demo
Relative paths in this skill are relative to the skill directory.

<allowed_tools>
This skill declares the following preferred/allowed tools: Read, Bash(git:*)
Runtime enforcement currently applies to the built-in skill tools such as read_skill_resource and run_skill_script.
</allowed_tools>

<skill_resources>
  <file kind="asset">assets/a</file>
  <file kind="other">notes.md</file>
  <file kind="reference">reference/r</file>
  <file kind="reference">references/r&amp;d.md</file>
  <file kind="other">scripts</file>
  <file kind="script">scripts/x.sh</file>
  <file kind="other">sub/SKILL.md</file>
</skill_resources>
</skill_content>`
	if err != nil || got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	bare, _ := page("x").Render(t.Context(), nil)
	if want := "<skill_content name=\"demo\">\nx\n\nSkill directory: /s/demo\nRelative paths in this skill are relative to the skill directory.\n</skill_content>"; bare != want {
		t.Errorf("got %s\nwant %s", bare, want)
	}
}

func TestRenderListsAtMost512Files(t *testing.T) {
	p := page("x")
	p.Files = []string{"SKILL.md"}
	for i := range 514 {
		p.Files = append(p.Files, fmt.Sprintf("f%03d", i))
	}
	got, _ := p.Render(t.Context(), nil)
	if strings.Count(got, "<file ") != 512 || !strings.Contains(got, "f511</file>\n  … 2 more files\n</skill_resources>") {
		t.Error(got[len(got)-200:])
	}
}

func TestVariables(t *testing.T) {
	p := page("")
	p.Arguments = []string{"one", "${2}", "$1 ${SKILL_DIR}"}
	tests := map[string]string{
		"${SKILL_DIR} ${CLAUDE_SKILL_DIR}": "/s/demo /s/demo", "${SESSION_ID}${CLAUDE_SESSION_ID}": "session-0123abcdsession-0123abcd",
		"${ARGUMENTS}": "one ${2} $1 ${SKILL_DIR}", "${1} ${2} ${3} ${4}": "one ${2} $1 ${SKILL_DIR} ${4}", "```\n${1}\n```": "```\none\n```",
		"$1 $ARGUMENTS {baseDir} ${HOME} ${0} ${01} ${skill_dir} ${ARGUMENTS:-x} ${ 1 } ${}": "$1 $ARGUMENTS {baseDir} ${HOME} ${0} ${01} ${skill_dir} ${ARGUMENTS:-x} ${ 1 } ${}",
		"${${1}}": "${one}", "${99999999999}": "${99999999999}", "`${1}`": "`one`",
	}
	for in, want := range tests {
		p.Body = in
		if got := inner(t, p, nil); got != want {
			t.Errorf("%q: %q; want %q", in, got, want)
		}
	}
	p.Arguments = nil
	p.Body = "[${ARGUMENTS}] ${1}"
	if got := inner(t, p, nil); got != "[] ${1}" {
		t.Errorf("without arguments: %q", got)
	}
}

func TestInlineCommands(t *testing.T) {
	long := strings.Repeat("é", maxCommandBytes)
	s := &script{answers: map[string]Result{
		"ok": {Stdout: " out\n\n"}, "vars": {Stdout: "${1} !`ok`"}, "fail": {ExitCode: 2, Stderr: " no such\n", Stdout: "x"}, "quiet": {ExitCode: 3},
		"slow": {TimedOut: true, ExitCode: -1}, "none": {Err: errors.New("bash is missing")}, "a\nb": {Stdout: "block\n"}, "long": {Stdout: long}, "${1}": {Stdout: "text"},
	}}
	tests := map[string]string{
		"x !`ok` y": "x out y", "x\t!`ok`": "x\tout", "!`vars`": "${1} !`ok`", "!`fail`": "[error: no such]", "!`quiet`": "[error: exit code 3]",
		"!`slow`": "[timeout after 10s]", "!`none`": "[sandbox error: bash is missing]", "a\n```!\na\nb\n```\nc": "a\nblock\nc", "!`long`": long[:maxCommandBytes],
		"!`${1}` ${1}": "text arg",
	}
	for in, want := range tests {
		p := page(in)
		p.Arguments = []string{"arg", "`rm`"}
		if got := inner(t, p, s); got != want {
			t.Errorf("%q: %.80q; want %.80q", in, got, want)
		}
	}
	p := page("!`echo ${1}`")
	p.Arguments = []string{"a; rm -rf /", "$(x)"}
	s.ran = nil
	inner(t, p, s)
	c := s.ran[0]
	if !slices.Equal(c.Argv, []string{"bash", "-c", "echo ${1}", "demo", "a; rm -rf /", "$(x)"}) || c.Dir != "/s/demo" || c.Timeout > commandTimeout || c.Timeout <= 0 || c.MaxOutput != 65536 {
		t.Errorf("%+v", c)
	}
	wantEnv := []string{"SKILL_DIR=/s/demo", "CLAUDE_SKILL_DIR=/s/demo", "SESSION_ID=session-0123abcd", "CLAUDE_SESSION_ID=session-0123abcd", "ARGUMENTS=a; rm -rf / $(x)"}
	if !slices.Equal(c.Env, wantEnv) {
		t.Errorf("%q", c.Env)
	}
	p.Shell, s.ran = "powershell", nil
	s.answers["-NonInteractive"] = Result{}
	inner(t, p, s)
	if !slices.Equal(s.ran[0].Argv, []string{"pwsh", "-NoProfile", "-NonInteractive", "-Command", "echo ${1}"}) {
		t.Errorf("%q", s.ran[0].Argv)
	}
}

func TestAtMost32Commands(t *testing.T) {
	s := &script{answers: map[string]Result{"a": {Stdout: "x"}}}
	got := inner(t, page(strings.Repeat("!`a` ", 34)), s)
	if len(s.ran) != 32 || got != strings.Repeat("x ", 32)+"[error: too many inline commands] [error: too many inline commands]" {
		t.Errorf("%d ran: %q", len(s.ran), got)
	}
}

func TestWhatIsNotTrustedRunsNothing(t *testing.T) {
	s := &script{}
	p := page("a !`b ${1}` ${1} </skill_content> </skill_resource>")
	p.Trusted, p.Arguments = false, []string{"</skill_content>"}
	p.Dir, p.AllowedTools = "/x/</skill_content>", []string{"</skill_content>"}
	text, err := p.Render(t.Context(), s)
	if err != nil || strings.Count(text, "</skill_content>") != 1 || strings.Contains(text, "</skill_resource>") {
		t.Error(text, err)
	}
	p.Dir = "/s/demo"
	want := "a !`b ${1}` &lt;/skill_content> &lt;/skill_content> &lt;/skill_resource>\n\n[inline commands not executed: skill is untrusted]"
	if got := inner(t, p, s); got != want || len(s.ran) != 0 {
		t.Errorf("got %q, ran %v", got, s.ran)
	}
	p.Body = "no `command`"
	if got := inner(t, p, s); got != p.Body {
		t.Errorf("a note without a command: %q", got)
	}
	trusted := page("a !`b`")
	if got := inner(t, trusted, nil); got != "a !`b`" {
		t.Errorf("without a runner: %q", got)
	}
}

func TestRenderIsBounded(t *testing.T) {
	p := page(strings.Repeat("${ARGUMENTS}", 80_000))
	p.Arguments = []string{strings.Repeat("x", 100_000)}
	if _, err := p.Render(t.Context(), nil); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := page("!`a`").Render(ctx, &script{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
