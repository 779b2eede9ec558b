package textedit

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/tools/internal/outcut"
)

func ptr(i int64) *int64 { return &i }

func slice(data string, from, to *int64, budget int) (Slice, error) {
	return ReadSlice(strings.NewReader(data), int64(len(data)), from, to, budget)
}

func TestReadSlice(t *testing.T) {
	for _, c := range []struct {
		name, data string
		from, to   *int64
		budget     int
		want       Slice
	}{
		{"whole", "x\ny\n", nil, nil, 99, Slice{Content: "x\ny\n", To: 3}},
		{"empty", "", nil, nil, 99, Slice{To: 1}},
		{"first", "x\ny\n", ptr(0), ptr(1), 99, Slice{Content: "x", To: 1}},
		{"last piece", "x\ny", ptr(1), nil, 99, Slice{Content: "y", From: 1, To: 2}},
		{"from the end", "x\ny\nz", ptr(-2), nil, 99, Slice{Content: "y\nz", From: -2, To: 3}},
		{"both from the end", "x\ny\nz", ptr(-2), ptr(-1), 99, Slice{Content: "y", From: -2, To: -1}},
		{"clamped at the start", "x\ny\nz", ptr(-9), ptr(-1), 99, Slice{Content: "x\ny", From: -9, To: -1}},
		{"clamped away", "x\ny\nz", ptr(-9), ptr(-5), 99, Slice{From: -9, To: -5}},
		{"mixed", "x\ny\nz", ptr(1), ptr(-1), 99, Slice{Content: "y", From: 1, To: -1}},
		{"beyond", "x", ptr(5), ptr(9), 99, Slice{From: 5, To: 9}},
		{"to beyond", "x\ny", ptr(1), ptr(9), 99, Slice{Content: "y", From: 1, To: 9}},
		{"crossed", "x\ny", ptr(1), ptr(0), 99, Slice{From: 1}},
		{"CR and BOM stay", "\uFEFFa\r\nb\r", nil, nil, 99, Slice{Content: "\uFEFFa\r\nb\r", To: 2}},
		{"not UTF-8", "a\xffb", nil, nil, 5, Slice{Content: "a\uFFFDb", To: 1}},
		{"cut", "ab\ncd\nef", nil, nil, 6, Slice{Content: "ab\ncd", To: 2, Cut: true, TotalLines: 3}},
		{"cut from the end", "ab\ncd\nef", ptr(-2), ptr(-0), 6, Slice{From: -2, To: 0}},
		{"cut, both negative", "ab\ncd\nef\ngh", ptr(-3), ptr(-1), 4, Slice{Content: "cd", From: 1, To: 2, Cut: true, TotalLines: 4}},
		{"cut before an empty piece", "ab\n\ncd", nil, nil, 2, Slice{Content: "ab", To: 1, Cut: true, TotalLines: 3}},
		{"long first line", "abcdef\ng", nil, nil, 4, Slice{Content: "abcd", To: 1, Cut: true, TotalLines: 2, LongLine: 6}},
		{"long line at a character", "abéé\ng", ptr(0), ptr(2), 3, Slice{Content: "ab", To: 1, Cut: true, TotalLines: 2, LongLine: 6}},
		{"counted after U+FFFD", "a\xff\xff", nil, nil, 4, Slice{Content: "a\uFFFD", To: 1, Cut: true, TotalLines: 1, LongLine: 7}},
		{"no budget", "a", nil, nil, 0, Slice{To: 1, Cut: true, TotalLines: 1, LongLine: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := slice(c.data, c.from, c.to, c.budget); err != nil || got != c.want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, c.want)
			}
		})
	}
}

