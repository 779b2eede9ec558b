package skillrepo

import (
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/skillrepo/internal/front"
)

func TestDivide(t *testing.T) {
	const fm = "name: demo\ndescription: d\n"
	tests := []struct {
		name, in   string
		body       string
		diag, fail string
	}{
		{"plain", "---\n" + fm + "---\nHello\n", "Hello\n", "", ""},
		{"closed by the last line without newline", "---\n" + fm + "---", "", "", ""},
		{"blanks after the fences", "--- \t\n" + fm + "---  \nHello", "Hello", "", ""},
		{"carriage returns", "---\r\nname: demo\r\ndescription: d\r\n---\r\nA\r\nB", "A\nB", "", ""},
		{"lone carriage returns", "---\rname: demo\rdescription: d\r---\rA\rB", "A\nB", "", ""},
		{"byte order mark", "\ufeff---\n" + fm + "---\nx", "x", "byte order mark", ""},
		{"blank lines before", "\n \t\n---\n" + fm + "---\nx", "x", "blank lines before", ""},
		{"mark and blank lines", "\ufeff\n---\n" + fm + "---\nx", "x", "blank lines before", ""},
		{"invalid UTF-8", "---\nname: demo\ndescription: d\xff\n---\nx\xfe", "x\ufffd", "not valid UTF-8", ""},
		{"a rule in the body stays", "---\n" + fm + "---\na\n---\nb", "a\n---\nb", "", ""},
		{"--- within a line closes nothing", "---\n" + fm + "license: a---b\n---\nx", "x", "", ""},
		{"no frontmatter", "# Title\n", "", "", "the first line is not ---"},
		{"longer fence", "----\n" + fm + "---\n", "", "", "the first line is not ---"},
		{"empty", "", "", "", "it is blank"},
		{"only blank", "\n\n", "", "", "it is blank"},
		{"not closed", "---\n" + fm, "", "", "not closed"},
		{"indented fence closes nothing", "---\n" + fm + " ---\n", "", "", "not closed"},
		{"largest frontmatter", "---\n" + fm + "#" + strings.Repeat("x", front.MaxFrontmatter-len(fm)-2) + "\n---\nx", "x", "", ""},
		{"too large frontmatter", "---\n" + fm + "#" + strings.Repeat("x", front.MaxFrontmatter-len(fm)-1) + "\n---\nx", "", "", "exceeds 65536 bytes"},
		{"never closing", "---\n" + strings.Repeat(fm, 20000), "", "", "exceeds 65536 bytes"},
		{"largest body", "---\n" + fm + "---\n" + strings.Repeat("b", front.MaxBody), strings.Repeat("b", front.MaxBody), "", ""},
		{"too large body", "---\n" + fm + "---\n" + strings.Repeat("b", front.MaxBody+1), "", "", "at most 1048576 are allowed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, diags := one(t, tt.in)
			if tt.fail != "" {
				if s != nil || !strings.Contains(messages(diags), tt.fail) || !diags[0].Error {
					t.Fatalf("skill %v, diagnostics %q; want an error with %q", s, diags, tt.fail)
				}
				return
			}
			if s == nil {
				t.Fatalf("not loaded: %q", diags)
			}
			if body, err := s.Body(); err != nil || body != tt.body {
				t.Errorf("body %.60q, %v; want %.60q", body, err, tt.body)
			}
			if got := messages(diags); tt.diag == "" && got != "" && got != "Directory name 'x' must match skill name 'demo'\n" || !strings.Contains(got, tt.diag) {
				t.Errorf("diagnostics %q; want %q", got, tt.diag)
			}
		})
	}
}

// The head is read in two steps; wherever the fence falls, the result is that of one read.
func TestDivideAcrossReads(t *testing.T) {
	for pad := headSize - 40; pad < headSize+5; pad++ {
		front := "name: demo\ndescription: d\n#" + strings.Repeat("x", pad-30) + "\n"
		s, diags := one(t, "---\n"+front+"---\nBody")
		if s == nil || len(diags) != 0 {
			t.Fatalf("padding %d: %v", pad, diags)
		}
		if body, err := s.Body(); body != "Body" || err != nil {
			t.Fatalf("padding %d: body %q, %v", pad, body, err)
		}
	}
}
