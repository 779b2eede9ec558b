package screen

import "unicode/utf8"

const esc = 0x1b

// A piece is a character, or a control sequence with its first two numbers.
type piece struct {
	char          rune
	final         byte // of a control sequence; 0 for a character
	first, second int
	params        []byte // all of what the numbers were read from
}

// The characters that begin what ESC and a letter begin as well.
var introducers = map[rune]byte{0x90: 'P', 0x98: 'X', 0x9b: '[', 0x9d: ']', 0x9e: '^', 0x9f: '_'}

// next reads the first piece of b, which is not empty. A sequence that has no end
// is what b ends with.
func next(b []byte) (q piece, n int) {
	if b[0] == esc {
		q, n, _ = sequence(b)
		return q, n
	}
	r, n := utf8.DecodeRune(b)
	if kind, ok := introducers[r]; ok {
		q, m, _ := body(kind, b[n:])
		return q, n + m
	}
	return piece{char: r}, n
}

// sequence reads what begins with ESC.
func sequence(b []byte) (q piece, n int, whole bool) {
	if len(b) < 2 {
		return q, len(b), false
	}
	switch c := b[1]; {
	case c == '[' || c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
		q, n, whole = body(c, b[2:])
		return q, n + 2, whole
	case c >= ' ' && c <= '/': // intermediates, and one that ends them
		for n = 2; n < len(b) && b[n] >= ' ' && b[n] <= '/'; n++ {
		}
		if n == len(b) {
			return q, n, false
		}
		return q, n + 1, true
	case c == 'E' || c == 'D' || c == 'M': // to another line
		return piece{final: 'E'}, 2, true
	case c > ' ' && c < 0x7f:
		return q, 2, true
	}
	return q, 1, true
}

// body reads what an introducer of that kind begins.
func body(kind byte, b []byte) (q piece, n int, whole bool) {
	if kind == '[' {
		return control(b)
	}
	for i, c := range b { // a text for the terminal itself, to BEL or ESC \
		switch {
		case c == 7:
			return q, i + 1, true
		case c == esc && i+1 == len(b):
			return q, len(b), false
		case c == esc && b[i+1] == '\\':
			return q, i + 2, true
		case c == esc || c < ' ' && (kind == ']' || i > longest):
			return q, i, true // given up: no such text goes on so
		}
	}
	return q, len(b), false
}

// control reads numbers and the letter that says what they are for.
func control(b []byte) (q piece, n int, whole bool) {
	numbers := [2]*int{&q.first, &q.second}
	at, private := 0, false
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9':
			if at < 2 {
				*numbers[at] = min(*numbers[at]*10+int(c-'0'), 1<<20)
			}
		case c == ';' || c == ':':
			at++
		case c >= '<' && c <= '?':
			private = true
		case c >= ' ' && c <= '/':
			private = true // another sequence of the same letter
		case c >= '@' && c <= '~':
			if q.final, q.params = c, b[:i]; private {
				q = piece{}
			}
			return q, i + 1, true
		default:
			return piece{}, i, true // broken off
		}
	}
	return piece{}, len(b), false
}
