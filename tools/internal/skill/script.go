package skill

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/skillrepo"
)

// A Script is one script of a skill to be run.
type Script struct {
	Skill, Script, Args string
	Timeout             time.Duration
	Budget              int

	Longer func(process.Result) string // how to get more time
	Start  func(context.Context, process.Command) (process.Result, error)
}

// A ScriptResult is how a script ended.
type ScriptResult struct {
	Output  string // the tagged output
	Failure string // why it counts as failed, "" when it does not
}

// interpreters start scripts by their extension, the first that is installed.
var interpreters = map[string][][]string{
	".py": {{"python3"}, {"python"}},
	".js": {{"node"}}, ".mjs": {{"node"}}, ".cjs": {{"node"}},
	".ts": typescript, ".mts": typescript, ".tsx": typescript,
	".sh": {{"bash"}}, ".bash": {{"bash"}},
	".ps1": {{"pwsh", "-NoProfile", "-NonInteractive", "-File"}},
	".rb":  {{"ruby"}}, ".pl": {{"perl"}}, ".php": {{"php"}},
	".r": {{"Rscript"}}, ".R": {{"Rscript"}},
}

var typescript = [][]string{{"bun"}, {"deno", "run", "--allow-read", "--allow-env"}, fetched}

// fetched is an interpreter that has to be fetched; it is not tried where commands
// have no network, for it would try to connect until its time is up.
var fetched = []string{"npx", "--yes", "tsx"}

var errNotFetched = errors.New("neither bun nor deno was found, and npx cannot fetch tsx because commands have no network")

// onWindows are the differences there.
var onWindows = map[string][][]string{
	".py": {{"python"}, {"py", "-3"}},
	".sh": {{"bash"}, powershellFile}, ".bash": {{"bash"}, powershellFile},
	".ps1": {powershellFile},
}

var powershellFile = []string{"powershell", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File"}

func interpretersOf(script string) [][]string {
	ext := path.Ext(script)
	if list, ok := onWindows[ext]; ok && runtime.GOOS == "windows" {
		return list
	}
	return interpreters[ext]
}

// RunScript runs a script of an activated skill, without a shell. Errors are for
// what was wrong before it started.
func (s *Session) RunScript(ctx context.Context, r Script) (*ScriptResult, error) {
	sk, file, err := s.script(ctx, r)
	if err != nil {
		return nil, err
	}
	args, ok := splitWords(r.Args)
	if !ok {
		return nil, errorf(fault.BadInput, "Invalid parameter 'args': Malformed script arguments: unmatched quotes or escapes")
	}
	res, err := s.interpret(ctx, r, sk, file, args)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, process.ErrEnding) {
			return nil, err
		}
		reason := plain(err)
		if start := new(process.StartError); errors.As(err, &start) && start.Command == file {
			reason = start.Err // about the script itself
		}
		way := "Ensure the interpreter is installed and on PATH."
		if errors.Is(err, process.ErrNotExecutable) && interpretersOf(file) == nil {
			way = "Make it executable (chmod +x), or give it the extension of its language."
		}
		return nil, errorf(fault.Unavailable, "Failed to execute '%s' in skill '%s': %v. %s", r.Script, r.Skill, reason, way)
	}
	if res.Cancelled {
		return nil, context.Canceled
	}
	return s.scriptResult(r, res), nil
}

