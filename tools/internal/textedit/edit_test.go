package textedit

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestReplaceFirst(t *testing.T) {
	for _, c := range []struct{ name, data, old, new, want string }{
		{"first only", "a b a", "a", "c", "c b a"},
		{"nothing is a pattern", "a.b $& x", ".b $&", `$1\n`, `a$1\n x`},
		{"deletion", "abc", "b", "", "ac"},
		{"insertion at the start", "abc", "", "x\n", "x\nabc"},
		{"insertion behind a BOM", "\uFEFFabc", "", "x", "\uFEFFxabc"},
		{"insertion into nothing", "", "", "x\r\n", "x\n"},
		{"equal texts", "a\r\nb\n", "a\n", "a\r\n", "a\r\nb\n"},
		{"LF finds CRLF", "a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n"},
		{"CRLF finds LF", "a\nb\nc\n", "a\r\nb", "x\r\ny", "x\ny\nc\n"},
		{"the match takes the whole CRLF", "a\r\nb\n", "\n", "-", "a-b\n"},
		{"a break that ends the match", "a\r\nb\n", "a\n", "", "b\n"},
		{"half is not most", "a\r\nb\nc", "c", "x\ny", "a\r\nb\nx\ny"},
		{"most", "a\r\nb\nc\r\nd", "d", "x\ny", "a\r\nb\nc\r\nx\r\ny"},
		{"bytes outside stay", "a\r\nb\nc\rd", "b", "x", "a\r\nx\nc\rd"},
		{"a lone CR is ordinary", "a\rb", "\r", "\n", "a\nb"},
		{"a lone CR before CRLF", "a\r\r\nb", "\r\n", "-", "a\r-b"},
		{"no lone CR in CRLF", "a\r\nb\rc", "\r", "-", "a\r\nb-c"},
		{"beyond ASCII", "naïve café", "ï", "i", "naive café"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := ReplaceFirst([]byte(c.data), c.old, c.new); err != nil || string(got) != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestReplaceFirstNoMatch(t *testing.T) {
	for _, c := range []struct {
		name, data, old string
		want            NoMatchError
	}{
		{"white space", "x\nif a {\n\treturn  1\n}", "if a {\n    return 1\n}", NoMatchError{WhiteSpace, 2}},
		{"line breaks", "x\r\na b\r\nc\r\n", "a\nb c", NoMatchError{WhiteSpace, 2}},
		{"white space within the first line", "a\nb\n c", "b\nc", NoMatchError{WhiteSpace, 2}},
		{"case", "one\nTwo\n", "two", NoMatchError{Case, 2}},
		{"case over CRLF", "one\r\nTwo\r\nx", "two\nX", NoMatchError{Case, 2}},
		{"both", "one\nTwo  Three\n", "two three", NoMatchError{Both, 2}},
		{"similar", "import os\n\ndef search_files(path):\n", "\ndef search_file(path, all):\n  pass", NoMatchError{Similar, 3}},
		{"nothing", "abc\n", "xyz", NoMatchError{}},
		{"only white space", "abc", " \n", NoMatchError{}},
		{"empty file", "", "a", NoMatchError{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReplaceFirst([]byte(c.data), c.old, "new")
			var no *NoMatchError
			if !errors.As(err, &no) || *no != c.want {
				t.Fatalf("got %+v, want %+v", err, c.want)
			}
			if hint := no.Hint(); !strings.Contains(hint, "read") && !strings.Contains(hint, "Read") {
				t.Errorf("hint %q", hint)
			}
		})
	}
}

func TestReplaceFirstNotText(t *testing.T) {
	for _, data := range []string{"a\x00", strings.Repeat("a", 9000) + "\x00", "a\xff", "\xe2\x82"} {
		_, err := ReplaceFirst([]byte(data), "a", "b")
		var not *NotTextError
		if !errors.As(err, &not) || len(not.Head) > 8192 {
			t.Errorf("%.9q: %v", data, err)
		}
	}
}

func FuzzReplaceFirst(f *testing.F) {
	f.Add("a\r\nb\nc\rd", "b\nc", "x\r\ny")
	f.Add("\uFEFFa", "", "\n")
	f.Add("", "a text that is no UTF-8: \xff", "x")
	f.Add("a\r\r\n\r\nb", "\r\n\n", "")
	f.Fuzz(func(t *testing.T, data, old, new string) {
		before := strings.Clone(data)
		got, err := ReplaceFirst([]byte(data), old, new)
		if data != before {
			t.Fatal("changed in place")
		}
		if !utf8.ValidString(data) || strings.Contains(data, "\x00") {
			if err == nil {
				t.Fatal("not text, not refused")
			}
			return
		}
		flat, wanted := toLF(data), toLF(old)
		if found := strings.Contains(flat, wanted); found != (err == nil) {
			t.Fatalf("%q in %q: %v", old, data, err)
		}
		if err != nil {
			return
		}
		if wanted == toLF(new) {
			if string(got) != data {
				t.Fatal("equal texts changed the file")
			}
			return
		}
		// What stays must be bytes of the file, before and behind the match.
		insert := toLF(new)
		if lineBreak([]byte(data)) == "\r\n" {
			insert = strings.ReplaceAll(insert, "\n", "\r\n")
		}
		for from := 0; from <= len(data); from++ {
			behind := len(got) - from - len(insert)
			if behind < 0 || behind > len(data)-from || string(got) != data[:from]+insert+data[len(data)-behind:] {
				continue
			}
			if toLF(data[from:len(data)-behind]) == wanted {
				return
			}
		}
		t.Fatalf("%q: %q for %q gives %q", data, new, old, got)
	})
}

func TestInsertLines(t *testing.T) {
	gap := func(n int, eol string) string { return strings.Repeat(eol, n) }
	for _, c := range []struct {
		name, data, text string
		start            int64
		want             string
		at               int64
	}{
		{"in the middle", "a\nb\n", "x\n", 2, "a\nx\nb\n", 2},
		{"a break behind", "a\nb\n", "x", 1, "x\na\nb\n", 1},
		{"a break before", "a", "x", 2, "a\nx", 2},
		{"at the end as given", "a\n", "x", 2, "a\nx", 2},
		{"into nothing", "", "x", 1, "x", 1},
		{"a gap", "a\n", "x", 4, "a\n\n\nx", 4},
		{"a gap behind an open line", "a", "x\n", 3, "a\n\nx\n", 3},
		{"a gap in nothing", "", "x", 3, "\n\nx", 3},
		{"the largest gap", "a\n", "x", 1002, "a\n" + gap(1000, "\n") + "x", 1002},
		{"beyond the largest gap", "a\n", "x", 1003, "a\nx", 2},
		{"the idiom for the end", "a", "x", 999999, "a\nx", 2},
		{"CRLF", "a\r\nb\r\n", "x", 2, "a\r\nx\r\nb\r\n", 2},
		{"CRLF gap", "a\r\nb\r\nc", "x\n", 6, "a\r\nb\r\nc\r\n\r\n\r\nx\n", 6},
		{"half is not most", "a\r\nb\n", "x", 1, "x\na\r\nb\n", 1},
		{"nothing inserted", "a", "", 9, "a", 9},
		{"bytes stay", "\xff\r\xfe", "x", 1, "x\n\xff\r\xfe", 1},
		{"below 1", "a\n", "x", -5, "x\na\n", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := InsertLines([]byte(c.data), c.text, c.start)
			if err != nil || string(got.Data) != c.want || got.Start != c.at || got.Replaced != 0 {
				t.Errorf("got %q, %+v, %v\nwant %q", got.Data, got, err, c.want)
			}
		})
	}
}

func TestReplaceLines(t *testing.T) {
	for _, c := range []struct {
		name, data, text string
		start, end       int64
		want             Edit // Data as a string below
		data2            string
	}{
		{"in the middle", "a\nb\nc\n", "x\ny\n", 2, 2, Edit{Lines: 2, Start: 2, End: 2, Replaced: 1}, "a\nx\ny\nc\n"},
		{"a break behind", "a\nb\nc\n", "x", 1, 2, Edit{Lines: 1, Start: 1, End: 2, Replaced: 2}, "x\nc\n"},
		{"at the end as given", "a\nb\n", "x", 2, 2, Edit{Lines: 1, Start: 2, End: 2, Replaced: 1}, "a\nx"},
		{"end beyond", "a\nb", "x", 2, 99, Edit{Lines: 1, Start: 2, End: 2, Replaced: 1}, "a\nx"},
		{"deletion", "a\nb\nc", "", 1, 2, Edit{Start: 1, End: 2, Replaced: 2}, "c"},
		{"deletion at the end", "a\nb", "", 2, 2, Edit{Start: 2, End: 2, Replaced: 1}, "a\n"},
		{"start beyond", "a", "x", 3, 9, Edit{Lines: 1, Start: 3, End: 3}, "a\n\nx"},
		{"start far beyond", "a", "x", 5000, 6000, Edit{Lines: 1, Start: 2, End: 2}, "a\nx"},
		{"start beyond, nothing", "a", "", 3, 9, Edit{Start: 3, End: 3}, "a"},
		{"in nothing", "", "x", 1, 1, Edit{Lines: 1, Start: 1, End: 1}, "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReplaceLines([]byte(c.data), c.text, c.start, c.end)
			if data := string(got.Data); err != nil || data != c.data2 || got.Lines != c.want.Lines ||
				got.Start != c.want.Start || got.End != c.want.End || got.Replaced != c.want.Replaced {
				t.Errorf("got %q, %+v, %v\nwant %q, %+v", data, got, err, c.data2, c.want)
			}
		})
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\xff"), "x", int64(2), int64(2), true)
	f.Add([]byte("a"), "x\n", int64(999), int64(1), false)
	f.Add([]byte(""), "", int64(-1<<63), int64(1<<63-1), true)
	f.Fuzz(func(t *testing.T, data []byte, text string, start, end int64, replace bool) {
		before := bytes.Clone(data)
		edit := func() (Edit, error) { return InsertLines(data, text, start) }
		if replace {
			edit = func() (Edit, error) { return ReplaceLines(data, text, start, end) }
		}
		e, err := edit()
		if !bytes.Equal(before, data) {
			t.Fatal("changed in place")
		}
		if err != nil {
			if checkHead(data) == nil {
				t.Fatal(err)
			}
			return
		}
		n := countLines(data)
		if e.Start < 1 || e.Start > n+1+maxGap || e.Replaced > n || e.Lines != countLines(text) {
			t.Fatalf("%+v of %d lines", e, n)
		}
		// The lines before and behind keep their bytes, but for breaks between.
		head := data[:lineOffset(data, e.Start-1)]
		tail := data[lineOffset(data, e.Start-1+e.Replaced):]
		if !bytes.HasPrefix(e.Data, head) || !bytes.HasSuffix(e.Data, tail) {
			t.Fatalf("%q became %q", data, e.Data)
		}
		if text == "" && e.Replaced == 0 && !bytes.Equal(e.Data, data) {
			t.Fatalf("nothing inserted, %q became %q", data, e.Data)
		}
		if text != "" {
			middle := string(e.Data[len(head) : len(e.Data)-len(tail)])
			rest := strings.Replace(middle, text, "", 1)
			if len(rest) == len(middle) || strings.Trim(rest, "\r\n") != "" || strings.Count(rest, "\n") > maxGap+2 {
				t.Fatalf("%q into %q gives %q", text, data, e.Data)
			}
		}
	})
}
