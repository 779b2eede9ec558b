package skill

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		matcher, tool, subject string
		want                   bool
	}{
		{"*", "anything", "", true}, {"Bash", "exec", "ls", true}, {"exec", "exec", "", true}, {"bash", "exec", "", false}, {"Bash", "read_file", "", false},
		{"Edit|Write", "write_file", "", true}, {"Edit | Write", "apply_patch", "", true}, {"Edit|Write", "read", "", false}, {"read*", "readTextFile", "", true},
		{"R?ad", "view_image", "", true}, {"[rR]ead", "read", "", true}, {"[!r]*", "read", "", true}, {"[!rR]*", "read", "", false}, {"Bash*", "exec", "", true},
		{"Bash(git:*)", "exec", "git status", true}, {"Bash(git:*)", "exec", "git", true}, {"Bash(git:*)", "exec", "gitk", false}, {"Bash(git:*)", "exec", "ls git x", false},
		{"Bash(git commit:*)", "shell_command", "git commit -m x", true}, {"Bash(rm *)", "exec", "rm -rf /a/b", true}, {"Bash(*rm -rf*)", "exec", "cd x\nrm -rf y", true},
		{"Bash(ls)", "exec", "ls", true}, {"Bash(ls)", "exec", "ls x", false}, {"Read(*.env)", "read_file", "a/b/.env", true}, {"Read(*.env)", "read_file", "a/b", false},
		{"Bash(a|b*)|Read", "exec", "a|bc", true}, {"Bash(a|b*)|Read", "read", "x", true}, {"Bash(a(b))", "exec", "a(b)", true},
		{"*(x)", "exec", "x", true}, {"*(x)", "exec", "y", false}, {"exec(x)", "exec", "x", true}, {"", "exec", "", false}, {"[", "[", "", true}, {"[z-a]", "[z-a]", "", true},
		{"Bash(a.b)", "exec", "axb", false}, {"Bash([ab]c*)", "exec", "bcd", true}, {"Bash(é?)", "exec", "éa", true}, {"Bash(\xff*)", "exec", "x", false}, {"Skill", "skill_load", "", true},
	}
	for _, tt := range tests {
		if got := Match(tt.matcher, tt.tool, tt.subject); got != tt.want {
			t.Errorf("%q, %s, %q: %v", tt.matcher, tt.tool, tt.subject, got)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("Bash(git:*)|[a-z]?*", "exec", "git x")
	f.Fuzz(func(t *testing.T, matcher, tool, subject string) {
		got := Match(matcher, tool, subject)
		if got && !strings.Contains(matcher, "(") && !Match(matcher, tool, "") {
			t.Errorf("%q matches %q only with the subject %q", matcher, tool, subject)
		}
		if plain := tool != "" && strings.TrimSpace(tool) == tool && !strings.ContainsAny(tool, "*?[(|"); plain && !Match(tool, tool, subject) {
			t.Errorf("%q does not match its own name", tool)
		}
	})
}

func TestSubject(t *testing.T) {
	tests := []struct{ tool, input, want string }{
		{"exec", `{"command":"git","args":["commit","-m","a b"]}`, "git commit -m a b"}, {"skill_run", `{"command":"ls -l"}`, "ls -l"},
		{"shell_command", `{"command":["ls","-l"]}`, "ls -l"}, {"run_skill_script", `{"script":"a.sh","args":"-x y","command":"no"}`, "a.sh -x y"},
		{"read_file", `{"path":"a"}`, "a"}, {"read_file", `{"file_path":"b"}`, "b"}, {"write", `{"path":5,"file_path":"b"}`, "b"}, {"write", `{}`, ""}, {"exec", `{"command":7}`, ""}, {"unknown", `{"command":"x"}`, ""},
	}
	for _, tt := range tests {
		var input map[string]any
		if err := json.Unmarshal([]byte(tt.input), &input); err != nil {
			t.Fatal(err)
		}
		if got := Subject(tt.tool, input); got != tt.want {
			t.Errorf("%s %s: %q; want %q", tt.tool, tt.input, got, tt.want)
		}
	}
}

func TestPermits(t *testing.T) {
	tests := []struct {
		name    string
		allowed []string
		tool    string
		line    string
		want    bool
	}{
		{"no list", nil, "skill_run", "x", true}, {"star", []string{"*"}, "skill_run", "x", true}, {"by name", []string{"skill_run"}, "skill_run", "x", true},
		{"by class", []string{"Bash"}, "skill_run", "a;b", true}, {"other class", []string{"Read"}, "skill_run", "x", false}, {"read class", []string{"Read"}, "read_skill_resource", "", true},
		{"a tool of the profile is named, so the class does not count", []string{"Bash", "read_skill_resource"}, "run_skill_script", "x", false},
		{"a tool of the other profile does not matter", []string{"Bash", "read_skill_resource"}, "skill_run", "x", true},
		{"pattern", []string{"Bash(python3:*)"}, "skill_run", "python3 a.py", true}, {"pattern, other", []string{"Bash(python3:*)"}, "skill_run", "node a.js", false},
		{"pattern, glob", []string{"Bash(scripts/*.sh *)"}, "run_skill_script", "scripts/a.sh x", true}, {"pattern for reading", []string{"Read(*)"}, "read_skill_resource", "", false},
		{"class of reading does not run", []string{"Read", "Write"}, "run_skill_script", "x", false}, {"case", []string{"bash"}, "skill_run", "x", false},
		{"never restricted", []string{"Read"}, "skill_load", "", true},
	}
	for _, tt := range tests {
		if got := Permits(tt.allowed, tt.tool, tt.line); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	for _, line := range []string{"git x; rm y", "git x && y", "git x | y", "git x > y", "git x < y", "git `x`", "git $(x)", "git x\ny", "git x &"} {
		if Permits([]string{"Bash(git:*)"}, "skill_run", line) {
			t.Errorf("%q is taken for one command", line)
		}
	}
	if !Permits([]string{"Bash(python3:*)"}, "run_skill_script", "scripts/a.py x", "python3 scripts/a.py x") {
		t.Error("with the interpreter before it")
	}
	if got, want := Refusal("s", "skill_run", []string{"Read", "Write"}), "Skill 's' does not permit tool 'skill_run'; allowed-tools: Read, Write"; got != want {
		t.Error(got)
	}
}
