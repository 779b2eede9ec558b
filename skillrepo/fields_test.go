package skillrepo

import (
	"slices"
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	long := strings.Repeat("a", 201)
	tests := []struct{ line, want, diag, fail string }{
		{"name: demo", "demo", "", ""},
		{"name: ' demo '", "demo", "", ""},
		{"name: ｄｅｍｏ", "demo", "", ""},
		{"name: other", "other", "Directory name 'demo' must match skill name 'other'", ""},
		{"name: My Skill", "My Skill", "must be lowercase", ""},
		{"name: 12", "12", "must match", ""},
		{"x: 1", "demo", `the directory's name "demo" is used`, ""},
		{"name:", "demo", "name is missing", ""},
		{"name: [a]", "demo", "name is missing", ""},
		{"name: " + long, "", "", "201 bytes"},
		{"name: " + long[1:], long[1:], "exceeds 64 character limit (200 chars)", ""},
		{"name: ..", "", "", "not allowed"},
		{"name: .", "", "", "not allowed"},
		{"name: a/b", "", "", "holds a slash"},
		{`name: a\b`, "", "", "holds a slash"},
		{"name: a／b", "", "", "holds a slash"}, // NFKC makes it one
		{`name: "a\nb"`, "", "", "control character"},
	}
	for _, tt := range tests {
		s, diags := one(t, "---\n"+tt.line+"\ndescription: d\n---\n")
		switch {
		case tt.fail != "":
			if s != nil || !strings.Contains(messages(diags), tt.fail) {
				t.Errorf("%q: %v, %v; want the error %q", tt.line, s, diags, tt.fail)
			}
		case s == nil || s.Name != tt.want || !strings.Contains(messages(diags), tt.diag) || (tt.diag == "") != (len(diags) == 0):
			t.Errorf("%q: %v, %v; want %q with %q", tt.line, s, diags, tt.want, tt.diag)
		}
	}
}

func TestDescription(t *testing.T) {
	tests := []struct{ line, want, diag, fail string }{
		{"description: Does it.", "Does it.", "", ""},
		{"description: >-\n  two\n  lines", "two lines", "", ""},
		{"description: 12", "12", "", ""},
		{"description: " + strings.Repeat("é", 1024), strings.Repeat("é", 1024), "", ""},
		{"description: " + strings.Repeat("é", 1025), strings.Repeat("é", 1025), "1025 characters", ""},
		{"x: 1", "", "", "description is missing"},
		{"description: ' '", "", "", "description is empty"},
		{"description: {a: b}", "", "", "description is not text"},
	}
	for _, tt := range tests {
		s, diags := one(t, "---\nname: demo\n"+tt.line+"\n---\n")
		switch {
		case tt.fail != "":
			if s != nil || !strings.Contains(messages(diags), tt.fail) {
				t.Errorf("%q: %v, %v; want the error %q", tt.line, s, diags, tt.fail)
			}
		case s == nil || s.Description != tt.want || !strings.Contains(messages(diags), tt.diag):
			t.Errorf("%q: %v, %v; want %q with %q", tt.line, s, diags, tt.want, tt.diag)
		}
	}
}

func TestAllowedTools(t *testing.T) {
	tests := []struct {
		in   string
		want []string
		diag string
	}{
		{"Read, Write", []string{"Read", "Write"}, ""},
		{`"Read, Bash(git:*)"`, []string{"Read", "Bash(git:*)"}, ""},
		{"[Read, Glob]", []string{"Read", "Glob"}, ""},
		{"Bash(python3 *) Read", []string{"Bash(python3 *)", "Read"}, ""},
		{"Bash(cmd:a,cmd:b)", []string{"Bash(cmd:a,cmd:b)"}, ""},
		{"Read Bash(a, (b) c) X", []string{"Read", "Bash(a, (b) c)", "X"}, ""},
		{"Read Bash(a b, c", []string{"Read", "Bash(a b, c"}, ""},
		{"a), b", []string{"a)", "b"}, ""},
		{"\n - ' Read '\n - ''\n - [x]\n - 5", []string{"Read", "5"}, "an item of allowed-tools is not text"},
		{"", nil, "restricts nothing"},
		{"' , '", nil, "restricts nothing"},
		{"[]", nil, "restricts nothing"},
		{"{a: b}", nil, "restricts nothing"},
	}
	for _, tt := range tests {
		s, diags := one(t, "---\nname: demo\ndescription: d\nallowed-tools: "+tt.in+"\n---\n")
		if s == nil || !slices.Equal(s.AllowedTools, tt.want) || !strings.Contains(messages(diags), tt.diag) || (tt.diag == "") != (len(diags) == 0) {
			t.Errorf("%q: %q, %v; want %q with %q", tt.in, s.AllowedTools, diags, tt.want, tt.diag)
		}
	}
}

