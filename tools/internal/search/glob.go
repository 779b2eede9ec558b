package search

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
)

// A GlobError says why an include is not a glob.
type GlobError struct{ Reason string }

func (e *GlobError) Error() string  { return "include is not a valid glob: " + e.Reason }
func (*GlobError) Code() fault.Code { return fault.BadInput }

// A glob decides which files are searched. The nil glob takes all.
type glob struct {
	re      *regexp.Regexp // of a whole name or path; linear time, whatever the glob
	exclude bool           // begins with `!`
	inName  bool           // no slash: matched against the name alone
}

// parseGlob compiles an include.
func parseGlob(s string) (*glob, error) {
	g := &glob{inName: !strings.Contains(s, "/")}
	s, g.exclude = strings.CutPrefix(s, "!")
	s = strings.TrimPrefix(strings.TrimPrefix(s, "./"), "/")
	switch {
	case s == "":
		return nil, &GlobError{"it names no file"}
	case !utf8.ValidString(s):
		return nil, &GlobError{"it is not valid UTF-8"}
	}
	t := globTranslator{rest: s}
	if err := t.run(); err != nil {
		return nil, &GlobError{err.Error()}
	}
	re, err := regexp.Compile(`(?s)\A` + t.out.String() + `\z`)
	if err != nil {
		return nil, &GlobError{patternReason(err)}
	}
	g.re = re
	return g, nil
}

// takes reports whether the file is to be searched: path is its path below the
// workspace, and from its byte below the searched directory begins at below.
func (g *glob) takes(path string, below int, name string) bool {
	if g == nil {
		return true
	}
	hit := false
	if g.inName {
		hit = g.re.MatchString(name)
	} else {
		hit = g.re.MatchString(path) || below > 0 && g.re.MatchString(path[below:])
	}
	return hit != g.exclude
}

// globTranslator writes a glob as a regular expression.
type globTranslator struct {
	rest  string
	out   strings.Builder
	depth int  // open braces
	last  byte // the byte before rest, '/' at the start
}

func (t *globTranslator) run() error {
	t.last = '/'
	for t.rest != "" {
		c := t.rest[0]
		before := len(t.rest)
		whole := t.rest
		if err := t.step(c); err != nil {
			return err
		}
		t.last = whole[before-len(t.rest)-1]
	}
	if t.depth > 0 {
		return fmt.Errorf("missing closing }")
	}
	return nil
}

func (t *globTranslator) step(c byte) error {
	switch {
	case c == '*':
		t.stars()
		return nil
	case c == '?':
		t.put(1, `[^/]`)
	case c == '[':
		return t.class()
	case c == '{':
		t.depth++
		t.put(1, `(?:`)
	case c == '}' && t.depth > 0:
		t.depth--
		t.put(1, `)`)
	case c == ',' && t.depth > 0:
		t.put(1, `|`)
	default:
		r, n, err := t.char()
		if err != nil {
			return err
		}
		t.put(n, regexp.QuoteMeta(string(r)))
	}
	return nil
}

func (t *globTranslator) put(n int, re string) {
	t.rest = t.rest[n:]
	t.out.WriteString(re)
}

// char reads one character, behind a backslash if there is one.
func (t *globTranslator) char() (r rune, n int, err error) {
	if t.rest[0] != '\\' {
		r, n = utf8.DecodeRuneInString(t.rest)
		return r, n, nil
	}
	if len(t.rest) == 1 {
		return 0, 0, fmt.Errorf("it ends with a backslash")
	}
	r, n = utf8.DecodeRuneInString(t.rest[1:])
	return r, n + 1, nil
}

// stars translates a run of stars. Between slashes `**/` also stands for nothing.
func (t *globTranslator) stars() {
	n := len(t.rest) - len(strings.TrimLeft(t.rest, "*"))
	switch {
	case n == 1:
		t.put(1, `[^/]*`)
	case strings.HasPrefix(t.rest[n:], "/") && strings.IndexByte("/{,", t.last) >= 0:
		t.put(n+1, `(?:.*/)?`)
	default:
		t.put(n, `.*`)
	}
}

// class translates `[a-z]`, `[!a-z]` and `[^a-z]`; a bracket that comes first
// stands for itself.
func (t *globTranslator) class() error {
	t.put(1, `[`)
	if strings.HasPrefix(t.rest, "!") || strings.HasPrefix(t.rest, "^") {
		t.put(1, `^/`)
	}
	for first := true; first || !strings.HasPrefix(t.rest, "]"); first = false {
		if t.rest == "" {
			return fmt.Errorf("missing closing ]")
		}
		low, n, err := t.char()
		if err != nil {
			return err
		}
		t.rest = t.rest[n:]
		high := low
		if len(t.rest) > 1 && t.rest[0] == '-' && t.rest[1] != ']' {
			t.rest = t.rest[1:]
			if high, n, err = t.char(); err != nil {
				return err
			}
			t.rest = t.rest[n:]
		}
		if high < low {
			return fmt.Errorf("%c-%c is not a range", low, high)
		}
		fmt.Fprintf(&t.out, `\x{%x}-\x{%x}`, low, high)
	}
	t.put(1, `]`)
	return nil
}
