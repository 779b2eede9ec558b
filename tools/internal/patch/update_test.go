package patch

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// plan plans a patch for the file f in memory.
func plan(data, text string) (changed string, answer string, err error) {
	p, err := Parse(text)
	if err != nil {
		return "", "", err
	}
	pl, err := p.Plan(single(data))
	if err != nil {
		return "", "", err
	}
	return string(pl.Changes[len(pl.Changes)-1].Data), pl.Summary(), nil
}

func updateF(lines ...string) string { return body("*** Update File: f", strings.Join(lines, "\n")) }

func TestUpdate(t *testing.T) {
	for _, c := range []struct{ name, data, patch, want, notes string }{
		{"white space at the end", "a \t\nb\n", updateF("@@", "-a", "+c"), "c\nb\n", "f:1: matched after ignoring white space at line ends."},
		{"at both ends", "x\n\ta\nb\n", updateF("@@", " a", "-b", "+c"), "x\n\ta\nc\n", "f:2: matched after ignoring white space at both ends."},
		{"typographic", "x – “y”\n", updateF("@@", `-x - "y"`, "+z"), "z\n", "f:1: matched after reading typographic characters as ASCII."},
		{"the strict pass covers all first", " a\na\n", updateF("@@", "-a", "+b"), " a\nb\n", ""},
		{"several places", "a\nb\na\na\n", updateF("@@", "-a", "+c"), "c\nb\na\na\n", "f:1: 3 places match; the first was changed, use @@ to choose."},
		{"several places, lenient too", " a\n a\n", updateF("@@", "-a", "+c"), "c\n a\n", "f:1: matched after ignoring white space at both ends.|f:1: 2 places match; the first was changed, use @@ to choose."},
		{"places before the cursor do not count", "a\nb\na\n", updateF("@@", "-b", "+c", "@@", "-a", "+d"), "a\nc\nd\n", ""},
		{"a header chooses", "a\nb\na\na\n", updateF("@@ b", "-a", "+c"), "a\nb\nc\na\n", ""},
		{"no note for a header", " b\na\n", updateF("@@ b", "-a", "+c"), " b\nc\n", ""},
		{"the end of file chooses", "a\na\n", updateF("@@", "-a", "+c", "*** End of File"), "a\nc\n", ""},
		{"header and end of file", "h\na\nh\na\n", updateF("@@ h", "-a", "+c", "*** End of File"), "h\na\nh\nc\n", ""},
		{"insertion with header and end of file", "h\na\n", updateF("@@ h", "+c", "*** End of File"), "h\na\nc\n", ""},
		{"insertions keep their order", "h\n", updateF("@@ h", "+1", "@@", "+3", "@@", "+4"), "h\n1\n3\n4\n", ""},
		{"behind a header comes before the end", "h\n", updateF("@@", "+2", "@@ h", "+1"), "h\n1\n2\n", ""},
		{"insertion, then a change right there", "h\na\n", updateF("@@ h", "+1", "@@", "-a", "+b"), "h\n1\nb\n", ""},
		{"empty file", "", updateF("@@", "+a"), "a\n", ""},
		{"only a BOM", "\uFEFF", updateF("@@", "+a"), "\uFEFFa\n", ""},
		{"all lines go", "a\n", updateF("@@", "-a"), "", ""},
		{"trailing empty lines are tried", "a\n\n\nb\n", updateF("@@", "-a", "+c", "", ""), "c\n\n\nb\n", ""},
		{"and dropped one by one", "a\n\nb\n", updateF("@@", "-a", "+c", "", ""), "c\n\nb\n", ""},
		{"a lenient pass before dropping", "a\n\nb\na\n \nb", updateF("@@ b", "-a", "+c", ""), "a\n\nb\nc\n \nb", "f:4: matched after ignoring white space at line ends."},
		{"an addition behind a dropped line", "a\nb\n", updateF("@@", "-a", "-", "+c"), "c\nb\n", ""},
		{"dropping at the end of file", "a\nb\n", updateF("@@", "-b", "+c", "", "*** End of File"), "a\nc\n", ""},
		{"a removed last line without end", "a\nb", updateF("@@", "-b"), "a\n", ""},
		{"the only line, no end, replaced", "b", updateF("@@", "-b", "+c"), "c\n", ""},
		{"insertion behind a line without end", "a\r\nb", updateF("@@", "+c"), "a\r\nb\r\nc\r\n", ""},
		{"context without end", "a\nb", updateF("@@", "-a", "+c", " b"), "c\nb", ""},
		{"insertion before the last line without end", "a\nb", updateF("@@ a", "+c"), "a\nc\nb", ""},
		{"NUL and bad bytes", "a\x00\xff\nb\n\xfe", updateF("@@", "-b", "+c"), "a\x00\xff\nc\n\xfe", ""},
		{"lone CR in the file", "a\rb\rc", updateF("@@", "-b", "+x", "+y"), "a\rx\ry\rc", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, answer, err := plan(c.data, c.patch)
			want := "Success. Updated the following files:\nM f"
			if c.notes != "" {
				want += "\n\nNote: " + strings.ReplaceAll(c.notes, "|", "\nNote: ")
			}
			if err != nil || got != c.want || answer != want {
				t.Errorf("got %q, %q, %v\nwant %q, %q", got, answer, err, c.want, want)
			}
		})
	}
}

