package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"
)

// However the bytes arrive, the reader hands over what splitting the whole
// text at line ends gives.
func FuzzLineReader(f *testing.F) {
	for _, seed := range []string{"", "a\nb", "\xEF\xBB\xBF{}\r\n", " \n\n x ", "\xEF\xBB", "a\x00\nb\r\r\n"} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, blow int) {
		if blow > 0 && len(in) > 0 { // make long lines out of short ones
			in = bytes.Replace(in, in[:1], bytes.Repeat(in[:1], blow%200000), 1)
		}
		var want [][]byte
		for l := range bytes.SplitSeq(in, []byte("\n")) {
			if l = TrimMessage(l); len(l) > 0 {
				want = append(want, l)
			}
		}
		lines := NewLineReader(iotest.OneByteReader(bytes.NewReader(in)))
		for {
			got, over, err := lines.Next()
			if err != nil {
				break
			}
			if over != nil {
				t.Fatal("a short line is too long")
			}
			if len(got) == 0 {
				continue
			}
			if len(want) == 0 || !bytes.Equal(got, want[0]) {
				t.Fatalf("got %q, want %q", Clip(string(got), 100), want)
			}
			want = want[1:]
		}
		if len(want) > 0 {
			t.Fatalf("missing %q", want)
		}
	})
}

// An id that is recovered is one, and of a message that is valid JSON it is
// the message's own.
func FuzzRecoverID(f *testing.F) {
	for _, seed := range []string{`{"id":1}`, `{"a":[{"id":2}],"id":"x\"" } `, `{"id":1.5}`, `{"a":"\",\"id\":3}`, `{"id":`, `[{"id":1}]`, `{"a":1,"id":12`} {
		f.Add([]byte(seed), 10)
	}
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		cut = min(max(cut, 0), len(in))
		id := (&Oversize{head: in[:cut], tail: in[cut:]}).ID()
		if id == nil {
			return
		}
		if !goodID(id) || !json.Valid(id) {
			t.Fatalf("%q is no id", id)
		}
		m, fault := Read(TrimMessage(in))
		if CheckUTF8(in) != nil || fault != nil || strings.Count(string(in), "id") > 1 || strings.Contains(string(in), "\\") {
			return
		}
		if !bytes.Equal(id, m.ID) {
			t.Fatalf("got %q of %q, its id is %q", id, in, m.ID)
		}
	})
}