func TestReadWindow(t *testing.T) {
	for _, c := range []struct {
		name, data    string
		offset, limit int64
		numbers       bool
		budget        int
		want          Window
	}{
		{"whole", "a\nb\n", 1, All, false, 99, Window{Content: "a\nb\n", TotalLines: 2, LinesRead: 2, Offset: 1}},
		{"no last end", "a\nb", 0, All, false, 99, Window{Content: "a\nb", TotalLines: 2, LinesRead: 2, Offset: 1}},
		{"empty", "", 1, All, false, 99, Window{Offset: 1}},
		{"one empty line", "\n", 1, All, false, 99, Window{Content: "\n", TotalLines: 1, LinesRead: 1, Offset: 1}},
		{"window", "a\nb\nc\n", 2, 1, false, 99, Window{Content: "b\n", TotalLines: 3, LinesRead: 1, Offset: 2}},
		{"last lines", "a\nb\nc\n", -2, All, false, 99, Window{Content: "b\nc\n", TotalLines: 3, LinesRead: 2, Offset: 2}},
		{"more than there are", "a\nb", -9, 1, false, 99, Window{Content: "a\n", TotalLines: 2, LinesRead: 1, Offset: 1}},
		{"beyond", "a\nb", 7, 3, false, 99, Window{TotalLines: 2, Offset: 7}},
		{"limit 0", "a\nb", -1, 0, false, 99, Window{TotalLines: 2, Offset: 2}},
		{"numbers", "a\nb", 1, All, true, 99, Window{Content: "     1\ta\n     2\tb", TotalLines: 2, LinesRead: 2, Offset: 1}},
		{"CRLF and BOM stay", "\uFEFFa\r\nb\r", 1, All, false, 99, Window{Content: "\uFEFFa\r\nb\r", TotalLines: 2, LinesRead: 2, Offset: 1}},
		{"cut", "a\nb\nc\n", 1, All, false, 5, Window{Content: "a\nb\n", TotalLines: 3, LinesRead: 2, Offset: 1, Truncated: true, NextOffset: 3}},
		{"cut with numbers", "a\nb\nc\n", 2, All, true, 17, Window{Content: "     2\tb\n", TotalLines: 3, LinesRead: 1, Offset: 2, Truncated: true, NextOffset: 3}},
		{"long first line", "abcd\nb\n", 1, All, false, 3, Window{Content: "abc", TotalLines: 2, LinesRead: 1, Offset: 1, Truncated: true, NextOffset: 2, LongLine: 4}},
		{"only its LF does not fit", "abc\nb\n", 1, All, false, 3, Window{Content: "abc", TotalLines: 2, LinesRead: 1, Offset: 1, Truncated: true, NextOffset: 2, LongLine: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadWindow(strings.NewReader(c.data), int64(len(c.data)), c.offset, c.limit, c.numbers, c.budget)
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, c.want)
			}
		})
	}
}

func numberedText(data string, offset, limit int64, max int) (string, error) {
	return ReadNumbered(strings.NewReader(data), int64(len(data)), offset, limit, max)
}

func TestReadNumbered(t *testing.T) {
	long := strings.Repeat("é", 1001)
	for _, c := range []struct {
		name, data    string
		offset, limit int64
		max           int
		want          string
	}{
		{"all kinds of ends", "a\r\nb\rc\n\nd", 1, 99, 999, "L1: a\nL2: b\nL3: c\nL4: \nL5: d"},
		{"window", "a\nb\nc\nd\n", 2, 2, 999, "L2: b\nL3: c\n\n[... 1 more lines, next offset 4 ...]"},
		{"exactly the rest", "a\nb\n", 2, 1, 999, "L2: b"},
		{"empty", "", 1, 9, 999, "(empty file)"},
		{"only a BOM", "\uFEFF", 1, 9, 999, "(empty file)"},
		{"no BOM", "\uFEFFa\n\uFEFFb", 1, 9, 999, "L1: a\nL2: \uFEFFb"},
		{"white space stays", " a\t\n", 1, 9, 999, "L1:  a\t"},
		{"not UTF-8", "a\xff\n", 1, 9, 999, "L1: a\uFFFD"},
		{"a long line", long + "\nb", 1, 9, 9999, "L1: " + long[:2000] + "[... 2 more bytes ...]\nL2: b"},
		{"a line as long as may be", long[2:], 1, 9, 9999, "L1: " + long[2:]},
		{"cut in the middle", strings.Repeat("abcdefgh\n", 20), 3, 15, 100,
			"L3: abcdefgh\nL4: abcdefgh\nL5: abcdefgh\n\n[...truncated...] 42 tokens left out here; continue with offset 6\n\n\n[... 3 more lines, next offset 18 ...]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := numberedText(c.data, c.offset, c.limit, c.max); err != nil || got != c.want {
				t.Errorf("got %q, %v\nwant %q", got, err, c.want)
			}
		})
	}
}

func TestReadNumberedPastEnd(t *testing.T) {
	for data, lines := range map[string]int64{"": 0, "a": 1, "a\n": 1, "a\r": 1, "a\r\nb": 2, "\uFEFF": 0} {
		_, err := numberedText(data, lines+1+min(1-lines, 1)*max(1-lines, 0), 1, 99)
		var past *PastEndError
		if !errors.As(err, &past) || past.Lines != lines {
			t.Errorf("%q: %v, want %d lines", data, err, lines)
		}
	}
}

