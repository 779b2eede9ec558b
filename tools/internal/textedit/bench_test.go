package textedit

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// bigFile writes n MB of lines of about 80 bytes.
func bigFile(tb testing.TB, mb int, eol string) (*os.File, int64) {
	tb.Helper()
	f, err := os.Create(filepath.Join(tb.TempDir(), "big"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	line := strings.Repeat("0123456789", 8)[:80-len(eol)] + eol
	block := []byte(strings.Repeat(line, 1<<20/len(line)))
	for range mb {
		if _, err := f.Write(block); err != nil {
			tb.Fatal(err)
		}
	}
	info, err := f.Stat()
	if err != nil {
		tb.Fatal(err)
	}
	return f, info.Size()
}

// rawScan is the least that counting lines can cost.
func rawScan(r io.ReaderAt, size int64) (lines int, err error) {
	buf := make([]byte, blockBytes)
	for off := int64(0); off < size; off += blockBytes {
		n, err := readAt(r, buf, off)
		if err != nil {
			return lines, err
		}
		lines += bytes.Count(buf[:n], lf)
	}
	return lines, nil
}

func BenchmarkLastLines(b *testing.B) {
	for _, mb := range []int{1, 10, 100} {
		f, size := bigFile(b, mb, "\n")
		crlf, crlfSize := bigFile(b, mb, "\r\n")
		lines, _ := rawScan(f, size)
		for _, c := range []struct {
			name string
			read func() error
		}{
			{"raw", func() error { _, err := rawScan(f, size); return err }},
			{"slice", func() error { _, err := ReadSlice(f, size, ptr(-11), nil, 131072); return err }},
			{"sliceBackwards", func() error { _, err := ReadSlice(f, size, ptr(-11), ptr(-1), 131072); return err }},
			{"window", func() error { _, err := ReadWindow(f, size, -10, All, true, 131072); return err }},
			{"numbered", func() error { _, err := ReadNumbered(f, size, int64(lines-10), 10, 10000); return err }},
			{"numberedCRLF", func() error { _, err := ReadNumbered(crlf, crlfSize, int64(lines-10), 10, 10000); return err }},
			{"whole", func() error { _, err := ReadNumbered(f, size, 1, All, 10000); return err }},
		} {
			b.Run(fmt.Sprintf("%s/%dMB", c.name, mb), func(b *testing.B) {
				b.SetBytes(size)
				b.ReportAllocs()
				for b.Loop() {
					if err := c.read(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkReplaceFirst(b *testing.B) {
	for _, lines := range []int{1000, 10000, 100000} {
		data := []byte(strings.Repeat("some text of a line, forty bytes long..\r\n", lines) + "the end")
		for name, old := range map[string]string{"found": "The end", "missing": "THERE is no such text"} {
			if name == "found" {
				old = "the end"
			}
			b.Run(fmt.Sprintf("%s/%d", name, lines), func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					if _, err := ReplaceFirst(data, old, "x"); (err == nil) != (name == "found") {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// However large the file and its lines are, little of it is held.
func TestMemoryIsBounded(t *testing.T) {
	f, size := bigFile(t, 64, "x") // a single line
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err1 := ReadSlice(f, size, ptr(-1), nil, 131072)
	w, err2 := ReadWindow(f, size, 1, All, true, 131072)
	n, err3 := ReadNumbered(f, size, 1, 9, 10000)
	runtime.ReadMemStats(&after)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	if s.LongLine != size || w.LongLine != size || len(n) > 2100 {
		t.Errorf("%d and %d bytes of %d; %d", s.LongLine, w.LongLine, size, len(n))
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("%d bytes were allocated for a file of %d", used, size)
	}
}
