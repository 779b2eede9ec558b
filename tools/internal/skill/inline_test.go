package skill

import (
	"slices"
	"strings"
	"testing"
)

func TestPieces(t *testing.T) {
	tests := []struct {
		name, body string
		want       []string // the commands
	}{
		{"none", "text `code` ! end", nil},
		{"at the start", "!`date`", []string{"date"}},
		{"after a blank", "Host: !`uname -s`.", []string{"uname -s"}},
		{"after a tab, on a second line", "a\n\t!`b`\nc !`d` !`e`", []string{"b", "d", "e"}},
		{"after another character", "a!`b` (!`c`)", nil},
		{"behind markers", "- !`a`\n> !`b`", []string{"a", "b"}},
		{"not closed on its line", "!`a\nb`", nil},
		{"empty", "!`` !` `", nil},
		{"a double backtick closes nothing", "!`a``", nil},
		{"in a longer code span", "`` !`a` `` and ``` !`b` ```", nil},
		{"in a code span over lines", "`` x\n!`a`\n`` !`b`", []string{"b"}},
		{"a code span ends with its paragraph", "`` x\n\n!`a` ``", []string{"a"}},
		{"a code span ends at a fence", "`` x\n```\n``\n```\n!`a`", []string{"a"}},
		{"unmatched runs are text", "`` !`a` ```", []string{"a"}},
		{"in a fence", "```\n!`a`\n```\n!`b`", []string{"b"}},
		{"in a fence with info", "```sh\n!`a`\n```", nil},
		{"in tildes", "~~~\n!`a`\n```\n!`b`\n~~~\n!`c`", []string{"c"}},
		{"in an indented fence", "      ```\n!`a`\n   ```\n!`b`", []string{"b"}},
		{"in a quoted fence", "> ```\n> !`a`\n> ```\n!`b`", []string{"b"}},
		{"in a list's fence", "1. ```\n   !`a`\n   ```\n!`b`", []string{"b"}},
		{"in an unclosed fence", "```\n!`a`\n\n!`b`", nil},
		{"a shorter run closes nothing", "````\n```\n!`a`\n````\n!`b`", []string{"b"}},
		{"a run with text closes nothing", "```\n``` x\n!`a`\n```", nil},
		{"backticks in the info open nothing", "``` x`y\n!`a`", []string{"a"}},
		{"block", "x\n```!\nrustc --version\nls\n```\ny", []string{"rustc --version\nls"}},
		{"block with a blank before !", "``` !\na\n````", []string{"a"}},
		{"block, longer", "`````!\n```\na\n```\n`````", []string{"```\na\n```"}},
		{"block, not closed", "```!\na\n", nil},
		{"block, empty", "```!\n\n```\n!`a`", []string{"a"}},
		{"block with more info", "```! x\na\n```\n```!sh\nb\n```", nil},
		{"block of tildes", "~~~!\na\n~~~", nil},
		{"block in a list or a quote", "- ```!\n  a\n  ```\n> ```!\n> b\n> ```", nil},
		{"block quoted by a longer fence", "````\n```!\na\n```\n````", nil},
		{"block quoted by tildes", "~~~md\n```!\na\n```\n!`b`\n~~~", nil},
		{"rule and list are no containers of text", "---\n* * *\n!`a`", []string{"a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, p := range pieces(tt.body) {
				if p.command != "" {
					got = append(got, p.command)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q; want %q", got, tt.want)
			}
		})
	}
}

func FuzzPieces(f *testing.F) {
	f.Add("a !`b`\n```!\nc\n```\n`` !`d` ``")
	f.Add("> - ```\n!`x`\n~~~")
	f.Fuzz(func(t *testing.T, body string) {
		all := ""
		for _, p := range pieces(body) {
			all += p.text
			if p.command != "" && !strings.Contains(p.text, p.command) {
				t.Errorf("%q is not in %q", p.command, p.text)
			}
		}
		if all != body {
			t.Errorf("the pieces of %q make %q", body, all)
		}
		// What a fence quotes never runs.
		longer := strings.Repeat("`", longestRun(body)+3)
		for _, p := range pieces(longer + "\n" + body + "\n" + longer) {
			if p.command != "" {
				t.Errorf("%q runs out of a fence: %q", body, p.command)
			}
		}
	})
}

func longestRun(s string) (longest int) {
	for i := 0; i < len(s); i++ {
		if s[i] == '`' {
			longest = max(longest, runLength(s[i:]))
		}
	}
	return longest
}

// Megabytes of backticks must not take minutes.
func TestHostileBodiesEnd(t *testing.T) {
	growing := ""
	for n := 2; len(growing) < 1<<20; n++ {
		growing += strings.Repeat("`", n) + " "
	}
	for _, body := range []string{strings.Repeat("``a``\n", 170_000), growing, strings.Repeat("`", 1<<20), strings.Repeat("``a ``` b\n", 100_000), strings.Repeat("> ", 1<<19), strings.Repeat("!`", 1<<19)} {
		pieces(body)
	}
}
