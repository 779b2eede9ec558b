package search

import (
	"regexp/syntax"
	"slices"
	"sort"
	"unicode"
	"unicode/utf8"
)

// runeClasses parts all runes into classes that a program cannot tell apart.
type runeClasses struct {
	starts  []rune   // first runes of ranges, ascending, from 0
	class   []uint16 // the class of each range
	sample  []rune   // one rune of each class
	ofASCII [utf8.RuneSelf]uint16
}

// of returns the class of r.
func (c *runeClasses) of(r rune) uint16 {
	if uint32(r) < utf8.RuneSelf {
		return c.ofASCII[r]
	}
	return c.class[sort.Search(len(c.starts), func(i int) bool { return c.starts[i] > r })-1]
}

// classify finds the classes of a program's instructions.
func classify(prog *syntax.Prog) *runeClasses {
	insts := distinctRunes(prog)
	c := &runeClasses{starts: boundaries(insts)}
	known := map[string]uint16{}
	signature := make([]byte, (len(insts)+2+7)/8)
	for _, r := range c.starts {
		clear(signature)
		for i, inst := range insts {
			if inst.MatchRune(r) {
				signature[i/8] |= 1 << (i % 8)
			}
		}
		// A line feed, and what word boundaries look at, stay apart.
		for i, is := range []bool{r == '\n', syntax.IsWordChar(r)} {
			if is {
				signature[(len(insts)+i)/8] |= 1 << ((len(insts) + i) % 8)
			}
		}
		class, ok := known[string(signature)]
		if !ok {
			class = uint16(len(c.sample))
			known[string(signature)] = class
			c.sample = append(c.sample, r)
		}
		c.class = append(c.class, class)
	}
	at := 0
	for r := range rune(utf8.RuneSelf) {
		if at+1 < len(c.starts) && c.starts[at+1] <= r {
			at++
		}
		c.ofASCII[r] = c.class[at]
	}
	return c
}

// distinctRunes returns the instructions that match runes, those that share
// their table (copies made of a repetition) once.
func distinctRunes(prog *syntax.Prog) (insts []*syntax.Inst) {
	type table struct {
		first *rune
		n     int
		arg   uint32
	}
	seen := map[table]bool{}
	for i := range prog.Inst {
		inst := &prog.Inst[i]
		if inst.Op != syntax.InstRune && inst.Op != syntax.InstRune1 || len(inst.Rune) == 0 {
			continue
		}
		key := table{&inst.Rune[0], len(inst.Rune), inst.Arg}
		if !seen[key] {
			seen[key] = true
			insts = append(insts, inst)
		}
	}
	return insts
}

// boundaries returns the runes at which an instruction may begin or cease to match.
func boundaries(insts []*syntax.Inst) []rune {
	at := []rune{0, '\n', '\n' + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1}
	for _, inst := range insts {
		if len(inst.Rune) > 1 {
			for i := 0; i+1 < len(inst.Rune); i += 2 {
				at = append(at, inst.Rune[i], inst.Rune[i+1]+1)
			}
			continue
		}
		r := inst.Rune[0]
		at = append(at, r, r+1)
		if syntax.Flags(inst.Arg)&syntax.FoldCase != 0 {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				at = append(at, f, f+1)
			}
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	return slices.DeleteFunc(at, func(r rune) bool { return r > unicode.MaxRune })
}
