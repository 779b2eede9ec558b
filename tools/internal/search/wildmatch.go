package search

import "strings"

// wildmatch is git's matcher of ignore patterns, byte by byte, with git's
// corner cases: an unclosed class matches nothing, a class never matches a
// slash in a path, and `**` is special only between slashes.
type wildmatch struct {
	pattern  string
	pathname bool // `*`, `?` and classes stop at a slash
	steps    int  // left until the match is given up
}

// maxWildSteps bounds the work for one name, so that a hostile pattern with
// many `**` cannot hold up a search. Honest patterns take a few hundred.
const maxWildSteps = 100_000

type wildResult uint8

const (
	wildNo              wildResult = iota
	wildYes                        //
	wildAbort                      // the text ended: no longer match of a star can help
	wildAbortToStarStar            // a slash stopped a single star
)

// matchWild reports whether the whole of text matches pattern.
func matchWild(pattern, text string, pathname bool) bool {
	w := wildmatch{pattern: pattern, pathname: pathname, steps: maxWildSteps}
	return w.match(0, text) == wildYes
}

// at returns the byte of the pattern at p, 0 behind its end. Patterns hold no NUL.
func (w *wildmatch) at(p int) byte {
	if p < len(w.pattern) {
		return w.pattern[p]
	}
	return 0
}

func (w *wildmatch) match(p int, text string) wildResult {
	for ; p < len(w.pattern); p++ {
		if w.steps--; w.steps < 0 {
			return wildAbort
		}
		c := w.pattern[p]
		if c == '*' {
			return w.star(p, text)
		}
		if text == "" {
			return wildAbort
		}
		ok := false
		switch c {
		case '?':
			ok = !w.pathname || text[0] != '/'
		case '[':
			next, hit, closed := w.class(p, text[0])
			if !closed {
				return wildAbort
			}
			p, ok = next, hit && !(w.pathname && text[0] == '/')
		case '\\':
			p++
			ok = w.at(p) == text[0]
		default:
			ok = c == text[0]
		}
		if !ok {
			return wildNo
		}
		text = text[1:]
	}
	if text != "" {
		return wildNo
	}
	return wildYes
}

// star matches from the star at p on.
func (w *wildmatch) star(p int, text string) wildResult {
	first := p
	for w.at(p) == '*' {
		p++
	}
	slashes := !w.pathname
	if w.pathname && p-first > 1 && w.alone(first, p) {
		if w.at(p) == '/' && w.match(p+1, text) == wildYes {
			return wildYes
		}
		slashes = true
	}
	switch {
	case p == len(w.pattern):
		if !slashes && strings.Contains(text, "/") {
			return wildNo
		}
		return wildYes
	case !slashes && w.pattern[p] == '/':
		i := strings.IndexByte(text, '/')
		if i < 0 {
			return wildNo
		}
		return w.match(p+1, text[i+1:])
	}
	return w.tryEach(p, text, slashes)
}

// alone reports whether the stars from first to end stand between slashes.
func (w *wildmatch) alone(first, end int) bool {
	before := first == 0 || w.pattern[first-1] == '/'
	after := end == len(w.pattern) || w.pattern[end] == '/' || strings.HasPrefix(w.pattern[end:], `\/`)
	return before && after
}

// tryEach matches the rest of the pattern, which begins at p behind a star, at
// every place of text that the star can reach.
func (w *wildmatch) tryEach(p int, text string, slashes bool) wildResult {
	for ; text != ""; text = text[1:] {
		got := w.match(p, text)
		if got == wildNo && !slashes && text[0] == '/' {
			return wildAbortToStarStar
		}
		if got != wildNo && (!slashes || got != wildAbortToStarStar) {
			return got
		}
	}
	return wildAbort
}

// class matches c against the class that opens at p. It returns the place of
// the closing bracket; closed is false when there is none or a name is unknown.
func (w *wildmatch) class(p int, c byte) (end int, hit, closed bool) {
	p++
	negated := w.at(p) == '!' || w.at(p) == '^'
	if negated {
		p++
	}
	var low byte // what a `-` would start from, 0 for nothing
	for first := true; first || w.at(p) != ']'; first = false {
		switch b := w.at(p); {
		case b == 0:
			return 0, false, false
		case b == '-' && low != 0 && w.at(p+1) != 0 && w.at(p+1) != ']':
			p++
			if w.at(p) == '\\' {
				p++
			}
			if w.at(p) == 0 {
				return 0, false, false
			}
			hit = hit || low <= c && c <= w.at(p)
			low = 0
		case b == '[' && w.at(p+1) == ':':
			name, width := w.className(p)
			if width == 0 { // no `:]`: the bracket stands for itself
				hit, low = hit || c == '[', '['
				break
			}
			is, known := posixClasses[name]
			if !known {
				return 0, false, false
			}
			hit, low, p = hit || is(c), 0, p+width-1
		default:
			if b == '\\' {
				p++
			}
			if low = w.at(p); low == 0 {
				return 0, false, false
			}
			hit = hit || c == low
		}
		p++
	}
	return p, hit != negated, true
}

// className reads `[:name:]` at p and returns the name and the bytes it takes,
// 0 when it is something else.
func (w *wildmatch) className(p int) (name string, width int) {
	rest := w.pattern[p+2:]
	i := strings.IndexByte(rest, ']')
	switch {
	case i < 0: // no closing bracket at all: the class is not closed either
		return "", len(w.pattern)
	case i < 1 || rest[i-1] != ':':
		return "", 0
	}
	return rest[:i-1], i + 3
}

// posixClasses are the named classes, for ASCII, as git has them.
var posixClasses = map[string]func(byte) bool{
	"alnum":  func(c byte) bool { return isAlpha(c) || isDigit(c) },
	"alpha":  isAlpha,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  isControl,
	"digit":  isDigit,
	"graph":  func(c byte) bool { return c > ' ' && c < 0x7f },
	"lower":  func(c byte) bool { return 'a' <= c && c <= 'z' },
	"print":  func(c byte) bool { return c >= ' ' && c < 0x7f },
	"punct":  func(c byte) bool { return c > ' ' && c < 0x7f && !isAlpha(c) && !isDigit(c) },
	"space":  func(c byte) bool { return strings.IndexByte(" \t\n\v\f\r", c) >= 0 },
	"upper":  func(c byte) bool { return 'A' <= c && c <= 'Z' },
	"xdigit": func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
