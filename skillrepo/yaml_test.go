package skillrepo

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/skillrepo/internal/front"
)

func TestScalarsBecomeJSON(t *testing.T) {
	tests := map[string]string{
		"true": "true", "True": "true", "FALSE": "false", "tRue": `"tRue"`,
		"": "null", "~": "null", "null": "null", "NULL": "null", "nUll": `"nUll"`,
		"14": "14", "014": "14", "+7": "7", "-0": "0", "-012": "-12", "0": "0", "000": "0",
		"0x1F": "31", "0o17": "15", "0b1": `"0b1"`, "-0x1": `"-0x1"`, "0x": `"0x"`,
		"123456789012345678901234567890": "123456789012345678901234567890",
		"1.0":                            "1", "1.10": "1.1", ".5": "0.5", "1.": "1", "1e3": "1000", "-2.5E-2": "-0.025", "1e400": `"1e400"`,
		"yes": `"yes"`, "on": `"on"`, "1_000": `"1_000"`, "12:30": `"12:30"`, ".inf": `".inf"`, ".nan": `".nan"`,
		"2024-01-02": `"2024-01-02"`, "1.2.3": `"1.2.3"`, `"12"`: `"12"`, `'true'`: `"true"`, `"~"`: `"~"`,
		"!!str 12": "12", "!!int \"5\"": `"5"`, "|\n    12\n": `"12\n"`, "<b>&": `"<b>\u0026"`,
		"[1, x, {a: ~}]": `[1,"x",{"a":null}]`, "{1: 2, yes: 3, ~: 4}": `{"1":2,"yes":3,"~":4}`,
		"{[a, 1]: b}":            `{"[\"a\",1]":"b"}`,
		strings.Repeat("9", 400): `"` + strings.Repeat("9", 400) + `"`,
	}
	for in, want := range tests {
		s, diags := one(t, "---\nname: demo\ndescription: d\nx: "+in+"\n---\n")
		if s == nil {
			t.Errorf("%q: %v", in, diags)
			continue
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(s.Frontmatter, &got); err != nil {
			t.Errorf("%q: %v in %s", in, err, s.Frontmatter)
		}
		var a, b any
		if json.Unmarshal(got["x"], &a) != nil || json.Unmarshal([]byte(want), &b) != nil || fmt.Sprint(a) != fmt.Sprint(b) || fmt.Sprintf("%T", a) != fmt.Sprintf("%T", b) {
			t.Errorf("%q became %s; want %s", in, got["x"], want)
		}
		if len(diags) != 0 {
			t.Errorf("%q: unexpected diagnostics %v", in, diags)
		}
	}
}

func TestFrontmatterKeepsEveryKeyInOrder(t *testing.T) {
	s, _ := one(t, "---\nzeta: 1\nname: demo\nmetadata:\n  version: \"1.0\"\n  tags: [a]\ndescription: d\ntriggers: [x]\n---\n")
	want := `{"zeta":1,"name":"demo","metadata":{"version":"1.0","tags":["a"]},"description":"d","triggers":["x"]}`
	if string(s.Frontmatter) != want {
		t.Errorf("got %s\nwant %s", s.Frontmatter, want)
	}
}

func FuzzFrontmatter(f *testing.F) {
	for _, seed := range []string{
		"name: a\ndescription: b", "description: Use when: asked", "a: &x [*x]", "a: {b: {c: [1, ~]}}", "? [a]\n: b",
		"hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - {type: command, command: x, timeout: 5}", "paths: '{a,b}[c'",
		"allowed-tools: Bash(git:*), Read", "a: !!binary x", "%YAML 1.2\n---\na", "a: |\n  x\n b", "<<: *a", "- - - a",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := &notes{}
		raw := []byte("---\n" + text + "\n---\nbody")
		fr, err := front.Divide(raw, true, n.warn)
		if err != nil {
			return
		}
		m, err := front.ParseMapping(fr.YAML, n.warn)
		if err != nil {
			return
		}
		if j := front.AppendJSON(nil, m.Node); !json.Valid(j) {
			t.Fatalf("not JSON: %s", j)
		}
		s := &Skill{dirName: "demo"}
		if err := s.fill(m, n); err == nil && (s.Name == "" || s.Description == "") {
			t.Fatalf("loaded without a name or a description: %q", text)
		}
	})
}
