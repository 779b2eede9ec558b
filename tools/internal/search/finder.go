package search

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

// A finder seeks a set of literals in a buffer. It is read-only once made.
type finder struct {
	all    []literal
	lone   lone         // for a set of one
	first  [256]uint8   // for more: the buckets that a byte may begin a pair of,
	second [256]uint8   // and those whose pair it may end
	bucket [8][]pairing // the literals of each bucket
}

// A lone literal is sought by its two rarest bytes.
type lone struct {
	first, second int  // their places
	byIndex       bool // the first is so rare that it alone is sought
}

// A pairing is a literal of a set, and the place of the pair that it is sought by.
type pairing struct {
	literal
	at int
}

const (
	// tooFrequent is the share of bytes from which on running the automaton
	// over everything costs less than looking at every candidate line.
	tooFrequent = 1.0 / 180
	// rareByte is the rarity from which on seeking one byte, which the
	// library does with vector instructions, beats comparing two.
	rareByte = 56
)

// newFinder returns a finder for set and whether its hits are matches; nil when
// seeking would not pay.
func newFinder(set literalSet) (f *finder, exact bool) {
	for _, l := range set.all {
		// A CR before a line feed is not part of its line.
		set.exact = set.exact && !bytes.ContainsRune([]byte(l.text), '\r')
	}
	if len(set.all) == 0 || !set.exact && frequency(set.all) > tooFrequent {
		return nil, false
	}
	f = &finder{all: set.all}
	if len(set.all) == 1 {
		f.prepareLone()
	} else {
		f.prepareBuckets()
	}
	return f, set.exact
}

// next returns where the first literal at or behind from begins, or -1.
func (f *finder) next(buf []byte, from int) int {
	switch {
	case len(f.all) > 1:
		return f.nextOfSet(buf, from)
	case f.lone.byIndex:
		return f.nextByIndex(buf, from)
	}
	return f.nextByPair(buf, from)
}

func (f *finder) prepareLone() {
	l := f.all[0]
	first, second := rarest(l)
	letter := l.fold && isAlpha(l.text[first])
	f.lone = lone{first, second, !letter && (len(l.text) == 1 || l.rarity(first) >= rareByte)}
}

func (f *finder) nextByIndex(buf []byte, from int) int {
	l, at := f.all[0], f.lone.first
	c := l.text[at]
	for from += at; from < len(buf); from++ {
		i := bytes.IndexByte(buf[from:], c)
		if i < 0 {
			return -1
		}
		if from += i; l.isAt(buf, from-at) {
			return from - at
		}
	}
	return -1
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// nextByPair compares two bytes at eight places at a time.
func (f *finder) nextByPair(buf []byte, from int) int {
	l := f.all[0]
	mask1, want1 := l.word(f.lone.first)
	mask2, want2 := l.word(f.lone.second)
	ahead1, ahead2 := f.lone.first, f.lone.second
	p := from
	for last := len(buf) - 8 - max(ahead1, ahead2); p <= last; p += 8 {
		x := binary.LittleEndian.Uint64(buf[p+ahead1:])&mask1 ^ want1
		x |= binary.LittleEndian.Uint64(buf[p+ahead2:])&mask2 ^ want2
		// A zero byte of x is a place where both bytes fit. A borrow may add
		// places above a true one, which the full comparison weeds out.
		for hits := (x - lowBits) &^ x & highBits; hits != 0; hits &= hits - 1 {
			if at := p + bits.TrailingZeros64(hits)/8; l.isAt(buf, at) {
				return at
			}
		}
	}
	for ; p+len(l.text) <= len(buf); p++ {
		if l.isAt(buf, p) {
			return p
		}
	}
	return -1
}

// word returns eight copies of the byte at i, and the bits of it that count.
func (l literal) word(i int) (mask, want uint64) {
	c, m := l.text[i], byte(0xff)
	if l.fold && isAlpha(c) {
		m = 0xdf
	}
	return uint64(m) * lowBits, uint64(c&m) * lowBits
}

// isAt reports whether the literal stands in buf at i.
func (l literal) isAt(buf []byte, i int) bool {
	if i < 0 || len(buf)-i < len(l.text) {
		return false
	}
	at := buf[i : i+len(l.text)]
	if !l.fold {
		return string(at) == l.text
	}
	for k, c := range at {
		want := l.text[k]
		if c != want && !(c|0x20 == want && isAlpha(want)) {
			return false
		}
	}
	return true
}

// prepareBuckets spreads the literals, in the order of their pairs so that
// equal pairs share a bucket.
func (f *finder) prepareBuckets() {
	all := make([]pairing, len(f.all))
	for i, l := range f.all {
		all[i] = pairing{l, l.rarestPair()}
	}
	slices.SortFunc(all, func(a, b pairing) int { return bytes.Compare(a.pair(), b.pair()) })
	for i, p := range all {
		n := i * len(f.bucket) / max(len(all), len(f.bucket))
		f.bucket[n] = append(f.bucket[n], p)
		bit := uint8(1) << n
		pair := p.pair()
		mark(&f.first, pair[0], p.fold, bit)
		if len(pair) > 1 {
			mark(&f.second, pair[1], p.fold, bit)
			continue
		}
		for c := range f.second {
			f.second[c] |= bit
		}
	}
}

func (p pairing) pair() []byte { return []byte(p.text[p.at:min(p.at+2, len(p.text))]) }

// rarestPair returns where the two neighbours that are rarest together begin.
func (l literal) rarestPair() (at int) {
	most := -1
	for i := range len(l.text) - 1 {
		if sum := int(l.rarity(i)) + int(l.rarity(i+1)); sum > most {
			most, at = sum, i
		}
	}
	return at
}

func mark(table *[256]uint8, c byte, fold bool, bit uint8) {
	table[c] |= bit
	if fold && isAlpha(c) {
		table[c&^0x20] |= bit
	}
}

// nextOfSet looks every pair of bytes up in two tables, eight pairs between two
// branches. Pairs lie at different places of their literals, so a hit is some
// literal of the first line that holds one, not always the leftmost.
func (f *finder) nextOfSet(buf []byte, from int) int {
	a, b := &f.first, &f.second
	i := from
	for ; i+9 <= len(buf); i += 8 {
		w := buf[i : i+9 : i+9]
		hits := a[w[0]]&b[w[1]] | a[w[1]]&b[w[2]] | a[w[2]]&b[w[3]] | a[w[3]]&b[w[4]] |
			a[w[4]]&b[w[5]] | a[w[5]]&b[w[6]] | a[w[6]]&b[w[7]] | a[w[7]]&b[w[8]]
		if hits == 0 {
			continue
		}
		if at := f.verify(buf, from, i, i+8); at >= 0 {
			return at
		}
	}
	return f.verify(buf, from, i, len(buf))
}

// verify returns where a literal begins, at or behind from, whose pair begins
// from i on and before end; -1 if there is none.
func (f *finder) verify(buf []byte, from, i, end int) int {
	for ; i < end; i++ {
		hits := f.first[buf[i]]
		if i+1 < len(buf) {
			hits &= f.second[buf[i+1]]
		}
		for ; hits != 0; hits &= hits - 1 {
			for _, p := range f.bucket[bits.TrailingZeros8(hits)] {
				if i-p.at >= from && p.isAt(buf, i-p.at) {
					return i - p.at
				}
			}
		}
	}
	return -1
}
