package screen

import (
	"regexp"
	"testing"
)

func TestColoured(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain", "plain"},
		{"\x1b[31mred\x1b[0m plain", "\x1b[0;38;5;1mred\x1b[0m plain"},
		{"\x1b[1;32mgo", "\x1b[0;1;38;5;2mgo\x1b[0m"},
		{"\x1b[1;91;44mx\x1b[22;39my\x1b[49mz", "\x1b[0;1;38;5;9;48;5;4mx\x1b[0;48;5;4my\x1b[0mz"},
		{"\x1b[38;5;208;3ma\x1b[48;2;1;2;300mb\x1b[m", "\x1b[0;3;38;5;208ma\x1b[0;3;38;5;208;48;2;1;2;44mb\x1b[0m"},
		{"\x1b[4:3mcurly\x1b[24m.", "\x1b[0;4mcurly\x1b[0m."},
		{"\x1b[31;;1mx\x1b[38:2::1:2:3my", "\x1b[0;1mx\x1b[0;1;38;2;1;2;3my\x1b[0m"},
		{"\x1b[31mone\ntwo", "\x1b[0;38;5;1mone\x1b[0m\n\x1b[0;38;5;1mtwo\x1b[0m"},
		{"\x1b[31mred\rR", "\x1b[0;38;5;1mRed\x1b[0m"},
		{"red\r\x1b[31mR", "\x1b[0;38;5;1mR\x1b[0med"},
		{"\x1b[38;5mx\x1b[999m\x1b[38;2;1my\x1b[8mz", "xyz"},
		{"\x1b[31m\x1b[2K", ""},
	} {
		if got := Coloured([]byte(c.in)); got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
}

var sgr = regexp.MustCompile(`\x1b\[0[0-9;]*m`)

// FuzzColoured: colours are all that there is besides the text.
func FuzzColoured(f *testing.F) {
	f.Add([]byte("\x1b[1;31mred\x1b[0m\rblue\x1b[44m\x1b[K\x1b[3Px\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, plain := Coloured(b), Text(b)
		if sgr.ReplaceAllString(got, "") != plain {
			t.Errorf("%q is not %q", got, plain)
		}
	})
}
