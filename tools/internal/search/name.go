package search

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// EscapeName returns a file name or path that is safe within a line of text:
// every byte below 0x20, every 0x7F and every byte that is not part of valid
// UTF-8 is shown as \xNN.
func EscapeName(name string) string {
	if isPlain(name) {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		r, n := utf8.DecodeRuneInString(name)
		if isControl(name[0]) || r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, name[0])
		} else {
			b.WriteString(name[:n])
		}
		name = name[n:]
	}
	return b.String()
}

func isPlain(name string) bool {
	for i := 0; i < len(name); i++ {
		if isControl(name[i]) {
			return false
		}
	}
	return utf8.ValidString(name)
}

func isControl(c byte) bool { return c < 0x20 || c == 0x7f }

// validText returns b with each byte that is not part of valid UTF-8 as U+FFFD.
func validText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b)))
}