func TestPathsField(t *testing.T) {
	tests := []struct {
		in   string
		want []string
		diag string
	}{
		{"['*.py', \"tests/**\"]", []string{"*.py", "tests/**"}, ""},
		{"'*.py, src/{a,b}/*.c  [x, ]y'", []string{"*.py", "src/{a,b}/*.c", "[x, ]y"}, ""},
		{"'{a,b'", nil, "is dropped: a { is not closed"},
		{"'[a'", nil, "is dropped: a [ is not closed"},
		{"'../x, *.go'", []string{"*.go"}, "holds .."},
		{"{a: b}", nil, "neither a list nor text"},
		{"", nil, ""},
	}
	for _, tt := range tests {
		s, diags := one(t, "---\nname: demo\ndescription: d\npaths: "+tt.in+"\n---\n")
		if s == nil || !slices.Equal(s.Paths, tt.want) || !strings.Contains(messages(diags), tt.diag) || (tt.diag == "") != (len(diags) == 0) {
			t.Errorf("%q: %q, %v; want %q with %q", tt.in, s.Paths, diags, tt.want, tt.diag)
		}
	}
}

func TestOtherFields(t *testing.T) {
	s, diags := one(t, "---\nname: demo\ndescription: d\nlicense: MIT\ncompatibility: any\nshell: powershell\nmetadata: {a: 1}\ndepends_on: [x]\n---\n")
	if s.License != "MIT" || s.Compatibility != "any" || s.Shell != "powershell" || len(diags) != 0 {
		t.Errorf("%+v, %v", s, diags)
	}
	s, diags = one(t, "---\nname: demo\ndescription: d\nlicense: [a]\ncompatibility: {}\nshell: fish\nmetadata: 5\n---\n")
	if s.License != "" || s.Compatibility != "" || s.Shell != "bash" {
		t.Errorf("%+v", s)
	}
	for _, want := range []string{"license is not text", "compatibility is not text", "shell is neither", "metadata is not a mapping"} {
		if !strings.Contains(messages(diags), want) {
			t.Errorf("no diagnostic %q in %v", want, diags)
		}
	}
}

// TestOlderFrontmatter: instructions in the frontmatter are the body.
func TestOlderFrontmatter(t *testing.T) {
	s, diags := one(t, "---\nname: demo\ndescription: d\ninstructions: |\n  Do this.\n  Then that.\nresources:\n  - a.md\n---\n# About this folder\n")
	if s == nil {
		t.Fatal(diags)
	}
	if body, err := s.Body(); body != "Do this.\nThen that." || err != nil {
		t.Errorf("%q %v", body, err)
	}
	if got := messages(diags); !strings.Contains(got, "instructions in the frontmatter are an older form; they are used") || !strings.Contains(got, "resources in the frontmatter is an older form") {
		t.Error(got)
	}
	s, diags = one(t, "---\nname: demo\ndescription: d\ninstructions: [a]\n---\nBody.\n")
	if body, err := s.Body(); body != "Body.\n" || err != nil || !strings.Contains(messages(diags), "are ignored") {
		t.Errorf("%q %v %v", body, err, diags)
	}
}

// TestCommentInDescription: what a # cuts off is told, and only that.
func TestCommentInDescription(t *testing.T) {
	for line, told := range map[string]bool{
		"description: Fix issue #123 in C# code":         true,
		"description: Fix issue\t# 123":                  true,
		"description: 'Fix issue #123'":                  false,
		"description: \"Fix issue\" # 123":               false,
		"description: C#":                                false,
		"description: d\nlicense: MIT # see LICENSE":     false,
		"description: |\n  Fix issue #123\nlicense: MIT": false,
		"description: >- # folded\n  Fix issue #123":     false,
	} {
		s, diags := one(t, "---\nname: demo\n"+line+"\n---\n")
		if got := strings.Contains(messages(diags), "description ends before"); s == nil || got != told {
			t.Errorf("%s: %v", line, diags)
		}
	}
}