func TestMatchErrors(t *testing.T) {
	read := "Read the file again and copy the lines as they are."
	for _, c := range []struct{ name, data, patch, want, hint string }{
		{"no such header", "def one():\n    pass\n", updateF("@@", "@@ def ones():", "-x"),
			"Failed to find context 'def ones():' in f (patch line 3).",
			"Expected:\ndef ones():\nClosest lines in the file:\nL1: def one():\n" + read},
		{"second of two headers", "class A\n", updateF("@@ class A", "@@ def", "-x"),
			"Failed to find context 'def' in f (patch line 3).", "Expected:\ndef\n" + read},
		{"no such lines", "one\ntwo lines\nthree\n", updateF(" one", "-two line", "+x", " three"),
			"Failed to find expected lines in f (patch line 3).",
			"Expected:\none\ntwo line\nthree\nClosest lines in the file:\nL1: one\nL2: two lines\nL3: three\n" + read},
		{"equal lines come first", "aa bb\ncc dd\nxx\naa bc\ncc dx\n", updateF(" aa bc", "-cc de"),
			"Failed to find expected lines in f (patch line 3).",
			"Expected:\naa bc\ncc de\nClosest lines in the file:\nL4: aa bc\nL5: cc dx\n" + read},
		{"nothing is alike", "one\n", updateF("-xyz"), "Failed to find expected lines in f (patch line 3).", "Expected:\nxyz\n" + read},
		{"empty file", "", updateF("@@", "-xyz"), "Failed to find expected lines in f (patch line 3).", "Expected:\nxyz\n" + read},
		{"fewer lines than wanted", "one\n", updateF("@@", "-one", "-two"), "Failed to find expected lines in f (patch line 3).",
			"Expected:\none\ntwo\nClosest lines in the file:\nL1: one\n" + read},
		{"above", "a\nb\n", updateF("@@", "-b", "+c", "@@", "-a", "+d"), "Failed to find expected lines in f (patch line 6).",
			"Expected:\na\nClosest lines in the file:\nL1: a\nThey are at line 1, above an earlier chunk; put chunks in file order."},
		{"header above", "a\nb\n", updateF("@@ b", "@@ a", "-x"), "Failed to find context 'a' in f (patch line 3).",
			"Expected:\na\nClosest lines in the file:\nL1: a\nThey are at line 1, above an earlier chunk; put chunks in file order."},
		{"not at the end", "a\nb\n", updateF("@@", "-a", "*** End of File"), "Failed to find expected lines in f (patch line 3).",
			"Expected:\na\nClosest lines in the file:\nL1: a\nThey are at line 1, not at the end of the file; drop '*** End of File'."},
		{"unified diff", "a\n", updateF("@@ -1 +1,2 @@ def f", "-a"), "Failed to find context '-1 +1,2 @@ def f' in f (patch line 3).",
			"Expected:\n-1 +1,2 @@ def f\nThis is a unified diff header; write @@ alone or @@ and a line of the file."},
		{"bytes that are no text", "caf\xe9 one\n", updateF("-cafe one"), "Failed to find expected lines in f (patch line 3).",
			"Expected:\ncafe one\nClosest lines in the file:\nL1: caf\uFFFD one\n" + read},
		{"a long line", strings.Repeat("long ", 500) + "\n", updateF("-" + strings.Repeat("long ", 499)), "Failed to find expected lines in f (patch line 3).",
			"Expected:\n" + strings.Repeat("long ", 400) + "[... 495 more bytes ...]\nClosest lines in the file:\nL1: " + strings.Repeat("long ", 400) + "[... 500 more bytes ...]\n" + read},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := plan(c.data, c.patch)
			var match *MatchError
			if !errors.As(err, &match) || err.Error() != c.want || match.Hint() != c.hint {
				t.Fatalf("got %v\n%s\nwant %s\n%s", err, match.Hint(), c.want, c.hint)
			}
		})
	}
}

