package search

import (
	"bytes"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"sync/atomic"
	"unicode/utf8"
)

// A dfa answers whether a pattern matches, in time linear in the text. Its
// states are sets of instructions of the compiled program and are made when
// they are first reached; one worker uses it at a time.
//
// In lines mode every line is a text of its own: a line feed, with the CR before
// it, ends one text and begins the next.
//
// Once stop is set an answer may come early and be wrong.
type dfa struct {
	prog    *syntax.Prog
	classes *runeClasses
	lines   bool
	stop    *atomic.Bool

	start  *dfaState // at the beginning of a text
	states map[string]*dfaState
	size   int // bytes that the states take, about,
	room   int // and may take

	now, then instSet
	key       []byte
}

// The states of one worker are bounded, beyond that they are forgotten and made
// anew; where many workers search their share is less.
const (
	maxStateBytes = 2 << 20
	allStateBytes = 16 << 20
	minStateBytes = 256 << 10
)

// stateBytes is the share of each of some workers.
func stateBytes(workers int) int {
	return min(max(allStateBytes/max(workers, 1), minStateBytes), maxStateBytes)
}

// A dfaState is what the automaton knows between two runes.
type dfaState struct {
	next     [256]*dfaState // by ASCII byte; nil: not known, a match, or not so simple
	wide     []*dfaState    // by class, for runes beyond ASCII
	insts    []uint32       // instructions waiting: of a rune or of an empty width
	before   before
	dead     bool // nothing can match in the rest of this line
	atEnd    bool // whether it matches when the text ends here,
	endKnown bool // once that is known
}

// before says what a state must remember of the rune before it.
type before uint8

const (
	beforeText before = iota // there is none
	beforeLine               // a line feed within a text
	beforeWord               // a character of \w in ASCII
	beforeElse
)

// matched is the state reached when a match is certain.
var matched = &dfaState{}

func newDFA(p *pattern, stop *atomic.Bool) *dfa {
	d := &dfa{prog: p.prog, classes: p.classes, lines: !p.multiline, stop: stop, room: p.stateBytes}
	d.now.init(len(p.prog.Inst))
	d.then.init(len(p.prog.Inst))
	d.forget()
	return d
}

func (d *dfa) forget() {
	d.states = map[string]*dfaState{}
	d.size = 0
	d.then.clear()
	d.follow(&d.then, uint32(d.prog.Start), 0)
	d.start = d.intern(beforeText)
}

// find returns an index within the first line of buf that matches (of its line
// feed at most), or -1. buf begins a line, and ends one or the file. Without
// lines it tells whether buf as one text matches.
func (d *dfa) find(buf []byte) int {
	s := d.start
	if s == matched {
		return d.emptyMatch(buf)
	}
	for i := 0; i < len(buf); {
		next := s.next[buf[i]]
		if next == s { // one state for long: no load waits for the one before
			for i++; i < len(buf) && s.next[buf[i]] == s; i++ {
			}
			continue
		}
		if next != nil {
			s = next
			i++
			continue
		}
		var n int
		if s, n = d.step(s, buf[i:]); s == matched {
			return i
		}
		i += n
	}
	if d.lines && (len(buf) == 0 || buf[len(buf)-1] == '\n') {
		return -1 // behind the last line feed there is no line
	}
	if d.matchesAtEnd(s) {
		return max(len(buf)-1, 0)
	}
	return -1
}

// emptyMatch answers for a pattern that matches everywhere, the empty text too.
func (d *dfa) emptyMatch(buf []byte) int {
	if d.lines && len(buf) == 0 {
		return -1
	}
	return 0
}

// step takes the transitions that the table does not hold. It returns the next
// state and the bytes that it took.
func (d *dfa) step(s *dfaState, buf []byte) (*dfaState, int) {
	c := buf[0]
	switch {
	case d.lines && c == '\n':
		if d.matchesAtEnd(s) {
			return matched, 1
		}
		s.next['\n'] = d.start
		return d.start, 1
	case d.lines && c == '\r' && len(buf) > 1 && buf[1] == '\n':
		return s, 1
	case s.dead && !d.lines:
		return s, len(buf)
	case s.dead:
		if i := bytes.IndexByte(buf, '\n'); i >= 0 {
			return s, i
		}
		return s, len(buf)
	case c < utf8.RuneSelf:
		class := d.classes.of(rune(c))
		next := d.advance(s, class)
		if next != matched && !(d.lines && c == '\r') {
			d.record(s, class, next)
		}
		return next, 1
	}
	r, n := utf8.DecodeRune(buf)
	class := d.classes.of(r)
	if s.wide == nil {
		s.wide = make([]*dfaState, len(d.classes.sample))
		d.size += 8 * len(s.wide)
	}
	if s.wide[class] == nil {
		s.wide[class] = d.advance(s, class)
	}
	return s.wide[class], n
}

// record enters a transition for every ASCII byte of a class.
func (d *dfa) record(s *dfaState, class uint16, next *dfaState) {
	for c, other := range d.classes.ofASCII {
		if other == class && !(d.lines && (c == '\r' || c == '\n')) {
			s.next[c] = next
		}
	}
}

