package alike

import (
	"strings"
	"testing"
)

func TestLikeness(t *testing.T) {
	for _, c := range []struct {
		a, b     string
		from, to float64
	}{
		{"return 1", "return 1", 1, 1},
		{"return value", "return values", 0.9, 0.99},
		{"def search():", "def serach():", 0.6, 0.9},
		{"def search():", "import os", 0, 0.3},
		{"abc", "xyz", 0, 0},
		{"", "", 0, 0},
		{"a", "a", 0, 0},
		{"aaaaaaaa", "aa", 0, 0.3},
		{strings.Repeat("ab", 5000), strings.Repeat("ab", 9000), 1, 1},
	} {
		if got := New(c.a).Likeness([]byte(c.b), 0); got < c.from || got > c.to {
			t.Errorf("%.20q and %.20q: %v, want %v to %v", c.a, c.b, got, c.from, c.to)
		}
	}
}

// Asking must not change what is asked: the counters are restored.
func TestLikenessTwice(t *testing.T) {
	l := New("the same line, the same line")
	first := l.Likeness([]byte("the same lines"), 0)
	if second := l.Likeness([]byte("the same lines"), 0); first != second {
		t.Errorf("first %v, then %v", first, second)
	}
}

// The short cut says 0 only where the full comparison stays below least too.
func FuzzLikeness(f *testing.F) {
	f.Add("return 1", "return 2 + 3", 0.5)
	f.Add("", "x", 0.5)
	f.Fuzz(func(t *testing.T, a, b string, least float64) {
		l := New(a)
		full := l.Likeness([]byte(b), 0)
		if full < 0 || full > 1 {
			t.Fatalf("likeness %v", full)
		}
		if short := l.Likeness([]byte(b), least); short != full && (short != 0 || full >= least) {
			t.Errorf("least %v: %v, in full %v", least, short, full)
		}
		if other := New(b).Likeness([]byte(a), 0); other != full {
			t.Errorf("not symmetric: %v and %v", full, other)
		}
	})
}
