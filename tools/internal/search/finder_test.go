package search

import (
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// findPlainly is what a finder must find: where the first line with one of the
// literals begins, counted in line feeds.
func findPlainly(all []literal, text string) int {
	for n, line := range strings.Split(text, "\n") {
		for _, l := range all {
			if strings.Contains(line, l.text) || l.fold && strings.Contains(lowerASCII(line), l.text) {
				return n
			}
		}
	}
	return -1
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if isAlpha(c) {
			b[i] |= 0x20
		}
	}
	return string(b)
}

func TestFinder(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	pieces := []string{"a", "b", "e", "q", "Q", "E", "z", "_", "{", "[", "@", "`", "\x00", "é", "(", ")"}
	for range 20000 {
		var all []literal
		fold := r.IntN(2) == 0
		for range 1 + r.IntN(12)*r.IntN(2) {
			l := literal{randomText(r, pieces, 1+r.IntN(5)), fold}
			if fold {
				l.text = lowerASCII(l.text)
			}
			all = append(all, l)
		}
		f, _ := newFinder(literalSet{all, true})
		text := randomText(r, append(pieces, "\n", "e", "e"), r.IntN(50))
		got := f.next([]byte(text), 0)
		if got >= 0 {
			got = strings.Count(text[:got], "\n")
		}
		if want := findPlainly(all, text); got != want {
			t.Fatalf("%+v in %q: line %d, want %d", all, text, got, want)
		}
	}
}

func TestFinderStartsAtFrom(t *testing.T) {
	for _, all := range [][]literal{{{"needle", false}}, {{"needle", true}}, {{"e", false}}, {{"needle", false}, {"pin", false}}} {
		f, _ := newFinder(literalSet{all, true})
		text := "needle in a needle stack"
		if at := f.next([]byte(text), 1); at < 1 {
			t.Errorf("%+v: %d", all, at)
		}
		if at := f.next([]byte(text), 19); at >= 0 {
			t.Errorf("%+v: %d", all, at)
		}
	}
}

func TestLiteralsOf(t *testing.T) {
	tests := []struct {
		pattern string
		want    string // sorted, joined by blanks; "~" in front of one without case
		exact   bool
	}{
		{"foo", "foo", true}, {"foo|bar|baz", "bar baz foo", true}, {"error|errno", "errno error", true}, {"(?i)foo", "~foo", true},
		{"(?i)foo_1", "~foo_1", true}, {"(?i)task", "~ta", false}, {"(?i)foo|bar1", "~bar1 ~foo", true}, {"(foo|b)ar", "bar fooar", true},
		{"^func ", "func ", false}, {`\w+ing\b`, "ing", false}, {"a*", "", false}, {"a*foo+b", "fo", false}, {"x(abc)?y", "xabcy xy", true},
		{"[A-Z]+_[A-Z]+", "_", false}, {"foo.*barbaz", "barbaz", false}, {"foo|.", "", false}, {"foo|^", "", false}, {"[ab]c", "ac bc", true},
		{"(?:foo){2}", "foo", false}, {`foo\x{FFFD}`, "foo", false}, {"(?i)é", "", false}, {"a\\nb|c", "c", true}, {"(?:(?i)foo)Bar", "Bar", false},
		{"", "", false}, {"foo(?i:bar)", "~bar", false},
	}
	for _, test := range tests {
		re, err := syntax.Parse(test.pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		set := literalsOf(re, false)
		var got []string
		for _, l := range set.all {
			if l.fold {
				l.text = "~" + l.text
			}
			got = append(got, l.text)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != test.want || set.exact != test.exact && test.want != "" {
			t.Errorf("%s: %q exact=%v, want %q %v", test.pattern, got, set.exact, test.want, test.exact)
		}
	}
}

// A literal with a CR at its end is in no line that ends with CRLF.
func TestReturnIsNotExact(t *testing.T) {
	p, err := compilePattern(`foo\r`, false, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := linesByScanner(newTestScanner(p), []byte("foo\r\nfoo\r\r\nfoo\rx\n")); !equal(got, []int{1, 2}) {
		t.Errorf("lines %v", got)
	}
}