// advance computes the state behind a rune of class.
func (d *dfa) advance(s *dfaState, class uint16) *dfaState {
	if d.size > d.room {
		d.forget() // s is not in the map any more, yet good until it is left
	}
	if d.stop.Load() {
		return matched
	}
	r := d.classes.sample[class]
	if d.resolve(s, emptyOps(s.before, r)) {
		return matched
	}
	d.then.clear()
	for _, pc := range d.now.dense {
		inst := &d.prog.Inst[pc]
		if isRuneInst(inst.Op) && matchRune(inst, r) && d.follow(&d.then, inst.Out, 0) {
			return matched
		}
	}
	if d.follow(&d.then, uint32(d.prog.Start), 0) {
		return matched
	}
	after := beforeElse
	switch {
	case r == '\n':
		after = beforeLine
	case syntax.IsWordChar(r):
		after = beforeWord
	}
	return d.intern(after)
}

// matchesAtEnd reports whether s matches when its text ends.
func (d *dfa) matchesAtEnd(s *dfaState) bool {
	if !s.endKnown {
		s.atEnd, s.endKnown = d.resolve(s, emptyOps(s.before, -1)), true
	}
	return s.atEnd
}

// resolve sets now to the instructions of s with the empty widths in ops passed,
// and reports whether that is a match.
func (d *dfa) resolve(s *dfaState, ops syntax.EmptyOp) bool {
	d.now.clear()
	for _, pc := range s.insts {
		if d.follow(&d.now, pc, ops) {
			return true
		}
	}
	return false
}

// follow adds to set the instructions that pc leads to without a rune, and
// reports whether the match is among them. Unsatisfied empty widths are kept:
// the next rune may satisfy them.
func (d *dfa) follow(set *instSet, pc uint32, ops syntax.EmptyOp) bool {
	stack := append(set.stack[:0], pc)
	for len(stack) > 0 {
		pc = stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !set.add(pc) {
			continue
		}
		switch inst := &d.prog.Inst[pc]; inst.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, inst.Out)
		case syntax.InstEmptyWidth:
			if want := syntax.EmptyOp(inst.Arg); want&^ops == 0 {
				stack = append(stack, inst.Out)
			}
		}
	}
	set.stack = stack
	return false
}

// intern returns the state for the instructions in then.
func (d *dfa) intern(after before) *dfaState {
	s := &dfaState{before: beforeElse, dead: true}
	for _, pc := range d.then.dense {
		switch inst := &d.prog.Inst[pc]; {
		case inst.Op == syntax.InstMatch:
			return matched
		case inst.Op == syntax.InstEmptyWidth:
			s.before = after
			s.insts = append(s.insts, pc)
			const atBeginning = syntax.EmptyBeginText | syntax.EmptyBeginLine
			if !d.lines || after == beforeText || syntax.EmptyOp(inst.Arg)&atBeginning == 0 {
				s.dead = false
			}
		case isRuneInst(inst.Op):
			s.dead = false
			s.insts = append(s.insts, pc)
		}
	}
	slices.Sort(s.insts)
	d.key = append(d.key[:0], byte(s.before))
	for _, pc := range s.insts {
		d.key = binary.LittleEndian.AppendUint32(d.key, pc)
	}
	if known, ok := d.states[string(d.key)]; ok {
		return known
	}
	d.states[string(d.key)] = s
	d.size += 256*8 + 8*len(s.insts) + 200
	return s
}

// emptyOps returns the empty widths that hold between what was before and the
// rune after, -1 at the end of the text.
func emptyOps(b before, after rune) syntax.EmptyOp {
	var ops syntax.EmptyOp
	switch {
	case b == beforeText:
		ops |= syntax.EmptyBeginText | syntax.EmptyBeginLine
	case b == beforeLine:
		ops |= syntax.EmptyBeginLine
	}
	switch after {
	case -1:
		ops |= syntax.EmptyEndText | syntax.EmptyEndLine
	case '\n':
		ops |= syntax.EmptyEndLine
	}
	if (b == beforeWord) != syntax.IsWordChar(after) {
		return ops | syntax.EmptyWordBoundary
	}
	return ops | syntax.EmptyNoWordBoundary
}

func isRuneInst(op syntax.InstOp) bool {
	switch op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	return false
}

func matchRune(inst *syntax.Inst, r rune) bool {
	switch inst.Op {
	case syntax.InstRuneAny:
		return true
	case syntax.InstRuneAnyNotNL:
		return r != '\n'
	}
	return inst.MatchRune(r)
}

// An instSet is a set of program counters that is cleared in constant time.
type instSet struct {
	dense  []uint32 // the members, in the order they came
	sparse []uint32 // where in dense each may stand
	stack  []uint32 // for those who fill the set
}

func (s *instSet) init(n int) {
	s.dense = make([]uint32, 0, n)
	s.sparse = make([]uint32, n)
}

func (s *instSet) clear() { s.dense = s.dense[:0] }

// add reports whether pc was not in the set before.
func (s *instSet) add(pc uint32) bool {
	if i := s.sparse[pc]; int(i) < len(s.dense) && s.dense[i] == pc {
		return false
	}
	s.sparse[pc] = uint32(len(s.dense))
	s.dense = append(s.dense, pc)
	return true
}
