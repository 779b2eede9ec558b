package screen

import (
	"bytes"
	"strconv"
	"strings"
)

// A look is the colours of a character and the ways in which it is written.
type look struct {
	ink, ground colour
	ways        uint8
}

// A colour is 0 for the usual one, one of the 256 of the palette, or of red, green and blue.
type colour uint32

const (
	ofPalette colour = 1 << 24
	ofRGB     colour = 2 << 24
)

// The ways, by the number that switches each on and the one that switches it off.
var ways = [...]struct{ on, off int }{{1, 22}, {2, 22}, {3, 23}, {4, 24}, {7, 27}}

// maxParams bounds what one sequence may say.
const maxParams = 32

// after is the look that the numbers of an SGR sequence make of this one.
func (l look) after(params []byte) look {
	numbers := read(params)
	for len(numbers) > 0 {
		used := 1
		switch n := numbers[0]; {
		case n == 0:
			l = look{}
		case n == 38 || n == 48:
			var c colour
			c, used = extended(numbers)
			l.set(n-38, c)
		case n >= 30 && n <= 49:
			l.set(n-n%10-30, palette(n%10, 0))
		case n >= 90 && n <= 97 || n >= 100 && n <= 107:
			l.set(n-n%10-90, palette(n%10, 8))
		default:
			l.switchTo(n)
		}
		numbers = numbers[used:]
	}
	return l
}

// read returns the numbers of an SGR sequence. One that is left out is 0; what stands
// behind colons counts for colours only.
func read(params []byte) (numbers []int) {
	for field := range bytes.SplitSeq(params, []byte(";")) {
		parts := bytes.FieldsFunc(field, func(r rune) bool { return r == ':' })
		if len(parts) == 0 {
			parts = [][]byte{[]byte("0")}
		}
		if main := string(parts[0]); main != "38" && main != "48" {
			parts = parts[:1]
		}
		for _, part := range parts {
			n, err := strconv.Atoi(string(part))
			if err != nil || len(numbers) == maxParams {
				return numbers
			}
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// palette is a colour of the first sixteen; 9 is the usual one.
func palette(n, bright int) colour {
	if n > 7 {
		return 0
	}
	return ofPalette | colour(n+bright)
}

// set sets the colour of the letters (0) or of the ground (10).
func (l *look) set(which int, c colour) {
	if which == 0 {
		l.ink = c
	} else {
		l.ground = c
	}
}

// extended reads a colour of 256, or of red, green and blue, behind 38 or 48.
func extended(n []int) (c colour, used int) {
	switch {
	case len(n) >= 3 && n[1] == 5:
		return ofPalette | colour(n[2]&255), 3
	case len(n) >= 5 && n[1] == 2:
		return ofRGB | colour(n[2]&255)<<16 | colour(n[3]&255)<<8 | colour(n[4]&255), 5
	}
	return 0, len(n)
}

func (l *look) switchTo(n int) {
	for i, w := range ways {
		switch n {
		case w.on:
			l.ways |= 1 << i
		case w.off:
			l.ways &^= 1 << i
		}
	}
}

// sequence sets this look, whatever was before.
func (l look) sequence() string {
	var b strings.Builder
	b.WriteString("\x1b[0")
	for i, w := range ways {
		if l.ways&(1<<i) != 0 {
			b.WriteString(";" + strconv.Itoa(w.on))
		}
	}
	b.WriteString(l.ink.numbers(38) + l.ground.numbers(48) + "m")
	return b.String()
}

func (c colour) numbers(which int) string {
	at := ";" + strconv.Itoa(which)
	switch c &^ 0xffffff {
	case ofPalette:
		return at + ";5;" + strconv.Itoa(int(c&255))
	case ofRGB:
		return at + ";2;" + strconv.Itoa(int(c>>16&255)) + ";" + strconv.Itoa(int(c>>8&255)) + ";" + strconv.Itoa(int(c&255))
	}
	return ""
}
