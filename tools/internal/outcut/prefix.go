package outcut

import (
	"fmt"
	"unicode/utf8"
)

// LineBytes is how much of one line is shown where lines are numbered.
const LineBytes = 2000

// Prefix returns the longest beginning of s that has at most limit bytes and
// does not end within a character. s is valid UTF-8.
func Prefix[T string | []byte](s T, limit int) T {
	if len(s) <= limit {
		return s
	}
	limit = max(limit, 0)
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// suffix is Prefix from the other end.
func suffix(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	start := len(s) - max(limit, 0)
	for start < len(s) && !utf8.RuneStart(s[start]) {
		start++
	}
	return s[start:]
}

// Line is one line of a file as it is shown: without its end, every byte that
// is no UTF-8 as U+FFFD, and what goes beyond [LineBytes] counted.
func Line[T string | []byte](line T) string {
	return More(string(AppendValid(nil, line)))
}

// More cuts a valid text to [LineBytes] and says how many bytes follow.
func More(text string) string {
	if len(text) <= LineBytes {
		return text
	}
	head := Prefix(text, LineBytes)
	return head + Rest(int64(len(text)-len(head)))
}

// Rest is what stands in place of the n bytes that are left out of a line.
func Rest(n int64) string { return fmt.Sprintf("[... %d more bytes ...]", n) }

// AppendValid appends s to dst, each byte that is not part of valid UTF-8 as U+FFFD.
func AppendValid[T string | []byte](dst []byte, s T) []byte {
	if utf8.ValidString(string(s)) {
		return append(dst, s...)
	}
	for _, r := range string(s) {
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}
