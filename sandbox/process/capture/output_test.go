package capture

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func captured(keep int, parts ...string) Output {
	c := &Stream{Keep: keep}
	for _, p := range parts {
		_, _ = c.Write([]byte(p))
	}
	return c.Finish()
}

func TestOutputText(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		budget   int
		want     string
		cut      bool
	}{
		{"empty", "", 10, "", false},
		{"fits exactly", "0123456789", 10, "0123456789", false},
		{"one over", "0123456789a", 10, "01234\n[... 1 bytes cut; 11 bytes in all ...]\n6789a", true},
		{"head ends a line", "abcd\nefghijklmno", 10, "abcd\n[... 6 bytes cut; 16 bytes in all ...]\nklmno", true},
		{"characters stay whole", "ééééééé", 10, "éé\n[... 6 bytes cut; 14 bytes in all ...]\néé", true},
		{"invalid counts three", "\xff\xff\xff\xff", 11, "\ufffd\n[... 2 bytes cut; 4 bytes in all ...]\n\ufffd", true},
		{"invalid fits", "a\xffb", 5, "a\ufffdb", false},
		{"middle not kept", strings.Repeat("a", 500) + strings.Repeat("z", 500), 10,
			"aaaaa\n[... 990 bytes cut; 1000 bytes in all ...]\nzzzzz", true},
		{"no room", "abc", 0, "[... 3 bytes cut; 3 bytes in all ...]\n", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, cut := captured(20, tt.in).Text(tt.budget)
			if got != tt.want || cut != tt.cut {
				t.Errorf("got %q %v, want %q %v", got, cut, tt.want, tt.cut)
			}
		})
	}
}

func TestCutOutputsShares(t *testing.T) {
	a, b := strings.Repeat("a", 300), strings.Repeat("b", 300)
	for _, tt := range []struct{ lenA, lenB, wantA, wantB int }{
		{50, 50, 50, 50}, {300, 20, 80, 20}, {20, 300, 20, 80}, {300, 300, 50, 50}, {300, 0, 100, 0}, {60, 40, 60, 40},
	} {
		out, err, _ := Cut(captured(100, a[:tt.lenA]), captured(100, b[:tt.lenB]), 100)
		if n := strings.Count(out, "a") - strings.Count(out, " a"); n != tt.wantA { // the marker has two words with a: "all"
			t.Errorf("%d,%d: stdout kept %d, want %d", tt.lenA, tt.lenB, n, tt.wantA)
		}
		marks := 0
		if strings.Contains(err, "[...") {
			marks = strings.Count("bytes cut; bytes in all", "b")
		}
		if n := strings.Count(err, "b") - marks; n != tt.wantB {
			t.Errorf("%d,%d: stderr kept %d, want %d", tt.lenA, tt.lenB, n, tt.wantB)
		}
	}
}

func TestJoinOutputs(t *testing.T) {
	for _, tt := range []struct{ out, err string }{
		{"", ""}, {"a", ""}, {"", "b"}, {"a", "b"}, {"a\n", "b"},
		{strings.Repeat("a", 99), "b"}, {"a", strings.Repeat("b", 99)}, {strings.Repeat("a", 99), strings.Repeat("é", 99)},
	} {
		want := tt.out
		if tt.out != "" && tt.err != "" && !strings.HasSuffix(tt.out, "\n") {
			want += "\n"
		}
		want += tt.err
		j := Join(captured(10, tt.out), captured(10, tt.err))
		if j.Total != int64(len(want)) || j.TextBytes != int64(len(want)) {
			t.Errorf("%q+%q: %d bytes, want %d", tt.out, tt.err, j.Total, len(want))
		}
		if !strings.HasPrefix(want, string(j.Head)) || !strings.HasSuffix(want, string(j.Tail)) {
			t.Errorf("%q+%q: head %q tail %q", tt.out, tt.err, j.Head, j.Tail)
		}
		if !j.Complete() && (len(j.Head) < 10 || len(j.Tail) < 10) {
			t.Errorf("%q+%q: too little kept", tt.out, tt.err)
		}
	}
}

func TestTailLastLine(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""}, {"one\ntwo\n\n  \n", "two"}, {"one\ntw", "tw"}, {"10%\r20%\r", "20%"},
		{strings.Repeat("x", 10_000) + "\nend\n", "end"}, {"\n\n", ""},
	} {
		tail := new(Tail)
		c := &Stream{Keep: 64, Latest: tail}
		_, _ = c.Write([]byte(tt.in))
		if got, _ := tail.Last(); got != tt.want {
			t.Errorf("%.20q: got %q, want %q", tt.in, got, tt.want)
		}
	}
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte("hello \xff\xe2\x82 wörld 😀 end"), 3, 12, 8)
	f.Add(bytes.Repeat([]byte("\xf0\x9f\x98"), 40), 1, 9, 30)
	f.Fuzz(func(t *testing.T, in []byte, step, budget, keep int) {
		step, keep = 1+abs(step)%64, 1+abs(keep)%256
		budget = abs(budget) % (keep + 1)
		c := &Stream{Keep: keep}
		for b := in; len(b) > 0; b = b[min(step, len(b)):] {
			_, _ = c.Write(b[:min(step, len(b))])
		}
		o := c.Finish()
		if o.Total != int64(len(in)) || o.TextBytes != int64(len(ValidText(in))) {
			t.Fatalf("total %d of %d, text %d of %d", o.Total, len(in), o.TextBytes, len(ValidText(in)))
		}
		if !bytes.HasPrefix(in, o.Head) || !bytes.HasSuffix(in, o.Tail) {
			t.Fatalf("head %q tail %q of %q", o.Head, o.Tail, in)
		}
		text, cut := o.Text(budget)
		if !utf8.ValidString(text) {
			t.Fatalf("invalid: %q", text)
		}
		if cut != (len(ValidText(in)) > budget) {
			t.Fatalf("cut %v", cut)
		}
		if !cut {
			if text != ValidText(in) {
				t.Fatalf("%q became %q", in, text)
			}
			return
		}
		mark := strings.LastIndex(text, "[... ")
		if over := len(text) - budget - len(fmt.Sprintf("\n[... %d bytes cut; %d bytes in all ...]\n", len(in), len(in))); mark < 0 || over > 0 {
			t.Fatalf("%d bytes over the budget %d: %q", over, budget, text)
		}
	})
}

func abs(n int) int { return max(n, -(n + 1)) }
