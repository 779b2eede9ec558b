package search

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// A literal is a text that a match contains. With fold it is in lower case,
// its letters are ASCII and have no other case than the ASCII one.
type literal struct {
	text string
	fold bool
}

// A literalSet holds literals one of which every match contains; an empty set
// of literals says that nothing can match, a nil one that nothing is known.
// It is exact when the occurrence of one of them is a match already.
type literalSet struct {
	all   []literal
	exact bool
}

// maxLiterals bounds a set: seeking more costs what running the automaton does.
const maxLiterals = 64

// literalsOf returns the literals to seek before matching re. Those with a line
// feed are dropped when re is matched line by line: they cannot occur.
func literalsOf(re *syntax.Regexp, multiline bool) literalSet {
	set := literalSet{}
	if all, ok := expand(re); ok {
		set = literalSet{all, true}
	} else {
		set.all = required(re)
	}
	if !multiline {
		set.all = slices.DeleteFunc(set.all, func(l literal) bool { return strings.Contains(l.text, "\n") })
	}
	if slices.ContainsFunc(set.all, func(l literal) bool { return l.text == "" }) {
		return literalSet{}
	}
	return set
}

// expand returns all the texts that re matches, if they are few. An inexact
// expansion, one that forgets a condition, is never returned.
func expand(re *syntax.Regexp) (all []literal, ok bool) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return []literal{{}}, true
	case syntax.OpLiteral:
		return expandLiteral(re)
	case syntax.OpCharClass:
		return expandClass(re)
	case syntax.OpCapture:
		return expand(re.Sub[0])
	case syntax.OpQuest:
		if all, ok = expand(re.Sub[0]); ok {
			return append(all, literal{}), true
		}
	case syntax.OpAlternate:
		return expandAlternate(re.Sub)
	case syntax.OpConcat:
		all = []literal{{}}
		for _, sub := range re.Sub {
			next, ok := expand(sub)
			if !ok {
				return nil, false
			}
			if all, ok = join(all, next); !ok {
				return nil, false
			}
		}
		return all, true
	}
	return nil, false
}

func expandLiteral(re *syntax.Regexp) ([]literal, bool) {
	fold := re.Flags&syntax.FoldCase != 0
	for _, r := range re.Rune {
		if !isPlainRune(r, fold) {
			return nil, false
		}
	}
	text := string(re.Rune)
	if fold {
		text = strings.ToLower(text)
	}
	return []literal{{text, fold}}, true
}

// isPlainRune reports whether r in a pattern stands for its own bytes only, or
// with fold for one ASCII letter in both cases. U+FFFD also matches bytes that
// are not UTF-8; k and s have a third case beyond ASCII.
func isPlainRune(r rune, fold bool) bool {
	if r == utf8.RuneError || !utf8.ValidRune(r) {
		return false
	}
	if !fold || isCaseless(r) {
		return true
	}
	return r < utf8.RuneSelf && r|0x20 != 'k' && r|0x20 != 's'
}

func expandClass(re *syntax.Regexp) (all []literal, ok bool) {
	const most = 8
	for i := 0; i < len(re.Rune); i += 2 {
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			if len(all) == most || !isPlainRune(r, false) {
				return nil, false
			}
			all = append(all, literal{text: string(r)})
		}
	}
	return all, true
}

func expandAlternate(subs []*syntax.Regexp) (all []literal, ok bool) {
	for _, sub := range subs {
		some, ok := expand(sub)
		if !ok || len(all)+len(some) > maxLiterals {
			return nil, false
		}
		all = append(all, some...)
	}
	return all, true
}

// join returns every text of heads followed by every one of tails. Texts with
// and without case do not join exactly when the latter have letters.
func join(heads, tails []literal) (all []literal, ok bool) {
	if len(heads)*len(tails) > maxLiterals {
		return nil, false
	}
	for _, h := range heads {
		for _, t := range tails {
			switch {
			case h.fold == t.fold:
			case h.fold && !hasLetter(t.text), t.fold && !hasLetter(h.text):
			default:
				return nil, false
			}
			all = append(all, literal{h.text + t.text, h.fold || t.fold})
		}
	}
	return all, true
}

func hasLetter(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf || isAlpha(byte(r)) })
}

// required returns literals one of which every match of re contains, nil when
// none are known.
func required(re *syntax.Regexp) []literal {
	if all, ok := expand(re); ok {
		return all
	}
	switch re.Op {
	case syntax.OpLiteral:
		return longestPlain(re)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpAlternate:
		var all []literal
		for _, sub := range re.Sub {
			some := required(sub)
			if some == nil || len(all)+len(some) > maxLiterals {
				return nil
			}
			all = append(all, some...)
		}
		return all
	case syntax.OpConcat:
		return bestOfConcat(re.Sub)
	}
	return nil
}

// bestOfConcat joins neighbours that expand and returns the set that occurs least.
func bestOfConcat(subs []*syntax.Regexp) (best []literal) {
	offer := func(all []literal) {
		if all != nil && (best == nil || frequency(all) < frequency(best)) {
			best = all
		}
	}
	run := []literal{{}}
	for _, sub := range subs {
		next, ok := expand(sub)
		if !ok {
			offer(run)
			offer(required(sub))
			run = []literal{{}}
			continue
		}
		joined, ok := join(run, next)
		if !ok {
			offer(run)
			joined = next
		}
		run = joined
	}
	offer(run)
	return best
}

// longestPlain returns the longest part of a literal that can be sought.
func longestPlain(re *syntax.Regexp) []literal {
	fold := re.Flags&syntax.FoldCase != 0
	var best, run []rune
	for _, r := range re.Rune {
		if !isPlainRune(r, fold) {
			run = nil
			continue
		}
		if run = append(run, r); len(run) > len(best) {
			best = run
		}
	}
	if best == nil {
		return nil
	}
	text := string(best)
	if fold {
		text = strings.ToLower(text)
	}
	return []literal{{text, fold}}
}