// Of many lines those are shown where the file departs from them.
func TestMatchErrorShowsTheDifference(t *testing.T) {
	lines := source(100)
	wanted := append([]string{}, lines[10:60]...)
	wanted[40] = "something else"
	_, _, err := plan(strings.Join(lines, "\n"), updateF("-"+strings.Join(wanted, "\n-")))
	var match *MatchError
	if !errors.As(err, &match) {
		t.Fatal(err)
	}
	if len(match.Expected) != shownLines || match.At != 41 || len(match.Closest) != shownLines ||
		!strings.Contains(match.Hint(), "\nsomething else\n") {
		t.Errorf("from line %d: %s", match.At, match.Hint())
	}
}

// FuzzPlan: never a panic, all or nothing, only files that the text names, and
// lines that no chunk touches keep every byte.
func FuzzPlan(f *testing.F) {
	f.Add([]byte("a\r\nb\n\xff\rc"), "@@ a\n-b\n+x\n@@\n+y")
	f.Add([]byte("a\nb\na\nb\n"), "@@\n a\n-b\n\n@@ a\n+z\n*** End of File")
	f.Add([]byte("\uFEFF"), "+x")
	f.Add([]byte("a\n\rb\n\r0"), "@@\n \n+\n b")
	f.Add([]byte("a\rb\n\nc"), "@@\n-b")
	f.Add([]byte("\rb\n\n\n"), "@@\n-b")
	f.Fuzz(func(t *testing.T, data []byte, chunks string) {
		p, err := Parse(body("*** Update File: f", chunks))
		if err != nil {
			return
		}
		before := bytes.Clone(data)
		pl, err := p.Plan(single(data))
		if !bytes.Equal(before, data) {
			t.Fatal("the file was changed in place")
		}
		if (pl == nil) != (err != nil) {
			t.Fatalf("plan %v with error %v", pl, err)
		}
		if err != nil {
			return
		}
		named := strings.Join(p.Paths(), "\n")
		for _, c := range pl.Changes {
			if !strings.Contains(named, c.Path) {
				t.Errorf("%q is not named by %q", c.Path, chunks)
			}
		}
		if len(p.Sections) == 1 && len(pl.Changes) == 1 {
			checkUntouched(t, p.Sections[0], data, pl.Changes[0].Data)
		}
	})
}

// checkUntouched checks that every line of the new file is a line of the old one
// with its bytes, or one that was added. Behind a lone CR an empty line may end with
// CR where it would end with LF: as CRLF the two would be one.
func checkUntouched(t *testing.T, s Section, before, after []byte) {
	left := map[string]int{}
	old, _ := splitLines(before)
	for i := range old.lines() {
		left[string(old.raw(i, i+1))]++
	}
	if n := old.lines(); old.unterminated() {
		left[string(old.line(n-1))+old.eol]++
	}
	for _, c := range s.Chunks {
		for _, l := range c.Lines {
			if l.Op == Added {
				text, _ := splitLines([]byte(l.Text + old.eol)) // a lone CR makes it several lines
				for i := range text.lines() {
					left[string(text.raw(i, i+1))]++
				}
			}
		}
	}
	changed, _ := splitLines(after)
	behindCR := 0
	for i := range changed.lines() {
		line := string(changed.raw(i, i+1))
		if line == "\r" && i > 0 && changed.end(i-1) == "\r" {
			behindCR++
		}
		if line == "\r" && left[line] == 0 && behindCR > 0 {
			behindCR--
			line = "\n"
		}
		if left[line]--; left[line] < 0 {
			t.Fatalf("line %q of %q comes from nowhere; was %q", line, after, before)
		}
	}
}
