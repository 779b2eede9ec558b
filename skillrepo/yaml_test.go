package skillrepo

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
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

func TestParseMapping(t *testing.T) {
	laughs := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'h'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	tests := []struct{ name, in, want, diag, fail string }{
		{"quote-retry", "description: Use when: asked", `{"description":"Use when: asked"}`, "only with some values quoted", ""},
		{"retry escapes", `description: a: "b" \c`, `{"description":"a: \"b\" \\c"}`, "only with some values quoted", ""},
		{"retry leaves good lines", "a: [1]\nb: x: y", `{"a":[1],"b":"x: y"}`, "only with some values quoted", ""},
		{"retry quotes what is no YAML alone", "a: [b\nc: d", `{"a":"[b","c":"d"}`, "only with some values quoted", ""},
		{"quoted values are not touched", "a: \"x\" y: z", "", "", "not valid YAML"},
		{"still broken", "a: b\n\tc: d", "", "", "not valid YAML"},
		{"duplicate keys", "a: 1\nb: 2\na: 3", `{"a":3,"b":2}`, `the key "a" more than once`, ""},
		{"duplicates within", "m: {k: 1, k: 2}", `{"m":{"k":2}}`, `the key "k" more than once`, ""},
		{"aliases", "a: &x [1]\nb: *x", `{"a":[1],"b":[1]}`, "", ""},
		{"merge keys are keys", "a: &x {k: 1}\nb: {<<: *x}", `{"a":{"k":1},"b":{"<<":{"k":1}}}`, "", ""},
		{"many laughs", laughs, "", "", "stand for more than 10000 nodes"},
		{"long laughs", "a: &x " + strings.Repeat("y", 30000) + "\nb: [" + strings.Repeat("*x,", 9000) + "*x]", "", "", "or 1048576 bytes"},
		{"an alias of its own", "a: &x [*x]", "", "", "levels deep"},
		{"a wide alias of its own", "a: &x [*x, *x]", "", "", "levels deep"},
		{"unknown alias", "a: *x", `{"a":"*x"}`, "only with some values quoted", ""},
		{"deep", "a: " + strings.Repeat("[", 300) + strings.Repeat("]", 300), "", "", "levels deep"},
		{"deeper than the parser goes", "a:\n " + strings.Repeat("[", 30000), "", "", "not valid YAML"},
		{"a list", "- a", "", "", "not a YAML mapping"},
		{"a scalar", "just text", "", "", "not a YAML mapping"},
		{"nothing", "", "", "", "not a YAML mapping"},
		{"only a comment", "# hi", "", "", "not a YAML mapping"},
		{"two documents", "a: 1\n...\n--- {b: 2}", `{"a":1}`, "more than one YAML document", ""},
		{"control characters", "a: \x01", "", "", "not valid YAML"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := &notes{}
			m, err := parseMapping(tt.in, n)
			if tt.want == "" {
				if err == nil || !strings.Contains(err.Error(), tt.fail) {
					t.Fatalf("error %v; want %q", err, tt.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(appendJSON(nil, m.node)); got != tt.want {
				t.Errorf("got %s; want %s", got, tt.want)
			}
			if got := messages(n.list); !strings.Contains(got, tt.diag) || (tt.diag == "") != (got == "") {
				t.Errorf("diagnostics %q; want %q", got, tt.diag)
			}
			if m.mended != (tt.diag != "") {
				t.Errorf("mended is %v", m.mended)
			}
		})
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
		fr, err := divide(raw, true, n)
		if err != nil {
			return
		}
		m, err := parseMapping(fr.yaml, n)
		if err != nil {
			return
		}
		if j := appendJSON(nil, m.node); !json.Valid(j) {
			t.Fatalf("not JSON: %s", j)
		}
		s := &Skill{dirName: "demo"}
		if err := s.fill(m, n); err == nil && (s.Name == "" || s.Description == "") {
			t.Fatalf("loaded without a name or a description: %q", text)
		}
	})
}