// script makes the checks of a call in their order and finds the file.
func (s *Session) script(ctx context.Context, r Script) (*skillrepo.Skill, string, error) {
	p := strings.ReplaceAll(r.Script, `\`, "/")
	if path.IsAbs(p) || filepath.IsAbs(r.Script) || slices.Contains(strings.Split(p, "/"), "..") {
		return nil, "", errorf(fault.BadInput, "Script path must be a relative path inside the activated skill directory")
	}
	lines := []string{line(r.Script, r.Args)}
	for _, argv := range interpretersOf(p) {
		lines = append(lines, line(strings.Replace(strings.Join(argv, " "), " --yes", "", 1), lines[0]))
	}
	sk, err := s.admitted(ctx, r.Skill, "run_skill_script", lines...)
	if err != nil {
		return nil, "", err
	}
	_, err = sk.Resource(p)
	switch {
	case errors.Is(err, skillrepo.ErrOutside):
		return nil, "", errorf(fault.OutsideWorkspace, "Resolved script path escapes the skill directory")
	case errors.Is(err, skillrepo.ErrDirectory), errors.Is(err, skillrepo.ErrNotRegular):
		return nil, "", errorf(fault.UnsupportedType, "Cannot canonicalize script '%s': %v", r.Script, innermost(err))
	case err != nil:
		return nil, "", errorf(fault.NotFound, "Script not found: %s (in skill '%s')", r.Script, r.Skill)
	}
	return sk, filepath.Join(sk.RealDir, filepath.FromSlash(path.Clean(p))), nil
}

// admitted finds a skill whose gate is open and whose allowed-tools permit a tool.
func (s *Session) admitted(ctx context.Context, name, tool string, lines ...string) (*skillrepo.Skill, error) {
	if !s.gateOpen(name) {
		return nil, errorf(fault.Denied, "Skill '%s' has not been activated. Call activate_skill first.", name)
	}
	sk, ok := s.engine.Repo.Get(ctx, name)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if !ok {
		return nil, errorf(fault.NotFound, "Skill '%s' not found in catalog", name)
	}
	if !Permits(sk.AllowedTools, tool, lines...) {
		return nil, errorf(fault.Denied, "%s", Refusal(name, tool, sk.AllowedTools))
	}
	return sk, nil
}

func line(first, rest string) string {
	if strings.TrimSpace(rest) == "" {
		return first
	}
	return first + " " + rest
}

// innermost is what went wrong, without the name it comes with.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// interpret starts the script with the first interpreter that is there.
func (s *Session) interpret(ctx context.Context, r Script, sk *skillrepo.Skill, file string, args []string) (res process.Result, err error) {
	c := process.Command{
		Dir: sk.RealDir, Stdout: true, Stderr: true, Keep: max(r.Budget/4, 1), Timeout: r.Timeout, Read: s.skillDirs(),
		Env: map[string]string{
			"SKILL_DIR": sk.Dir, "CLAUDE_SKILL_DIR": sk.Dir, "SKILL_NAME": sk.Name,
			"SESSION_ID": s.ID, "CLAUDE_SESSION_ID": s.ID, "PROJECT_DIR": s.engine.Files.Root(),
		},
	}
	list := interpretersOf(file)
	if list == nil {
		c.Name, c.Args = file, args
		return r.Start(ctx, c)
	}
	for _, argv := range list {
		if slices.Equal(argv, fetched) && !s.engine.online() {
			return res, errNotFetched
		}
		c.Name, c.Args = argv[0], slices.Concat(argv[1:], []string{file}, args)
		if res, err = r.Start(ctx, c); !errors.Is(err, process.ErrNoProgram) {
			break
		}
	}
	return res, err
}

func (s *Session) scriptResult(r Script, res process.Result) *ScriptResult {
	code := res.ExitCode
	if res.Signal != "" || res.TimedOut {
		code = -1
	}
	mode := "direct"
	if s.engine.Confined != nil && s.engine.Confined() {
		mode = "kernel"
	}
	stdout, _ := res.Stdout.Text(r.Budget / 4)
	stderr, _ := res.Stderr.Text(r.Budget / 4)
	var b strings.Builder
	fmt.Fprintf(&b, "<script_output skill=\"%s\" script=\"%s\" exit_code=\"%d\" sandbox=\"%s\">\n", Escape(r.Skill), Escape(r.Script), code, mode)
	b.WriteString(stdout)
	if stdout != "" && !strings.HasSuffix(stdout, "\n") {
		b.WriteByte('\n')
	}
	if stderr = strings.TrimSpace(stderr); stderr != "" {
		fmt.Fprintf(&b, "\n<stderr>\n%s</stderr>\n", stderr)
	}
	b.WriteString("</script_output>")
	out := &ScriptResult{Output: b.String()}
	switch {
	case res.TimedOut:
		out.Failure = fmt.Sprintf("Script '%s' in skill '%s' timed out after %gs", r.Script, r.Skill, r.Timeout.Seconds())
		if r.Longer != nil {
			out.Failure = strings.TrimSpace(out.Failure + "\n" + r.Longer(res))
		}
	case code != 0:
		out.Failure = fmt.Sprintf("Script '%s' exited with code %d", r.Script, code)
	}
	if refused := strings.Join(res.Refused, "\n"); out.Failure != "" && refused != "" {
		out.Failure += "\n" + refused
	} else if refused != "" {
		out.Output += "\n" + refused
	}
	return out
}

// splitWords splits a line into words as a POSIX shell does, with quotes and
// backslashes, and expands nothing. ok is false when a quote or a backslash is open.
func splitWords(line string) (words []string, ok bool) {
	var word strings.Builder
	var quote rune
	begun, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			if quote == '"' && !strings.ContainsRune("$`\"\\\n", r) {
				word.WriteByte('\\')
			}
			if r != '\n' {
				word.WriteRune(r)
			}
			escaped = false
		case quote == '\'' && r != '\'', quote == '"' && r != '"' && r != '\\':
			word.WriteRune(r)
		case r == '\\':
			escaped, begun = true, true
		case quote != 0:
			quote = 0
		case r == '\'' || r == '"':
			quote, begun = r, true
		case strings.ContainsRune(" \t\n\r", r):
			if begun {
				words = append(words, word.String())
				word.Reset()
			}
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words, quote == 0 && !escaped
}
