package search

import (
	"bytes"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

// linesByRegexp is the plain truth: every line on its own, by package regexp.
func linesByRegexp(p *pattern, text []byte) (numbers []int) {
	for i, line := range bytes.SplitAfter(text, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		if bare, ok := bytes.CutSuffix(line, []byte("\n")); ok {
			line = bytes.TrimSuffix(bare, []byte("\r"))
		}
		if p.re.Match(line) {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

func linesByScanner(s *scanner, text []byte) (numbers []int) {
	for from := 0; from < len(text); {
		start, end := s.nextLine(text, from)
		if start < 0 {
			break
		}
		numbers = append(numbers, bytes.Count(text[:start], []byte("\n")))
		from = end + 1
	}
	return numbers
}

func newTestScanner(p *pattern) *scanner {
	return newScanner(p, &largeText{}, &atomic.Bool{})
}

// compareLines checks the automaton, with and without the finder, against regexp.
func compareLines(t *testing.T, text string, fold bool, data []byte) {
	t.Helper()
	p, err := compilePattern(text, fold, false)
	if err != nil {
		return
	}
	want := linesByRegexp(p, data)
	if got := linesByScanner(newTestScanner(p), data); !equal(got, want) {
		t.Fatalf("%q fold=%v on %q: lines %v, regexp says %v (exact=%v finder=%v)", text, fold, data, got, want, p.exact, p.finder != nil)
	}
	p.finder = nil
	if got := linesByScanner(newTestScanner(p), data); !equal(got, want) {
		t.Fatalf("%q fold=%v on %q, no finder: lines %v, regexp says %v", text, fold, data, got, want)
	}
	if p, err = compilePattern(text, fold, true); err != nil {
		t.Fatal(err)
	}
	s := newTestScanner(p)
	if got, want := s.dfa.find(data) >= 0, p.re.Match(data); got != want {
		t.Fatalf("%q fold=%v on %q as one text: %v, regexp says %v", text, fold, data, got, want)
	}
	if p.finder != nil && p.finder.next(data, 0) < 0 && p.re.Match(data) {
		t.Fatalf("%q fold=%v on %q: the finder misses a match", text, fold, data)
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// atoms and joints are pieces of patterns; letters are pieces of texts.
var (
	atoms = []string{
		"a", "b", "ab", "foo", "K", "s", "S", "é", "ſ", ".", `\w`, `\W`, `\d`, `\s`, `\b`, `\B`, "^", "$", "[a-c]",
		"[^a]", `[\w-]`, `[\W_]`, `[^\W]`, "_", "-", `\x{FFFD}`, `\r`, "(?i:ab)", "(?i:k)", `\A`, `\z`, "(?:^a|b$)", "x?", "本", `\pL`,
		"func ", "error", "[[:upper:]]", `\Qa.b\E`, "(?i:straße)", "ing",
	}
	joints  = []string{"", "", "", "|", "*", "+", "?", "{2}", "{1,3}", "*?"}
	letters = []string{
		"a", "b", "ab", "A", "B", "foo", "Foo", "k", "K", "\u212a", "s", "S", "ſ", "é", "É", "\xff", "\xc3", "-", "_", " ", "\t",
		"\r", "\r\n", "\n", "\n", "\n", "1", "9", "\x00", ".", "x", "本", "\ufffd", "func ", "error", "Error", "straße", "ing", "a.b",
	}
)

func randomText(r *rand.Rand, pieces []string, n int) string {
	var b []byte
	for range n {
		b = append(b, pieces[r.IntN(len(pieces))]...)
	}
	return string(b)
}

func randomPattern(r *rand.Rand) string {
	s := ""
	for range 1 + r.IntN(5) {
		s += atoms[r.IntN(len(atoms))] + joints[r.IntN(len(joints))]
	}
	return s
}

func TestLinesAgainstRegexp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n := 4000
	if testing.Short() {
		n = 1000
	}
	if testlevel.Quick() {
		n = 250
	}
	for range n {
		compareLines(t, randomPattern(r), r.IntN(3) == 0, []byte(randomText(r, letters, r.IntN(60))))
	}
}

func FuzzLines(f *testing.F) {
	f.Add("foo|bar", false, "a foo\nbar\r\n")
	f.Add(`\bk\w+$`, true, "\u212aelvin\nkilo\n")
	f.Add("^$", false, "\n\r\n\r")
	f.Add(`(a|b)*c{2,5}`, true, "aaabcc\nABCC")
	f.Fuzz(func(t *testing.T, pattern string, fold bool, data string) {
		if len(pattern) > 200 || len(data) > 2000 {
			return
		}
		compareLines(t, pattern, fold, []byte(data))
	})
}

// TestForgetting runs the automaton with far more states than it may keep.
func TestForgetting(t *testing.T) {
	p, err := compilePattern(`[ab]{0,3}a[ab]{12}c`, false, false)
	if err != nil {
		t.Fatal(err)
	}
	p.finder = nil
	p.stateBytes = stateBytes(1000)
	r := rand.New(rand.NewPCG(3, 4))
	var data []byte
	for range 3000 {
		data = append(data, randomText(r, []string{"a", "b"}, 20)+randomText(r, []string{"c", "b"}, 1)+"\n"...)
	}
	s := newTestScanner(p)
	if got, want := linesByScanner(s, data), linesByRegexp(p, data); !equal(got, want) {
		t.Fatalf("%d lines, regexp says %d", len(got), len(want))
	}
	if s.dfa.size > 2*minStateBytes {
		t.Errorf("states take %d bytes", s.dfa.size)
	}
}
