package skill

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/perstack-ai/perstack-base/skillrepo"
)

// aliases are the names by which skills written for other hosts know our tools.
var aliases = map[string]string{
	"exec": "Bash", "shell_command": "Bash", "exec_command": "Bash", "skill_run": "Bash", "run_skill_script": "Bash",
	"readTextFile": "Read", "readImageFile": "Read", "readPdfFile": "Read", "read": "Read", "read_file": "Read",
	"view_image": "Read", "read_skill_resource": "Read",
	"writeTextFile": "Write", "write": "Write", "write_file": "Write", "editTextFile": "Edit", "apply_patch": "Edit",
	"grep_files": "Grep", "list_dir": "LS", "todo": "TodoWrite", "clearTodo": "TodoWrite", "update_plan": "TodoWrite",
	"activate_skill": "Skill", "skill_load": "Skill",
}

// Alias is the tool's common name, "" without one.
func Alias(tool string) string { return aliases[tool] }

// Match reports whether a hook's matcher names the call of a tool with that subject.
func Match(matcher, tool, subject string) bool {
	for _, alt := range skillrepo.SplitMatcher(matcher) {
		name, pattern, qualified := strings.Cut(alt, "(")
		if qualified && !matchSubject(strings.TrimSuffix(pattern, ")"), subject) {
			continue
		}
		name = strings.TrimSpace(name)
		if name == "*" || matchGlob(name, tool) || Alias(tool) != "" && matchGlob(name, Alias(tool)) {
			return true
		}
	}
	return false
}

// matchSubject tries the pattern of Name(pattern): p:* is p or p and more words,
// anything else a glob.
func matchSubject(pattern, subject string) bool {
	if p, ok := strings.CutSuffix(pattern, ":*"); ok {
		return subject == p || strings.HasPrefix(subject, p+" ")
	}
	return matchGlob(pattern, subject)
}

// matchGlob tries a glob in which * crosses everything; ? is any one character and
// […] one of some. What is malformed stands for itself.
func matchGlob(pattern, s string) bool {
	if !strings.ContainsAny(pattern, "*?[") {
		return pattern == s
	}
	re, err := regexp.Compile(globSource(pattern))
	return err == nil && re.MatchString(s)
}

var class = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\[([!^]?)(\]?[^\]]*)\]`) })

func globSource(pattern string) string {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for pattern != "" {
		size := 1
		switch m := class().FindStringSubmatch(pattern); {
		case pattern[0] == '*':
			b.WriteString(`.*`)
		case pattern[0] == '?':
			b.WriteString(`.`)
		case m != nil && m[2] != "":
			size = len(m[0])
			b.WriteString(classSource(m[1] != "", m[2], m[0]))
		default:
			_, size = utf8.DecodeRuneInString(pattern)
			b.WriteString(regexp.QuoteMeta(pattern[:size]))
		}
		pattern = pattern[size:]
	}
	return b.String() + `\z`
}

// classSource writes a class, or literally what is none.
func classSource(not bool, members, literal string) string {
	src := "[" + strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, "^", `\^`).Replace(members) + "]"
	if not {
		src = "[^" + src[1:]
	}
	if _, err := regexp.Compile(src); err != nil {
		return regexp.QuoteMeta(literal)
	}
	return src
}

// Subject is what patterns of a matcher look at in a call: the command line of a
// tool that runs one, the path of any other, "" without either.
func Subject(tool string, input map[string]any) string {
	if Alias(tool) != "Bash" {
		return joined(input["path"], input["file_path"])
	}
	first := input["command"]
	switch tool {
	case "run_skill_script":
		first = input["script"]
	case "exec_command":
		first = input["cmd"]
	}
	line := joinTexts(first)
	if args := joinTexts(input["args"]); args != "" {
		line += " " + args
	}
	return line
}

// joined is the first of the values that says anything.
func joined(values ...any) string {
	for _, v := range values {
		if s := joinTexts(v); s != "" {
			return s
		}
	}
	return ""
}

// joinTexts is a text, or a list's texts joined by blanks.
func joinTexts(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var list []string
		for _, w := range v {
			if s, ok := w.(string); ok {
				list = append(list, s)
			}
		}
		return strings.Join(list, " ")
	}
	return ""
}
