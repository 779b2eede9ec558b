package skillrepo

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const only = ". Only ['allowed-tools', 'compatibility', 'description', 'license', 'metadata', 'name'] are allowed."

func TestStrictRules(t *testing.T) {
	long := strings.Repeat("a", 65)
	tests := []struct {
		name, in string
		want     []string
	}{
		{"valid", md("demo", "d"), nil},
		{"all fields", "---\nname: demo\ndescription: d\nlicense: MIT\ncompatibility: x\nallowed-tools: a b\nmetadata:\n  a: 1\n  b:\n  - c\n---\n", nil},
		{"carriage returns", strings.ReplaceAll(md("demo", "d"), "\n", "\r\n"), nil},
		{"full width letters", md("ｄｅｍｏ", "d"), nil},
		{"closed within a line", "---\nname: demo\ndescription: a---b", nil},
		{"frontmatter ends at any ---", "---\nname: demo\nlicense: a---b\ndescription: d\n---\n", []string{"Missing required field in frontmatter: description"}},
		{"not UTF-8", "---\nname: demo\ndescription: d\n---\n\xff", []string{"SKILL.md is not valid UTF-8"}},
		{"byte order mark", "\ufeff" + md("demo", "d"), []string{"SKILL.md must start with YAML frontmatter (---)"}},
		{"blank line", "\n" + md("demo", "d"), []string{"SKILL.md must start with YAML frontmatter (---)"}},
		{"not closed", "---\nname: demo\n", []string{"SKILL.md frontmatter not properly closed with ---"}},
		{"empty frontmatter", "---\n---\n", []string{"SKILL.md frontmatter must be a YAML mapping"}},
		{"a list", "---\n- a\n---\n", []string{"SKILL.md frontmatter must be a YAML mapping"}},
		{"syntax", "---\nname: a: b\n---\n", []string{"Invalid YAML in frontmatter: line 2: mapping values are not allowed in this context"}},
		{"flow list", "---\nallowed-tools: [a]\n---\n", []string{"Invalid YAML in frontmatter: line 2: a flow list or mapping is not allowed"}},
		{"flow mapping", "---\nmetadata: {}\n---\n", []string{"Invalid YAML in frontmatter: line 2: a flow list or mapping is not allowed"}},
		{"duplicate key", "---\nname: a\nname: b\n---\n", []string{`Invalid YAML in frontmatter: line 3: the key "name" is repeated or not text`}},
		{"anchor", "---\nname: &a b\n---\n", []string{"Invalid YAML in frontmatter: line 2: an anchor is not allowed"}},
		{"tag", "---\nname: !!str b\n---\n", []string{"Invalid YAML in frontmatter: line 2: a tag is not allowed"}},
		{"unexpected", "---\nzz: 1\nname: demo\nhooks: 1\ndescription: d\n---\n", []string{"Unexpected fields in frontmatter: hooks, zz" + only}},
		{"order", "---\nx: 1\n---\n", []string{"Unexpected fields in frontmatter: x" + only, "Missing required field in frontmatter: name", "Missing required field in frontmatter: description"}},
		{"empty values", "---\nname:\ndescription: ' '\ncompatibility:\n---\n", []string{"Field 'name' must be a non-empty string", "Field 'description' must be a non-empty string"}},
		{"not scalars", "---\nname:\n- a\ndescription:\n  a: b\ncompatibility:\n- a\n---\n",
			[]string{"Field 'name' must be a non-empty string", "Field 'description' must be a non-empty string", "Field 'compatibility' must be a string"}},
		{"every scalar is text", "---\nname: demo\ndescription: 12\ncompatibility: true\n---\n", nil},
		{"name rules", md("-A--b_", "d"), []string{"Skill name '-A--b_' must be lowercase", "Skill name cannot start or end with a hyphen", "Skill name cannot contain consecutive hyphens",
			"Skill name '-A--b_' contains invalid characters. Only letters, digits, and hyphens are allowed.", "Directory name 'demo' must match skill name '-A--b_'"}},
		{"long name", md(long, "d"), []string{"Skill name '" + long + "' exceeds 64 character limit (65 chars)", "Directory name 'demo' must match skill name '" + long + "'"}},
		{"letters of any script", md("技能", "d"), []string{"Directory name 'demo' must match skill name '技能'"}},
		{"lengths count characters", md("demo", strings.Repeat("é", 1024)), nil},
		{"long description", md("demo", strings.Repeat("é", 1025)), []string{"Description exceeds 1024 character limit (1025 chars)"}},
		{"untrimmed length", md("demo", "'"+strings.Repeat("x", 1024)+" '"), []string{"Description exceeds 1024 character limit (1025 chars)"}},
		{"long compatibility", "---\nname: demo\ndescription: d\ncompatibility: " + strings.Repeat("c", 501) + "\n---\n", []string{"Compatibility exceeds 500 character limit (501 chars)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := realTempDir(t)
			write(t, dir, map[string]string{"demo/SKILL.md": tt.in})
			rep := Validate(t.Context(), wide(filepath.Join(dir, "demo")), "given/demo")
			if !slices.Equal(rep.Errors, tt.want) || rep.Dir != "given/demo" {
				t.Errorf("got  %q\nwant %q", rep.Errors, tt.want)
			}
		})
	}
}

