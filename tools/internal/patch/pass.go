package patch

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// A pass is one of the ways in which lines are compared, from strict to lenient.
type pass int

const (
	exact pass = iota
	ignoreEnd
	ignoreBothEnds
	asASCII
	passes // how many there are
)

// notes tell that a pass other than the first one found the place.
var notes = [passes]string{
	ignoreEnd:      "matched after ignoring white space at line ends.",
	ignoreBothEnds: "matched after ignoring white space at both ends.",
	asASCII:        "matched after reading typographic characters as ASCII.",
}

// normal returns what of line counts in pass p; lines are equal in p when their
// normal forms are. It uses scratch when it has to build something.
func (p pass) normal(line, scratch []byte) []byte {
	switch p {
	case exact:
		return line
	case ignoreEnd:
		return bytes.TrimRightFunc(line, unicode.IsSpace)
	case ignoreBothEnds:
		return bytes.TrimSpace(line)
	}
	return plain(bytes.TrimSpace(line), scratch)
}

// plain writes the typographic characters of line as ASCII. Bytes that are no
// UTF-8 stay as they are.
func plain(line, scratch []byte) []byte {
	first := 0
	for first < len(line) && line[first] < utf8.RuneSelf {
		first++
	}
	if first == len(line) {
		return line
	}
	out := append(scratch[:0], line[:first]...)
	for rest := line[first:]; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if c := ascii(r); c != 0 {
			out = append(out, c)
		} else {
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	return out
}

// ascii is the plain form of a typographic character, 0 when it is none.
func ascii(r rune) byte {
	switch {
	case r >= 0x2010 && r <= 0x2015, r == 0x2212:
		return '-'
	case r >= 0x2018 && r <= 0x201B:
		return '\''
	case r >= 0x201C && r <= 0x201F:
		return '"'
	case r == 0xA0, r >= 0x2002 && r <= 0x200A, r == 0x202F, r == 0x205F, r == 0x3000:
		return ' '
	}
	return 0
}
