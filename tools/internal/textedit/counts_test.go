package textedit

import (
	"strings"
	"testing"
)

// A logFile tells its version and how much of it was read.
type logFile struct {
	*strings.Reader
	version any
	read    int64
}

func (f *logFile) Version() (any, bool) { return f.version, f.version != nil }

func (f *logFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.Reader.ReadAt(p, off)
	f.read += int64(n)
	return n, err
}

// last reads the last line, and tells how much was read for it.
func (f *logFile) last(t *testing.T, want string, total int64) (read int64) {
	t.Helper()
	f.read = 0
	w, err := ReadWindow(f, f.Size(), -1, All, false, 1000)
	if err != nil || w.Content != want || w.TotalLines != total {
		t.Fatalf("%q of %d lines (%v), not %q of %d", w.Content, w.TotalLines, err, want, total)
	}
	return f.read
}

func TestLinesOfALargeFileAreCountedOnce(t *testing.T) {
	const lines = 2 * rememberBytes / 10
	text := strings.Repeat("123456789\n", lines-1)
	f := &logFile{Reader: strings.NewReader(text + "last\n"), version: t.Name() + "1"}
	if read := f.last(t, "last\n", lines); read < f.Size() {
		t.Error("counted in", read, "of", f.Size())
	}
	if read := f.last(t, "last\n", lines); read > 3*blockBytes {
		t.Error("the second time", read, "bytes of", f.Size(), "were read")
	}
	more := &logFile{Reader: strings.NewReader(text + text + "end\n"), version: t.Name() + "2"}
	more.last(t, "end\n", 2*lines-1)
	unknown := &logFile{Reader: strings.NewReader(text + text + "end\n")}
	for range 2 {
		if read := unknown.last(t, "end\n", 2*lines-1); read < unknown.Size() {
			t.Error("of a file that cannot tell its version", read, "bytes were read")
		}
	}
	f.last(t, "last\n", lines)
}

// TestCountsArePartial: what one call counted is where the next goes on.
func TestCountsArePartial(t *testing.T) {
	const lines = 4 * rememberBytes / 10
	f := &logFile{Reader: strings.NewReader(strings.Repeat("123456789\n", lines)), version: t.Name()}
	x := newIndex(f, f.Size(), onlyLF)
	if _, ok, err := x.offset(lines / 2); !ok || err != nil {
		t.Fatal(ok, err)
	}
	read := f.read
	if n, err := newIndex(f, f.Size(), onlyLF).lines(); n != lines || err != nil || f.read > f.Size()+2*blockBytes {
		t.Error(n, err, "read", read, f.read)
	}
	if n, err := newIndex(f, f.Size(), anyEnd).lines(); n != lines || err != nil {
		t.Error("other ends:", n, err)
	}
}

func TestCountsAreFew(t *testing.T) {
	for i := range 3 * rememberFiles {
		f := &logFile{Reader: strings.NewReader(strings.Repeat("x\n", rememberBytes)), version: i}
		f.last(t, "x\n", rememberBytes)
	}
	counts.Lock()
	defer counts.Unlock()
	if len(counts.kept) != rememberFiles {
		t.Error(len(counts.kept), "are kept")
	}
}
