package screen

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "one\ntwo", "one\ntwo"},
		{"line ends of a terminal", "one\r\ntwo\r\n", "one\ntwo\n"},
		{"progress", "10%\r 50%\r100%\n", "100%\n"},
		{"a shorter line over a longer one", "downloading\rdone\n", "doneloading\n"},
		{"and erased", "downloading\r\x1b[Kdone\n", "done\n"},
		{"erased after it came", "downloading\rdone\x1b[K\n", "done\n"},
		{"erased whole", "old\x1b[2K\rnew", "new"},
		{"erased before", "abc\x1b[1Kd", "   d"},
		{"colours", "\x1b[31;1mred\x1b[0m and \x1b[38;2;1;2;3mmore\x1b[m", "red and more"},
		{"colours of eight bits", "\u009b31mred\u009bm", "red"},
		{"keys that were corrected", "lsx\b \b -l\n", "ls -l\n"},
		{"what readline draws", "\x1b[?2004h$ ab\b\x1b[1@xy", "$ axy"},
		{"deleted", "abcdef\r\x1b[2Pz", "zdef"},
		{"moved on", "a\x1b[3Cb\x1b[2Gc", "ac  b"},
		{"a title", "\x1b]0;some title\x07text", "text"},
		{"a link", "\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"an answer to the terminal", "\x1bP+q544e\x1b\\text\x1b_x\x1b\\", "text"},
		{"a title that never ends", "\x1b]0;title\nline\n", "\nline\n"},
		{"character sets", "\x1b(B\x1b)0text\x1b=\x1b>", "text"},
		{"a screen", "\x1b[2J\x1b[Hone   \x1b[2;3Htwo\x1b[Athree", "one\n  two\nthree"},
		{"controls", "a\x00b\x07c\x7fd\x0ee", "abcde"},
		{"tabs", "a\tb", "a\tb"},
		{"not UTF-8", "a\xffb", "a\ufffdb"},
		{"broken off", "a\x1b[31", "a"},
		{"broken", "a\x1b[3\nb", "a\nb"},
		{"far away", "\x1b[999999999Cx", strings.Repeat(" ", widest) + "x"},
	} {
		if got := Text([]byte(c.in)); got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}

func TestHeld(t *testing.T) {
	for in, want := range map[string]int{
		"": 0, "abc": 0, "ab\x1b": 1, "ab\x1b[": 2, "ab\x1b[31": 4, "ab\x1b[31m": 0, "\x1b]0;ti": 6, "\x1b]0;ti\x1b": 7, "\x1b]0;ti\x07": 0,
		"a\xc3": 1, "a\xc3\xa9": 0, "a\xe2\x82": 2, "\xf0\x9f\x98": 3, "\xff": 0, "\x1b[1m\xe2": 1,
		"\x1b]0;" + strings.Repeat("x", longest): 0,
	} {
		if got := Held([]byte(in)); got != want {
			t.Errorf("%q: %d, not %d", in, got, want)
		}
	}
}

// Whatever comes, no control character goes out, and little does not become much.
func FuzzText(f *testing.F) {
	f.Add("one\r\n\x1b[31mtwo\x1b[0m\r\n")
	f.Add("\x1b]0;t\x07a\xe2\x82\xac\n")
	f.Add("ab\b\x1b[1@x\x1b[2J\x1b[5;5Hz")
	f.Fuzz(func(t *testing.T, in string) {
		got := Text([]byte(in))
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }) {
			t.Errorf("%q gives %q", in, got)
		}
		if len(got) > 3*len(in)+4*len(in)+widest {
			t.Errorf("%d bytes become %d", len(in), len(got))
		}
		if n := Held([]byte(in)); n < 0 || n > len(in) || n > longest {
			t.Errorf("%q: %d bytes held", in, n)
		}
	})
}
