package outcut

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// numbered is the lines x00001 to x{n}, joined by LF.
func numbered(from, to int) string {
	lines := make([]string, 0, to-from+1)
	for i := from; i <= to; i++ {
		lines = append(lines, fmt.Sprintf("x%05d", i))
	}
	return strings.Join(lines, "\n")
}

// The example that stands in the wire's own text.
func TestMiddlePublishedExample(t *testing.T) {
	text := numbered(1, 1500)
	if len(text) != 10499 {
		t.Fatalf("the example has 10,499 bytes, this one %d", len(text))
	}
	got := Middle(text, 10000, Advice("ask for less at once"))
	want := numbered(1, 714) + "\n\n[...truncated...] 127 tokens left out here; ask for less at once\n\n" + numbered(787, 1500)
	if got != want {
		t.Errorf("got %q ... %q", got[:60], got[len(got)-60:])
	}
}

func TestMiddle(t *testing.T) {
	marker := func(n int) string { return fmt.Sprintf("\n\n[...truncated...] %d tokens left out here; w\n\n", n) }
	for _, c := range []struct {
		name, text string
		limit      int
		want       string
	}{
		{"empty", "", 0, ""},
		{"fits exactly", "12345678", 8, "12345678"},
		{"no line feed", "123456789", 8, "1234" + marker(1) + "6789"},
		{"rounded up", strings.Repeat("a", 13), 8, "aaaa" + marker(2) + "aaaa"},
		{"nothing allowed", "abc", 0, marker(1)},
		{"negative", "abc", -3, marker(1)},
		{"one byte", "abc", 1, marker(1)},
		{"split character", "ééééééééé", 6, "é" + marker(4) + "é"},
		{"line feed at m/2", "abcd\nxxxxxx\nefgh", 8, "abcd" + marker(2) + "efgh"},
		{"line feed at m/4", "ab\nxxxxxxxxxx\nef", 8, "ab" + marker(3) + "ef"},
		{"line feed before m/4", "a\nxxxxxxxxxxxxx\ne", 8, "a\nxx" + marker(3) + "xx\ne"},
		{"line feed behind m/2", "abcde\nxxxx\nefghi", 8, "abcd" + marker(2) + "fghi"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Middle(c.text, c.limit, Advice("w")); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWayIsToldTheHead(t *testing.T) {
	for text, want := range map[string]bool{"ab\ncdefghijk": true, "abcdefghijk": false} {
		Middle(text, 8, func(head string, whole bool) string {
			if whole != want || !strings.HasPrefix(text, head) {
				t.Errorf("%q: head %q, whole %v", text, head, whole)
			}
			return ""
		})
	}
}

func TestAppend(t *testing.T) {
	cut := Text{Head: "aaa", Tail: "bbb", Total: 10}
	for _, c := range []struct{ got, want Text }{
		{Whole("ab").Append(Whole("cd")), Whole("abcd")},
		{Whole("ab").Append(cut), Text{"abaaa", "bbb", 12}},
		{cut.Append(Whole("cd")), Text{"aaa", "bbbcd", 12}},
		{cut.Append(cut), Text{"aaa", "bbb", 20}},
		{Whole("").Append(cut).Append(Whole("")), cut},
	} {
		if c.got != c.want {
			t.Errorf("got %+v, want %+v", c.got, c.want)
		}
	}
}

func TestCollectorStaysSmall(t *testing.T) {
	c := NewCollector(100)
	for range 10000 {
		c.Write([]byte("a line of the output\n"))
	}
	if n := len(c.head) + len(c.tail); n > 600 || c.total != 210000 {
		t.Errorf("keeps %d bytes of %d", n, c.total)
	}
}

func TestPrefix(t *testing.T) {
	for _, c := range []struct {
		s     string
		limit int
		want  string
	}{{"", 3, ""}, {"abc", 3, "abc"}, {"abc", 2, "ab"}, {"aé", 2, "a"}, {"a€b", 4, "a€"}, {"😀", 3, ""}, {"abc", -1, ""}} {
		if got := Prefix(c.s, c.limit); got != c.want {
			t.Errorf("Prefix(%q, %d) = %q, want %q", c.s, c.limit, got, c.want)
		}
	}
}

func TestAppendValid(t *testing.T) {
	if got := string(AppendValid([]byte("> "), "a\xff\xfeé")); got != "> a\ufffd\ufffdé" {
		t.Errorf("%q", got)
	}
}

func TestLine(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"short", "abc", "abc"},
		{"as long as may be", strings.Repeat("a", 2000), strings.Repeat("a", 2000)},
		{"one more", strings.Repeat("a", 2001), strings.Repeat("a", 2000) + "[... 1 more bytes ...]"},
		{"at a character", strings.Repeat("a", 1999) + "éb", strings.Repeat("a", 1999) + "[... 3 more bytes ...]"},
		{"not UTF-8", "a\xffb\xe2\x82", "a\uFFFDb\uFFFD\uFFFD"},
	} {
		if got := Line([]byte(c.line)); got != c.want {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
}

// What is put together from two ends is what is cut from the whole.
func FuzzMiddle(f *testing.F) {
	f.Add("one\ntwo\nthree\nfour\nfive", 10, 3)
	f.Add("ééé€€€😀😀", 9, 2)
	f.Add("\n\n\n\n\n\n", 4, 1)
	f.Add("", 0, 0)
	f.Fuzz(func(t *testing.T, text string, limit, piece int) {
		text = strings.ToValidUTF8(text, "?")
		if limit > 1<<16 || limit < -1<<16 {
			t.Skip()
		}
		want := Middle(text, limit, Advice("w"))
		c := NewCollector(limit)
		for rest := text; rest != ""; {
			n := min(max(piece, 1), len(rest))
			c.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		if got := c.Text().Cut(limit, Advice("w")); got != want {
			t.Errorf("from two ends %q, from the whole %q", got, want)
		}
		if !utf8.ValidString(want) {
			t.Errorf("%q is not valid", want)
		}
		if head, tail, cut := strings.Cut(want, "\n\n[...truncated...]"); cut && len(text) > limit {
			_, tail, _ = strings.Cut(tail, "\n\n")
			if len(head)+len(tail) > max(limit, 0) || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) {
				t.Errorf("head %q, tail %q of %q at %d", head, tail, text, limit)
			}
		}
	})
}
