package patch

import "encoding/binary"

// A sieve is a text as one pass sees it: which of its lines are looked for at all.
type sieve struct {
	pass    pass
	numbers map[string]uint32 // of the normal forms of the lines looked for, from 1
	maybe   [1 << 10]uint64   // a bit for each sketch of a form: most lines end here
	scratch []byte

	words []uint32 // the text: the numbers of its lines, other for a run of those that nothing looks for
	lines []int    // the line that each word stands for, the first of a run
	where [][]int  // by number: its places in words
}

// other stands for lines that nothing looks for.
const other = 0

func newSieve(p pass, wanted []string) *sieve {
	s := &sieve{pass: p, numbers: make(map[string]uint32, len(wanted)), scratch: make([]byte, 0, 256)}
	for _, line := range wanted {
		form := p.normal([]byte(line), nil)
		if s.numbers[string(form)] == other {
			s.numbers[string(form)] = uint32(len(s.numbers) + 1)
			word, bit := sketch(form)
			s.maybe[word] |= bit
		}
	}
	return s
}

// read numbers the lines of a text.
func (s *sieve) read(t *text) {
	s.where = make([][]int, len(s.numbers)+1)
	for line := range t.lines() {
		w := s.number(t.line(line))
		n := len(s.words)
		if w == other && n > 0 && s.words[n-1] == other {
			continue
		}
		s.words, s.lines = append(s.words, w), append(s.lines, line)
		if w != other {
			s.where[w] = append(s.where[w], n)
		}
	}
}

// number is the number of a line, other when nothing looks for it.
func (s *sieve) number(line []byte) uint32 {
	form := s.pass.normal(line, s.scratch)
	if word, bit := sketch(form); s.maybe[word]&bit == 0 {
		return other
	}
	return s.numbers[string(form)]
}

// sketch is a cheap hash of a line, as the place of a bit: of its length, its
// beginning and its end, where lines mostly differ.
func sketch(line []byte) (word uint16, bit uint64) {
	h := uint64(len(line))
	if len(line) >= 8 {
		h += binary.LittleEndian.Uint64(line) * 0x9E3779B97F4A7C15
		h += binary.LittleEndian.Uint64(line[len(line)-8:]) * 0xC2B2AE3D27D4EB4F
		h += binary.LittleEndian.Uint64(line[len(line)/2-4:]) * 0x165667B19E3779F9
	} else {
		for _, c := range line {
			h = h*31 + uint64(c)
		}
		h *= 0x9E3779B97F4A7C15
	}
	h ^= h >> 32
	h *= 0x9E3779B97F4A7C15
	return uint16(h >> 54), 1 << (h >> 48 & 63)
}
