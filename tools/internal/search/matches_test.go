package search

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

// matchesByRegexp is the plain truth, less what lies where no line is.
func matchesByRegexp(p *pattern, text []byte) (all [][2]int) {
	for _, m := range p.re.FindAllIndex(text, -1) {
		if m[0] == len(text) && m[0] == m[1] && (len(text) == 0 || bytes.HasSuffix(text, []byte("\n"))) {
			continue
		}
		all = append(all, [2]int{m[0], m[1]})
	}
	return all
}

func TestMatchesAgainstRegexp(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 52))
	n := 3000
	if testing.Short() {
		n = 750
	}
	if testlevel.Quick() {
		n = 250
	}
	for range n {
		pattern, fold := randomPattern(r), r.IntN(2) == 0
		p, err := compilePattern(pattern, fold, true)
		if err != nil {
			continue
		}
		text := []byte(strings.ReplaceAll(randomText(r, letters, r.IntN(40)), "\r", ""))
		s := newTestScanner(p)
		var got [][2]int
		s.matches(text, func(m span) bool {
			got = append(got, [2]int{m.start, m.end})
			return false
		})
		want := matchesByRegexp(p, text)
		if len(got) != len(want) {
			t.Fatalf("%q in %q: %v, regexp says %v", pattern, text, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%q in %q: %v, regexp says %v", pattern, text, got, want)
			}
		}
		file := readerFile{bytes.NewReader(text)}
		if n, what := s.count(file, true); what == wasSearched && (n == 1) != (len(want) > 0) {
			t.Fatalf("%q in %q: files mode finds %d, regexp %v", pattern, text, n, want)
		}
	}
}

// A text over blockBytes is read through the common buffer and a reader.
func TestMatchesInLargeText(t *testing.T) {
	line := "some words of a line that is long enough\n"
	text := strings.Repeat(line, 2*blockBytes/len(line)) + "begin\r\nend\n"
	p, err := compilePattern(`begin$\n^end`, false, true)
	if err != nil {
		t.Fatal(err)
	}
	s := newTestScanner(p)
	if n, what := s.count(readerFile{strings.NewReader(text)}, false); n != 1 || what != wasSearched {
		t.Errorf("%d matches, %v", n, what)
	}
	s.stop.Store(true)
	if _, what := s.count(readerFile{strings.NewReader(text)}, false); what != wasInterrupted {
		t.Errorf("stopped: %v", what)
	}
}

func TestDropReturns(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a\nb": "a\nb", "a\r\nb\r\n": "a\nb\n", "\r\r\n\r": "\r\n\r", "\r\n": "\n", "a\rb\r\n\r\nc": "a\rb\n\nc",
	} {
		if got := dropReturns([]byte(text)); string(got) != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestEscapeName(t *testing.T) {
	for name, want := range map[string]string{
		"plain/näme": "plain/näme", "a\nb\t\x7f": `a\x0ab\x09\x7f`, "\xff\xc3(": `\xff\xc3(`, "\ufffd": "\ufffd", "é\xe9": `é\xe9`,
	} {
		if got := EscapeName(name); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
}