func TestStrictPlaces(t *testing.T) {
	dir := realTempDir(t)
	write(t, dir, map[string]string{
		"good/SKILL.md": md("good", "d"), "lower/skill.md": md("lower", "d"), "mixed/Skill.md": md("mixed", "d"), "empty/": "", "file": "x",
		"link": "-> good", "out/SKILL.md": "-> ../good/SKILL.md",
	})
	tests := []struct {
		path string
		want []string
	}{
		{"good", nil}, {"good/SKILL.md", nil}, {"lower", nil}, {"mixed", []string{"Missing required file: SKILL.md"}}, {"mixed/Skill.md", []string{"Missing required file: SKILL.md"}},
		{"empty", []string{"Missing required file: SKILL.md"}}, {"missing", []string{"Path does not exist: P"}}, {"missing/SKILL.md", []string{"Path does not exist: P"}},
		{"file", []string{"Not a directory: P"}}, {"link", []string{"Directory name 'link' must match skill name 'good'"}}, {"out", []string{"Missing required file: SKILL.md"}},
	}
	for _, tt := range tests {
		if rep := Validate(t.Context(), wide(filepath.Join(dir, tt.path)), "P"); !slices.Equal(rep.Errors, tt.want) {
			t.Errorf("%s: %q; want %q", tt.path, rep.Errors, tt.want)
		}
	}
}

func TestStrictWarningsDoNotJudge(t *testing.T) {
	dir := realTempDir(t)
	write(t, dir, map[string]string{"good/SKILL.md": "---\nname: good\ndescription: d\nmetadata: x\n---\n", "good/out": "-> /etc/passwd", "good/.git/x": "y"})
	rep := Validate(t.Context(), wide(filepath.Join(dir, "good")), "good")
	j, _ := json.Marshal(rep)
	if want := `{"dir":"good","errors":[],"warnings":["metadata is not a mapping and is ignored","\"out\" is left out: leads outside the directory"]}`; string(j) != want {
		t.Errorf("got  %s\nwant %s", j, want)
	}
	write(t, dir, map[string]string{"bad/SKILL.md": "text"})
	rep = Validate(t.Context(), wide(filepath.Join(dir, "bad")), "bad")
	if len(rep.Errors) != 1 || len(rep.Warnings) != 1 || !strings.Contains(rep.Warnings[0], "has no frontmatter") {
		t.Errorf("%+v", rep)
	}
}

func FuzzValidate(f *testing.F) {
	f.Add(md("demo", "d"))
	f.Add("---\nname: &x [*x]\n---")
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		write(t, dir, map[string]string{"demo/SKILL.md": text})
		rep := Validate(t.Context(), Root{FS: wide(dir).FS, Dir: filepath.Join(dir, "demo"), Path: strings.TrimPrefix(dir, "/") + "/demo"}, "demo")
		if rep.Errors == nil || rep.Warnings == nil {
			t.Error("a list is missing")
		}
	})
}
