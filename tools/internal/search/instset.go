package search

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
