package skill

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perstack-ai/perstack-base/tools/internal/outcut"
)

// Bounds of one rendering.
const (
	commandTimeout  = 10 * time.Second
	renderingTime   = 45 * time.Second
	maxCommands     = 32
	maxCommandBytes = 64 << 10 // of each command's output
	maxListedFiles  = 512
	maxRendered     = 16 << 20 // variables can multiply what the arguments hold
)

// A Page is one rendering of a skill: what is rendered, for whom.
type Page struct {
	Name         string
	Dir          string // the source directory, absolute
	Body         string // as skillrepo reads it
	Trusted      bool
	Shell        string   // bash or powershell
	AllowedTools []string // nil: none declared
	Files        []string // the skill's files in path order, SKILL.md included
	SkillFile    string   // how SKILL.md is spelled
	Session      string   // session-<8 hex>
	Arguments    []string
}

// A Command is an inline command to be run in the sandbox, in the skill directory.
type Command struct {
	Argv      []string
	Dir       string
	Write     []string // directories that it may write besides what every command may
	Env       []string // NAME=value, besides what every such command has
	Stdin     []byte   // nil: empty
	Timeout   time.Duration
	MaxOutput int // bytes of each stream that are of use
}

// A Result is what became of a Command.
type Result struct {
	Stdout, Stderr string
	ExitCode       int // -1 after a signal
	TimedOut       bool
	Err            error    // why it was not started
	Refused        []string // what the sandbox kept it from, a sentence each
}

// A Runner runs commands.
type Runner interface {
	Run(context.Context, Command) Result
}

// ErrTooLarge: variables made the text larger than anyone could read.
var ErrTooLarge = errors.New("the rendered skill exceeds 16777216 bytes")

// Render is the text that a model is shown. With a nil Runner, and for a skill that
// is not trusted, inline commands stay text. The only errors are ErrTooLarge and the
// context's: a command that fails is told in the text.
func (p *Page) Render(ctx context.Context, run Runner) (string, error) {
	body, err := p.body(ctx, run)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<skill_content name=\"%s\">\n%s\n\nSkill directory: %s\n", Escape(p.Name), body, p.guard(p.Dir))
	b.WriteString("Relative paths in this skill are relative to the skill directory.\n")
	if len(p.AllowedTools) > 0 {
		fmt.Fprintf(&b, "\n<allowed_tools>\nThis skill declares the following preferred/allowed tools: %s\n"+
			"Runtime enforcement currently applies to the built-in skill tools such as read_skill_resource and run_skill_script.\n"+
			"</allowed_tools>\n", p.guard(strings.Join(p.AllowedTools, ", ")))
	}
	b.WriteString(p.resources())
	b.WriteString("</skill_content>")
	return b.String(), nil
}

