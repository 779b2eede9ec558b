package search

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
	"time"
)

// readerFile is a file over any reader.
type readerFile struct{ io.Reader }

func (readerFile) Close() error       { return nil }
func (readerFile) ModTime() time.Time { return time.Time{} }

// randomLines returns lines of up to most bytes.
func randomLines(r *rand.Rand, n, most int) []byte {
	var data []byte
	for range n {
		data = append(data, bytes.Repeat([]byte{byte('a' + r.IntN(26))}, r.IntN(most))...)
		data = append(data, '\n')
	}
	return data[:len(data)-r.IntN(2)]
}

func readBlocks(t *testing.T, b *blocks, r io.Reader) (all []byte) {
	t.Helper()
	if err := b.open(readerFile{r}); err != nil {
		t.Fatal(err)
	}
	for {
		block, err := b.next()
		if err != nil {
			t.Fatal(err)
		}
		if len(block) == 0 {
			return all
		}
		all = append(all, block...)
		if !b.eof && block[len(block)-1] != '\n' {
			t.Fatalf("a block of %d bytes ends within a line", len(block))
		}
	}
}

func TestBlocksAreWholeLines(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	var b blocks // used again and again, as workers do
	for _, most := range []int{2, 100, 5000, 300_000} {
		data := randomLines(r, min(600_000/most+1, 20_000), most)
		for name, reader := range map[string]io.Reader{
			"whole": bytes.NewReader(data), "halves": iotest.HalfReader(bytes.NewReader(data)), "late end": iotest.DataErrReader(bytes.NewReader(data)),
		} {
			if got := readBlocks(t, &b, reader); !bytes.Equal(got, data) {
				t.Errorf("%s, lines of %d: %d bytes of %d", name, most, len(got), len(data))
			}
		}
	}
}

func TestBlocksCutLongLines(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 3*maxLine+17)
	for name, tail := range map[string]string{"followed": "\nnext\nlast", "last": "", "ended": "\n"} {
		var b blocks
		if err := b.open(readerFile{bytes.NewReader(append(bytes.Clone(long), tail...))}); err != nil {
			t.Fatal(err)
		}
		block, err := b.next()
		if err != nil || len(block) != maxLine {
			t.Errorf("%s: %d bytes, %v", name, len(block), err)
		}
		want := ""
		if name == "followed" {
			want = "next\nlast"
		}
		if block, err = b.next(); err != nil || string(block) != want {
			t.Errorf("%s: then %d bytes, %v", name, len(block), err)
		}
	}
}

func TestReadErrorIsUnreadable(t *testing.T) {
	broken := errors.New("broken")
	for _, multiline := range []bool{false, true} {
		p, err := compilePattern("needle", false, multiline)
		if err != nil {
			t.Fatal(err)
		}
		text := bytes.Repeat([]byte("text\n"), blockBytes/5+1)[:blockBytes]
		for name, r := range map[string]io.Reader{
			"at once": iotest.ErrReader(broken),
			"later":   io.MultiReader(bytes.NewReader(text), iotest.ErrReader(broken)),
		} {
			if n, what := newTestScanner(p).count(readerFile{r}, false); n != 0 || what != wasUnreadable {
				t.Errorf("%s, multiline %v: %d, %v", name, multiline, n, what)
			}
		}
	}
}
