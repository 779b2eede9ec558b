package search

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
)

// A PatternError says why a pattern cannot be searched for.
type PatternError struct {
	Reason string
	hint   string
}

func (e *PatternError) Error() string  { return "pattern is not valid: " + e.Reason }
func (*PatternError) Code() fault.Code { return fault.BadInput }

// Hint says what to do instead, where that is known.
func (e *PatternError) Hint() string { return e.hint }

// Bounds of a pattern: far above any that is meant, far below what fills memory.
const (
	maxPatternBytes = 32 << 10
	maxRewritten    = 1 << 20 // bytes, with \w and \W written out
	maxInstructions = 100_000 // of the program
)

var errTooLarge = &PatternError{Reason: "it is too large"}

const (
	re2Hint       = "Patterns are RE2 as in Go: no look-around and no back-references."
	multilineHint = "Set multiline to true to match across lines."
)

// A pattern is a compiled search pattern. It is read-only and shared by all workers.
type pattern struct {
	multiline  bool
	mayBeEmpty bool           // an empty match is possible
	re         *regexp.Regexp // says where a match lies
	reBehind   *regexp.Regexp // the same behind any one character, as its first group
	prog       *syntax.Prog   // for the automaton
	classes    *runeClasses   // of prog
	finder     *finder        // nil: no literal is worth looking for
	exact      bool           // a hit of the finder is a match
	stateBytes int            // what the states of one automaton may take
}

// compilePattern parses and compiles text. Without multiline it is matched
// against lines, so a pattern that only a line feed can satisfy is refused.
func compilePattern(text string, fold, multiline bool) (*pattern, error) {
	flags := "(?:"
	switch {
	case fold && multiline:
		flags = "(?ims:"
	case fold:
		flags = "(?i:"
	case multiline:
		flags = "(?ms:"
	}
	if len(text) > maxPatternBytes {
		return nil, errTooLarge
	}
	if _, err := syntax.Parse(text, syntax.Perl); err != nil {
		return nil, newPatternError(err)
	}
	full := flags + unicodeWords(text) + ")"
	if len(full) > maxRewritten {
		return nil, errTooLarge
	}
	tree, err := syntax.Parse(full, syntax.Perl)
	if err != nil {
		return nil, newPatternError(err)
	}
	if !multiline && needsLineFeed(tree) {
		return nil, &PatternError{"it can only match across lines, and lines are matched one by one", multilineHint}
	}
	p := &pattern{multiline: multiline, mayBeEmpty: mayBeEmpty(tree), stateBytes: maxStateBytes}
	if p.prog, err = syntax.Compile(tree.Simplify()); err != nil {
		return nil, newPatternError(err)
	}
	if len(p.prog.Inst) > maxInstructions {
		return nil, errTooLarge
	}
	if p.re, err = regexp.Compile(full); err != nil {
		return nil, newPatternError(err)
	}
	if p.reBehind, err = regexp.Compile("(?s:.)(" + full + ")"); err != nil {
		return nil, newPatternError(err)
	}
	p.classes = classify(p.prog)
	p.finder, p.exact = newFinder(literalsOf(tree, multiline))
	return p, nil
}

func newPatternError(err error) *PatternError {
	e := &PatternError{Reason: patternReason(err)}
	var bad *syntax.Error
	if errors.As(err, &bad) && isBeyondRE2(bad) {
		e.hint = re2Hint
	}
	return e
}

// isBeyondRE2 tells look-around and back-references from other mistakes.
func isBeyondRE2(e *syntax.Error) bool {
	switch e.Code {
	case syntax.ErrInvalidEscape:
		return len(e.Expr) > 1 && (isDigit(e.Expr[1]) || e.Expr[1] == 'k')
	case syntax.ErrInvalidPerlOp, syntax.ErrInvalidNamedCapture, syntax.ErrMissingRepeatArgument:
		return strings.HasPrefix(e.Expr, "(?")
	}
	return false
}

// patternReason returns the system's reason without its preamble.
func patternReason(err error) string {
	return strings.TrimPrefix(err.Error(), "error parsing regexp: ")
}

// needsLineFeed reports whether every match of re contains a line feed.
func needsLineFeed(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return slices.Contains(re.Rune, '\n')
	case syntax.OpCharClass:
		return len(re.Rune) == 2 && re.Rune[0] == '\n' && re.Rune[1] == '\n'
	case syntax.OpConcat:
		return slices.ContainsFunc(re.Sub, needsLineFeed)
	case syntax.OpAlternate:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !needsLineFeed(sub) })
	case syntax.OpCapture, syntax.OpPlus:
		return needsLineFeed(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min > 0 && needsLineFeed(re.Sub[0])
	}
	return false
}

// mayBeEmpty reports whether re can match no text at all.
func mayBeEmpty(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpNoMatch, syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return false
	case syntax.OpCapture, syntax.OpPlus:
		return mayBeEmpty(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || mayBeEmpty(re.Sub[0])
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !mayBeEmpty(sub) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, mayBeEmpty)
	}
	return true
}

// unicodeWords rewrites \w and \W of a valid pattern, which RE2 takes as ASCII,
// to cover letters and numbers of every script.
func unicodeWords(text string) string {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(text) && b.Len() <= maxRewritten; i++ {
		switch c := text[i]; {
		case c == '\\' && strings.HasPrefix(text[i:], `\Q`) && !inClass:
			quoted, _, closed := strings.Cut(text[i:], `\E`)
			b.WriteString(quoted)
			if i += len(quoted) - 1; closed {
				b.WriteString(`\E`)
				i += len(`\E`)
			}
		case c == '\\':
			i++
			b.WriteString(wordEscape(text[i], inClass))
		case inClass && strings.HasPrefix(text[i:], "[:"):
			if name, _, ok := strings.Cut(text[i:], ":]"); ok {
				b.WriteString(name)
				i += len(name) - 1
			} else {
				b.WriteByte(c)
			}
		case c == '[' && !inClass:
			inClass = true
			open := "["
			if strings.HasPrefix(text[i+1:], "^") {
				open += "^"
			}
			if strings.HasPrefix(text[i+len(open):], "]") {
				open += "]"
			}
			b.WriteString(open)
			i += len(open) - 1
		default:
			if c == ']' {
				inClass = false
			}
			b.WriteByte(c)
		}
	}
	return b.String()
}

// wordEscape returns what stands for a backslash and c. The underscore comes
// first so that a following `-z` does not make a range of it.
func wordEscape(c byte, inClass bool) string {
	switch {
	case c == 'w' && inClass:
		return `_\pL\pN`
	case c == 'w':
		return `[_\pL\pN]`
	case c == 'W' && inClass:
		return noWordRanges()
	case c == 'W':
		return `[^_\pL\pN]`
	}
	return `\` + string(rune(c))
}

// noWordRanges is the complement of \w as ranges, because a class cannot hold a
// negated class of its own. U+0345 is left out: without case it equals a letter.
var noWordRanges = sync.OnceValue(func() string {
	var b strings.Builder
	tree, err := syntax.Parse(`[^_\pL\pN\x{345}]`, syntax.Perl)
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(tree.Rune); i += 2 {
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, tree.Rune[i], tree.Rune[i+1])
	}
	return b.String()
})

// isCaseless reports whether r has no other case.
func isCaseless(r rune) bool { return unicode.SimpleFold(r) == r }
