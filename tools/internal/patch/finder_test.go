package patch

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// naive is find as the rules tell it, step by step.
func naive(t *text, old []string, cursor int, atEnd bool) (hit, bool) {
	for n := len(old); n == len(old) || n > 0 && old[n] == ""; n-- {
		for p := range passes {
			h := hit{n: n, pass: p}
			for at := t.lines() - n; at >= cursor; at-- {
				if equalAt(t, p, old[:n], at) {
					h.line = at
					h.count++
				}
				if atEnd {
					break
				}
			}
			if h.count > 0 {
				return h, true
			}
		}
	}
	return hit{}, false
}

func equalAt(t *text, p pass, old []string, at int) bool {
	for i, line := range old {
		if !bytes.Equal(p.normal(t.line(at+i), nil), p.normal([]byte(line), nil)) {
			return false
		}
	}
	return true
}

// FuzzFind holds the index against the rules, on files that repeat themselves.
func FuzzFind(f *testing.F) {
	f.Add("abcabcabd", "abd", "ab", 0, false)
	f.Add("aaaaaaaa", "aaae", "aa", 2, false)
	f.Add("abAB\nabeee", "bee", "ee", 1, true)
	f.Add("eeee", "eeeeee", "e", 0, true)
	f.Fuzz(func(t *testing.T, file, first, second string, cursor int, atEnd bool) {
		if len(file) > 300 || len(first) > 60 || len(second) > 60 {
			t.Skip()
		}
		alphabet := []string{"", "a", " a", "a ", "–a", "-a", "b", "\u00a0b", "  ", "c"}
		spell := func(s string) []string {
			lines := make([]string, len(s))
			for i := range s {
				lines[i] = alphabet[int(s[i])%len(alphabet)]
			}
			return lines
		}
		content := strings.Join(append(spell(file), ""), "\n")
		txt, _ := splitLines([]byte(content))
		stretches := [][]string{spell(first), spell(second)}
		fd := finder{text: txt, wanted: slices.Concat(stretches...)}
		for _, old := range stretches {
			if len(old) == 0 {
				continue
			}
			fd.cursor = min(max(cursor, 0), txt.lines())
			want, wantOK := naive(txt, old, fd.cursor, atEnd)
			got, ok := fd.find(old, atEnd)
			if ok != wantOK || ok && got != want {
				t.Fatalf("%q in %q from %d, at end %v: got %+v %v, want %+v %v", old, content, fd.cursor, atEnd, got, ok, want, wantOK)
			}
			cursor = got.line / 2 // back again, too
		}
	})
}

func TestNormal(t *testing.T) {
	for _, c := range []struct {
		line string
		want [passes]string
	}{
		{" a\t", [...]string{" a\t", " a", "a", "a"}},
		{"\u2003a\u3000\u0085", [...]string{"\u2003a\u3000\u0085", "\u2003a", "a", "a"}},
		{"“x‟ ‘y‛ –—―−‐", [...]string{"“x‟ ‘y‛ –—―−‐", "“x‟ ‘y‛ –—―−‐", "“x‟ ‘y‛ –—―−‐", `"x" 'y' -----`}},
		{"a\u00a0b\u2009c\u202fd\u205fe", [...]string{"a\u00a0b\u2009c\u202fd\u205fe", "a\u00a0b\u2009c\u202fd\u205fe", "a\u00a0b\u2009c\u202fd\u205fe", "a b c d e"}},
		{"\xa0\x85é\xff", [...]string{"\xa0\x85é\xff", "\xa0\x85é\xff", "\xa0\x85é\xff", "\xa0\x85é\xff"}},
		{"\u2016\u2017\u200b", [...]string{"\u2016\u2017\u200b", "\u2016\u2017\u200b", "\u2016\u2017\u200b", "\u2016\u2017\u200b"}},
	} {
		for p := range passes {
			if got := string(p.normal([]byte(c.line), nil)); got != c.want[p] {
				t.Errorf("pass %d of %q: %q, want %q", p, c.line, got, c.want[p])
			}
		}
	}
}

func TestSplitLines(t *testing.T) {
	for data, want := range map[string][]string{
		"":                     {},
		"\n":                   {"\n"},
		"a":                    {"a"},
		"a\r\nb\rc\nd":         {"a\r\n", "b\r", "c\n", "d"},
		"\r\r\n\n\r":           {"\r", "\r\n", "\n", "\r"},
		"\uFEFFa\n":            {"a\n"},
		"a\r":                  {"a\r"},
		"\xff\x00\n\u2028\v\n": {"\xff\x00\n", "\u2028\v\n"},
	} {
		txt, _ := splitLines([]byte(data))
		got := []string{}
		for i := range txt.lines() {
			got = append(got, string(txt.line(i))+txt.end(i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", data, got, want)
		}
	}
}

// TestTooRepetitive: the work for one section is bounded, and the refusal says what to do.
func TestTooRepetitive(t *testing.T) {
	if testing.Short() {
		t.Skip("compares 268 million lines")
	}
	p, err := Parse("*** Begin Patch\n*** Update File: f\n" + strings.Repeat("@@\n a\n a\n+c\n", 1500) + "*** End Patch")
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Plan(single(strings.Repeat("a\n", 300_000)))
	if !errors.Is(err, ErrTooRepetitive) {
		t.Errorf("got %v, want %v", err, ErrTooRepetitive)
	}
}
