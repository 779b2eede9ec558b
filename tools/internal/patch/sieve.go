package patch

import "encoding/binary"

// A sieve is a text as one pass sees it: which of its lines are sought at all.
type sieve struct {
	pass    pass
	numbers map[string]uint32 // of the normal forms of the lines sought, from 1
	maybe   [1 << 10]uint64   // a bit for each sketch of a form: most lines end here
	index   *index            // built when it is first needed
	scratch []byte
}

func newSieve(p pass, sought []string) *sieve {
	s := &sieve{pass: p, numbers: make(map[string]uint32, len(sought))}
	for _, line := range sought {
		form := p.normal([]byte(line), nil)
		if s.numbers[string(form)] == stranger {
			s.numbers[string(form)] = uint32(len(s.numbers) + 1)
			word, bit := sketch(form)
			s.maybe[word] |= bit
		}
	}
	return s
}

// number is the number of a line, 0 when it is not sought.
func (s *sieve) number(line []byte) uint32 {
	form := s.pass.normal(line, s.scratch)
	if word, bit := sketch(form); s.maybe[word]&bit == 0 {
		return stranger
	}
	return s.numbers[string(form)]
}

// words numbers the lines of a text from line `from` on.
func (s *sieve) words(t *text, from int) []uint32 {
	s.scratch = make([]byte, 0, 256)
	words := make([]uint32, t.lines()-from)
	for i := range words {
		words[i] = s.number(t.line(from + i))
	}
	return words
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