func TestNotText(t *testing.T) {
	near, far := strings.Repeat("a", 8191)+"\x00b\n", strings.Repeat("a", 8192)+"\x00b"
	for data, refused := range map[string]bool{near: true, far: false} {
		size := int64(len(data))
		_, err1 := slice(data, nil, nil, 1<<20)
		_, err2 := ReadWindow(strings.NewReader(data), size, 1, All, false, 1<<20)
		_, err3 := numberedText(data, 1, 9, 1<<20)
		_, err4 := InsertLines([]byte(data), "x", 1)
		_, err5 := ReplaceLines([]byte(data), "x", 1, 1)
		for i, err := range []error{err1, err2, err3, err4, err5} {
			var not *NotTextError
			if errors.As(err, &not) != refused || refused && len(not.Head) != 8192 {
				t.Errorf("%d: %v, refused should be %v", i, err, refused)
			}
		}
	}
}

// failing is a disk that cannot be read behind some point.
type failing struct{ *strings.Reader }

var errDisk = errors.New("the disk is gone")

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > blockBytes+9000 {
		return 0, errDisk
	}
	return f.Reader.ReadAt(p, off)
}

func TestReadErrorsAreTold(t *testing.T) {
	data := strings.Repeat("abc\n", blockBytes)
	r, size := failing{strings.NewReader(data)}, int64(len(data))
	_, err1 := ReadSlice(r, size, nil, nil, 9)
	_, err2 := ReadSlice(r, size, ptr(-1), nil, 9)
	_, err3 := ReadSlice(r, size, ptr(-2), ptr(-1), 9)
	_, err4 := ReadWindow(r, size, 1, 1, false, 9)
	_, err5 := ReadNumbered(r, size, blockBytes, 1, 9)
	for i, err := range []error{err1, err2, err3, err4, err5} {
		if !errors.Is(err, errDisk) {
			t.Errorf("%d: error %v", i, err)
		}
	}
	if got, err := ReadSlice(r, size, ptr(1), ptr(2), 9); err != nil || got.Content != "abc" {
		t.Errorf("what need not be read must not matter: %+v, %v", got, err)
	}
}

// A file that became shorter since its size was taken ends where it ends.
func TestShorterThanSaid(t *testing.T) {
	data := "a\nb\n"
	r := strings.NewReader(data)
	_, err1 := ReadSlice(r, 1<<20, ptr(-3), nil, 99)
	_, err2 := ReadWindow(r, 1<<20, 2, All, true, 99)
	got, err3 := ReadNumbered(r, 1<<20, 1, 9, 99)
	if err := errors.Join(err1, err2, err3); err != nil || got != "L1: a\nL2: b" {
		t.Errorf("%q, %v", got, err)
	}
}

// across puts data around the end of the first block, as a file that begins with
// lines of their own.
func across(data []byte, before uint16) []byte {
	n := blockBytes - int(before)%(len(data)+1)
	return append(bytes.Repeat([]byte("filler, filler\n"), n/15+1)[:n], data...)
}

func valid(data []byte) string { return string(outcut.AppendValid(nil, data)) }

func clampNaive(i *int64, missing, n int64) int64 {
	switch {
	case i == nil:
		return missing
	case *i < 0:
		return max(n+*i, 0)
	}
	return min(*i, n)
}

// naiveSlice is ReadSlice on a text that is held whole.
func naiveSlice(data []byte, from, to *int64, budget int) Slice {
	pieces := strings.Split(valid(data), "\n")
	n := int64(len(pieces))
	f, e := clampNaive(from, 0, n), clampNaive(to, n, n)
	s := Slice{To: n}
	if from != nil {
		s.From = *from
	}
	if to != nil {
		s.To = *to
	}
	if f >= e {
		return s
	}
	s.Content = strings.Join(pieces[f:e], "\n")
	for end := e; len(s.Content) > budget; end-- {
		s = Slice{Content: strings.Join(pieces[f:end-1], "\n"), From: f, To: end - 1, Cut: true, TotalLines: n}
		if end-1 == f {
			s.Content, s.To, s.LongLine = outcut.Prefix(pieces[f], budget), f+1, int64(len(pieces[f]))
			break
		}
	}
	return s
}

func FuzzReadSlice(f *testing.F) {
	f.Add([]byte("a\nb\xff\n\ncd"), uint16(0), int64(-3), int64(-1), 9, uint8(3))
	f.Add([]byte("é\n€\n😀"), uint16(5), int64(-9), int64(1<<53), 300000, uint8(2))
	f.Add([]byte("\n"), uint16(1), int64(0), int64(-1<<63), 1, uint8(7))
	f.Fuzz(func(t *testing.T, data []byte, before uint16, from, to int64, budget int, given uint8) {
		if given&4 != 0 {
			data = across(data, before)
		}
		if checkHead(data) != nil || len(data) > 1<<20 {
			t.Skip()
		}
		var a, b *int64
		if given&1 != 0 {
			a = &from
		}
		if given&2 != 0 {
			b = &to
		}
		budget = max(budget, 0)
		got, err := ReadSlice(bytes.NewReader(data), int64(len(data)), a, b, budget)
		if len(valid(data)) > budget && len(data) > 2000 {
			if err != nil || len(got.Content) > budget {
				t.Fatalf("%d bytes of %d, %v", len(got.Content), budget, err)
			}
			return // the naive way is slow here
		}
		if want := naiveSlice(data, a, b, budget); err != nil || got != want {
			t.Fatalf("%.99q %d %d %d\ngot  %.99q %v\nwant %.99q", data, from, to, budget, fmt.Sprintf("%+v", got), err, fmt.Sprintf("%+v", want))
		}
	})
}

