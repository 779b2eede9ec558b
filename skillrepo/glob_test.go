package skillrepo

import (
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/skillrepo/internal/front"
)

func TestGlob(t *testing.T) {
	tests := []struct{ pattern, yes, no string }{ // paths separated by blanks
		{"*", "a a.go .hidden", "a/b a/"},
		{"*.go", "a.go .go", "a/b.go a.gox a.g"},
		{"src/*.go", "src/a.go", "src/a/b.go a.go src/a/.go"},
		{"a?c", "abc aéc", "ac a/c abbc"},
		{"**", "a a/b a/b/c .x/y", ""},
		{"**/*.py", "a.py x/a.py x/y/a.py", "a.pyc"},
		{"tests/**", "tests/a tests/a/b tests", "test/a x/tests/a"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "a/xb ab a/b/c"},
		{"a/**/**/b", "a/b a/x/b", "ab"},
		{"**/**", "a a/b", ""},
		{"**/a/**", "a a/b x/a x/a/y", "b xa"},
		{"a**b", "ab axxb", "a/b"},
		{"{a,b}.txt", "a.txt b.txt", "c.txt ab.txt"},
		{"{a,b{c,d}}x", "ax bcx bdx", "bx cx"},
		{"x{,y}", "x xy", "xz"},
		{"{*.go,?}", "a.go b", "bb"},
		{"[abc].x", "a.x c.x", "d.x ab.x"},
		{"[a-c]", "b", "d -"},
		{"[!a-c]", "d é", "a /"},
		{"[^a]", "b", "a /"},
		{"[]x]", "] x", "y"},
		{"[a-]", "a -", "b"},
		{"[+-9]", "5 . +", "/"},
		{"a[.-0]b", "a.b a0b", "a/b"},
		{"}],", "}],", "x"},
		{"a.b+c(d)|^$", "a.b+c(d)|^$", "axb"},
		{`a\b`, `a\b`, "ab"},
	}
	for _, tt := range tests {
		g, err := CompileGlob(tt.pattern)
		if err != nil {
			t.Errorf("%q: %v", tt.pattern, err)
			continue
		}
		for _, p := range strings.Fields(tt.yes) {
			if !g.Match(p) {
				t.Errorf("%q does not match %q", tt.pattern, p)
			}
		}
		for _, p := range strings.Fields(tt.no) {
			if g.Match(p) {
				t.Errorf("%q matches %q", tt.pattern, p)
			}
		}
	}
}

func TestMalformedGlobs(t *testing.T) {
	for _, p := range []string{"", "[", "[a", "[]", "[!]", "a/[b/c]", "{", "{a", "{a/b}", "{a,{b}", "[z-a]", "\xff", strings.Repeat("a", 1025)} {
		if g, err := CompileGlob(p); err == nil {
			t.Errorf("%q compiles to %v", p, g.re)
		}
	}
}

// A backtracking matcher would need longer than the universe is old.
func TestHostileGlobEnds(t *testing.T) {
	start := time.Now()
	for _, p := range []string{strings.Repeat("{a,a}", 200), strings.Repeat("*a", 400) + "b", strings.Repeat("**/a/", 200) + "b"} {
		g, err := CompileGlob(p)
		if err != nil {
			t.Fatal(err)
		}
		if g.Match(strings.Repeat("a", 2000)) || g.Match(strings.Repeat("a/", 1000)) {
			t.Errorf("%.20q matches", p)
		}
	}
	if time.Since(start) > 20*time.Second {
		t.Error("matching took", time.Since(start))
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("src/**/*.{go,py}", "src/a/b.go")
	f.Add("[!a-z]?", "é")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		g, err := CompileGlob(pattern)
		if err != nil {
			return
		}
		if g.Match(path) && !strings.Contains(pattern, "**") && strings.Count(pattern, "/") != strings.Count(path, "/") {
			t.Errorf("%q matches %q across segments", pattern, path)
		}
	})
}

func TestMatchesPath(t *testing.T) {
	s := &Skill{}
	n := &notes{}
	root, _, _ := front.Parse("paths: ['*.py', 'src/*.go', './lib/**']")
	s.fillPaths(root, n)
	tests := map[string]bool{
		"a.py": true, "x/y/a.py": true, "./a.py": true, `x\a.py`: true, "/ws/a.py": true, "/ws/x/../a.py": true,
		"src/a.go": true, "src/a/b.go": false, "x/../src/a.go": true, "lib/a/b": true, "b.go": false,
		"../a.py": false, "x/../../a.py": false, "/else/a.py": false, "/wsx/a.py": false, "/ws/../a.py": false,
		"/ws": false, ".": false, "": false, "..": false, "a.pyc": false, "C:/ws/a.py": false,
	}
	for p, want := range tests {
		if got := s.MatchesPath(p, "/ws"); got != want {
			t.Errorf("%q: %v", p, got)
		}
	}
	if !s.MatchesPath(`C:\ws\a.py`, `C:\ws`) || s.MatchesPath(`C:\other\a.py`, `C:\ws`) {
		t.Error("drive letters")
	}
	free := &Skill{}
	if !free.MatchesPath("x", "/ws") || free.MatchesPath("/etc/x", "/ws") {
		t.Error("a skill without paths")
	}
	if !s.MatchesPath("/a.py", "/") {
		t.Error("a workspace that is the root")
	}
}