// body resolves variables and inline commands.
func (p *Page) body(ctx context.Context, run Runner) (string, error) {
	var b strings.Builder
	runs, found := p.Trusted && run != nil, false
	quota := quota{until: time.Now().Add(renderingTime)}
	for _, part := range pieces(p.Body) {
		switch {
		case part.command == "":
			p.substitute(&b, part.text)
		case runs:
			b.WriteString(p.execute(ctx, run, part.command, &quota))
		default:
			found = true
			b.WriteString(part.text)
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if b.Len() > maxRendered {
			return "", ErrTooLarge
		}
	}
	body := p.guard(strings.TrimSpace(b.String()))
	if found && !p.Trusted {
		body += "\n\n[inline commands not executed: skill is untrusted]"
	}
	return body, nil
}

// A quota is what the inline commands of one rendering may still use.
type quota struct {
	until time.Time
	used  int
}

// execute runs one inline command and returns what takes its place.
func (p *Page) execute(ctx context.Context, run Runner, script string, q *quota) string {
	left := time.Until(q.until)
	if q.used++; q.used > maxCommands || left <= 0 {
		return "[error: too many inline commands]"
	}
	r := run.Run(ctx, Command{
		Argv: p.argv(p.Shell, script), Dir: p.Dir, Env: p.Env(), Timeout: min(commandTimeout, left), MaxOutput: maxCommandBytes,
	})
	text := inlineText(r)
	for _, sentence := range r.Refused {
		text = strings.TrimSpace(text + "\n[" + sentence + "]")
	}
	return text
}

// inlineText is what a command printed, or how it failed.
func inlineText(r Result) string {
	switch stderr := outcut.Prefix(strings.TrimSpace(r.Stderr), maxCommandBytes); {
	case r.Err != nil:
		return fmt.Sprintf("[sandbox error: %v]", r.Err)
	case r.TimedOut:
		return fmt.Sprintf("[timeout after %ds]", int(commandTimeout.Seconds()))
	case r.ExitCode != 0 && stderr != "":
		return "[error: " + stderr + "]"
	case r.ExitCode != 0:
		return fmt.Sprintf("[error: exit code %d]", r.ExitCode)
	}
	return strings.TrimSpace(outcut.Prefix(r.Stdout, maxCommandBytes))
}

// argv starts a shell. The arguments are the shell's, never part of the script.
func (p *Page) argv(shell, script string) []string {
	if shell == "powershell" {
		return []string{"pwsh", "-NoProfile", "-NonInteractive", "-Command", script}
	}
	return append([]string{"bash", "-c", script, p.Name}, p.Arguments...)
}

// Env is what the skill's own commands, inline ones and hooks, know of it.
func (p *Page) Env() []string {
	return []string{
		"SKILL_DIR=" + p.Dir, "CLAUDE_SKILL_DIR=" + p.Dir, "SESSION_ID=" + p.Session, "CLAUDE_SESSION_ID=" + p.Session,
		"ARGUMENTS=" + strings.Join(p.Arguments, " "),
	}
}

// resources lists the files besides SKILL.md, "" without any.
func (p *Page) resources() string {
	var b strings.Builder
	n := 0
	for _, f := range p.Files {
		if f == p.SkillFile {
			continue
		}
		if n++; n <= maxListedFiles {
			fmt.Fprintf(&b, "  <file kind=\"%s\">%s</file>\n", kind(f), Escape(f))
		}
	}
	if n == 0 {
		return ""
	}
	if n > maxListedFiles {
		fmt.Fprintf(&b, "  … %d more files\n", n-maxListedFiles)
	}
	return "\n<skill_resources>\n" + b.String() + "</skill_resources>\n"
}

func kind(path string) string {
	switch dir, _, below := strings.Cut(path, "/"); {
	case !below:
		return "other"
	case dir == "scripts":
		return "script"
	case dir == "references", dir == "reference":
		return "reference"
	case dir == "assets":
		return "asset"
	}
	return "other"
}

// guard keeps the text of a discovered skill from closing the tags around it.
func (p *Page) guard(text string) string {
	if p.Trusted {
		return text
	}
	return Guard(text)
}

var closingTags = strings.NewReplacer("</skill_content>", "&lt;/skill_content>", "</skill_resource>", "&lt;/skill_resource>")

// Guard disarms the closing tags of skill text in what a discovered skill says.
func Guard(text string) string { return closingTags.Replace(text) }

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// Escape makes a name safe within a tag.
func Escape(name string) string { return escaper.Replace(name) }

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Z_]+|[1-9][0-9]{0,5})\}`) })

// substitute writes text with the variables that a skill may use replaced. Values
// are not looked at again, and every other ${…} stays as written. It stops when
// the result is too large to be of use.
func (p *Page) substitute(b *strings.Builder, text string) {
	for b.Len() <= maxRendered {
		at := variable().FindStringSubmatchIndex(text)
		if at == nil {
			b.WriteString(text)
			return
		}
		b.WriteString(text[:at[0]])
		if value, ok := p.value(text[at[2]:at[3]]); ok {
			b.WriteString(value)
		} else {
			b.WriteString(text[at[0]:at[1]])
		}
		text = text[at[1]:]
	}
}

// value is what a variable stands for.
func (p *Page) value(name string) (string, bool) {
	switch name {
	case "SKILL_DIR", "CLAUDE_SKILL_DIR":
		return p.Dir, true
	case "SESSION_ID", "CLAUDE_SESSION_ID":
		return p.Session, true
	case "ARGUMENTS":
		return strings.Join(p.Arguments, " "), true
	}
	if i, err := strconv.Atoi(name); err == nil && i <= len(p.Arguments) {
		return p.Arguments[i-1], true
	}
	return "", false
}