func FuzzReadWindow(f *testing.F) {
	f.Add([]byte("a\nb\xff\n\ncd"), uint16(0), int64(-3), int64(2), true, 30, false)
	f.Add([]byte("é\n€\n😀"), uint16(5), int64(-2), int64(All), false, 300000, true)
	f.Fuzz(func(t *testing.T, data []byte, before uint16, offset, limit int64, numbers bool, budget int, far bool) {
		if far {
			data = across(data, before)
		}
		if checkHead(data) != nil || len(data) > 1<<20 {
			t.Skip()
		}
		lines := strings.SplitAfter(valid(data), "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		total := int64(len(lines))
		w, err := ReadWindow(bytes.NewReader(data), int64(len(data)), offset, limit, numbers, budget)
		if err != nil || w.TotalLines != total || len(w.Content) > max(budget, 0) || w.LinesRead > max(limit, 0) {
			t.Fatalf("%+v, %v", w, err)
		}
		var want strings.Builder
		for i := w.Offset; i < w.Offset+w.LinesRead; i++ {
			if numbers {
				fmt.Fprintf(&want, "%6d\t", i)
			}
			want.WriteString(lines[i-1])
		}
		if w.LongLine > 0 || w.Truncated && w.LinesRead == 1 {
			if !strings.HasPrefix(want.String(), w.Content) {
				t.Fatalf("%q of %q", w.Content, want.String())
			}
		} else if w.Content != want.String() {
			t.Fatalf("%q, want %q", w.Content, want.String())
		}
		if w.Truncated != (w.NextOffset != 0) || w.Truncated && w.NextOffset != w.Offset+w.LinesRead {
			t.Fatalf("%+v", w)
		}
		if all := w.Offset+w.LinesRead > total || w.LinesRead == max(limit, 0); !w.Truncated && !all && w.Offset <= total {
			t.Fatalf("%+v is not all", w)
		}
	})
}

func FuzzReadNumbered(f *testing.F) {
	f.Add([]byte("a\r\nb\rc\n\nd\r"), uint16(0), int64(1), int64(2), 99, false)
	f.Add([]byte("\r\n\r\r\n\xe2\x82"), uint16(1), int64(17480), int64(9), 200, true)
	f.Add([]byte(""), uint16(0), int64(1), int64(1), 3, false)
	f.Fuzz(func(t *testing.T, data []byte, before uint16, offset, limit int64, maxBytes int, far bool) {
		if far {
			data = across(data, before)
		}
		if checkHead(data) != nil || len(data) > 1<<20 || maxBytes > 1<<20 {
			t.Skip()
		}
		lines := strings.SplitAfter(strings.NewReplacer("\r\n", "\r\n|", "\n", "\n|", "\r", "\r|").Replace(strings.ReplaceAll(valid(bytes.TrimPrefix(data, utf8BOM)), "|", "/")), "|")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		got, err := ReadNumbered(bytes.NewReader(data), int64(len(data)), offset, limit, maxBytes)
		first, total := max(offset, 1), int64(len(lines))
		if first > total && !(total == 0 && first == 1) {
			if past := new(PastEndError); !errors.As(err, &past) || past.Lines != total {
				t.Fatalf("%v, want %d lines", err, total)
			}
			return
		}
		var shown []string
		last := total
		if l := max(limit, 1); l < total-first+1 {
			last = first + l - 1
		}
		for i := first; i <= last; i++ {
			shown = append(shown, fmt.Sprintf("L%d: %s", i, outcut.More(strings.TrimRight(lines[i-1], "\r\n|"))))
		}
		want := strings.Join(shown, "\n")
		if last < total {
			want += fmt.Sprintf("\n\n[... %d more lines, next offset %d ...]", total-last, last+1)
		}
		want = outcut.Middle(want, maxBytes, goOn(first, last-first+1))
		if total == 0 {
			want = "(empty file)" // of which nothing is cut, however little fits
		} else {
			got = strings.ReplaceAll(got, "|", "/")
		}
		if err != nil || got != want {
			t.Fatalf("%.99q: got %.300q, %v\nwant %.300q", data, got, err, want)
		}
	})
}
