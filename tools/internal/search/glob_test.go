package search

import (
	"strings"
	"testing"
)

func TestGlob(t *testing.T) {
	tests := []struct {
		glob, path string
		below      int
		want       bool
	}{
		{"*.py", "a/b.py", 0, true}, {"*.py", "a/b.pyc", 0, false}, {"*.{ts,tsx}", "a.tsx", 0, true}, {"*.{ts,tsx}", "a.t", 0, false},
		{"src/**/*.go", "src/a.go", 0, true}, {"src/**/*.go", "src/a/b/c.go", 0, true}, {"src/**/*.go", "x/src/a.go", 0, false},
		{"src/**/*.go", "x/src/a.go", 2, true}, {"src/*.go", "src/a/b.go", 0, false}, {"**/x", "x", 0, true}, {"a/**", "a/b/c", 0, true},
		{"!*.py", "b.py", 0, false}, {"!*.py", "b.go", 0, true}, {"!src/**", "src/a", 0, false}, {"!src/**", "x/src/a", 2, false},
		{"[a-c]?", "bé", 0, true}, {"[!a-c]?", "bx", 0, false}, {"[^a-c]?", "dx", 0, true}, {"[]]", "]", 0, true}, {"a[-z]", "a-", 0, true},
		{`\*`, "*", 0, true}, {`\*`, "a", 0, false}, {"{a,{b,c}d}", "cd", 0, true}, {"a,b}", "a,b}", 0, true}, {"/a", "a", 0, true}, {"/a", "b/a", 0, false},
		{"a+b.(c)", "a+b.(c)", 0, true}, {"{**/a,b}/x", "q/a/x", 0, true}, {"*", ".x", 0, true}, {"[^x]/a", "//a", 0, false}, {"?", "\xff", 0, true},
		{"{,a}b", "b", 0, true}, {"*.GO", "a.go", 0, false},
	}
	for _, test := range tests {
		g, err := parseGlob(test.glob)
		if err != nil {
			t.Errorf("%s: %v", test.glob, err)
			continue
		}
		name := test.path[strings.LastIndexByte(test.path, '/')+1:]
		if got := g.takes(test.path, test.below, name); got != test.want {
			t.Errorf("%s takes %s: %v", test.glob, test.path, got)
		}
	}
	for _, bad := range []string{"!", "/", "[a", "{a", `a\`, "[z-a]", "[a-", "\xff", `[\`} {
		if g, err := parseGlob(bad); err == nil {
			t.Errorf("%q is a glob: %v", bad, g.re)
		}
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("src/**/*.{a,b[c-d]}", "src/x.a")
	f.Add(`[!\]-a]`, "x")
	f.Fuzz(func(t *testing.T, glob, path string) {
		g, err := parseGlob(glob)
		if err != nil {
			if _, ok := err.(*GlobError); !ok {
				t.Errorf("%T", err)
			}
			return
		}
		g.takes(path, 0, path)
	})
}

func TestTypes(t *testing.T) {
	for _, test := range []struct {
		kind, name string
		want       bool
	}{
		{"go", "a.go", true}, {"go", "go", false}, {"cpp", "a.c++", true}, {"c", "a.cc", false}, {"docker", "Dockerfile", true},
		{"docker", "Dockerfile.dev", true}, {"docker", "x.dockerfile", true}, {"docker", "Dockerfiles", false}, {"make", "Makefile", true},
		{"make", "rules.mk", true}, {"ruby", "Rakefile", true}, {"ruby", "a.gemspec", true}, {"zig", "a.zig", true}, {"yaml", "a.yml", true},
	} {
		kind, err := parseType(test.kind)
		if err != nil {
			t.Fatal(err)
		}
		if got := kind.takes(test.name); got != test.want {
			t.Errorf("%s takes %s: %v", test.kind, test.name, got)
		}
	}
	if n := len(TypeNames()); n != 35 {
		t.Errorf("%d types", n)
	}
	for _, bad := range []string{"", "nope", "c h", "go:"} {
		if _, err := parseType(bad); err == nil {
			t.Errorf("%q is a type", bad)
		}
	}
}
