package patch

// A finder seeks the places of one section's chunks in a text. The cursor moves
// forward only. What each pass needs is built when it is first tried.
type finder struct {
	text   *text
	sought []string // every line that will be sought
	depth  int      // the longest stretch of them, in lines
	cursor int      // the first line that is searched
	passes [passes]*sieve
}

// A hit is a place that was found.
type hit struct {
	line  int  // first line, from 0
	n     int  // lines, perhaps fewer than were sought
	count int  // places from the cursor on, in the same pass
	pass  pass // the pass that found it
}

// newFinder makes a finder for the chunks of a section.
func newFinder(t *text, chunks []Chunk) *finder {
	f := &finder{text: t, depth: 1}
	for i := range chunks {
		old := chunks[i].old()
		f.sought = append(append(f.sought, chunks[i].Headers...), old...)
		f.depth = max(f.depth, len(old))
	}
	return f
}

// find seeks the lines of old from the cursor on; with atEnd only the last lines
// of the text will do. When no pass finds them all it does without empty lines at
// their end. It is called for lines that newFinder was told of.
func (f *finder) find(old []string, atEnd bool) (best hit, ok bool) {
	least := len(old)
	for least > 1 && old[least-1] == "" {
		least--
	}
	for p := range passes {
		h := f.try(p, old, atEnd)
		if h.n == len(old) {
			return h, true
		}
		if h.n >= least && h.n > best.n {
			best = h
		}
	}
	return best, best.n > 0
}

// try finds the longest beginning of old in one pass.
func (f *finder) try(p pass, old []string, atEnd bool) hit {
	s := f.sieve(p)
	words := make([]uint32, len(old))
	for i, line := range old {
		words[i] = s.number([]byte(line))
	}
	if atEnd {
		n := f.atEnd(s, words)
		return hit{line: f.text.lines() - n, n: n, count: 1, pass: p}
	}
	if s.index == nil {
		s.index = newIndex(s.words(f.text, 0), f.depth)
	}
	s.index.advance(f.cursor)
	n, line, count := s.index.prefix(words)
	return hit{line: line, n: n, count: count, pass: p}
}

// sieve is the sieve of pass p, perhaps without its index.
func (f *finder) sieve(p pass) *sieve {
	if f.passes[p] == nil {
		f.passes[p] = newSieve(p, f.sought)
	}
	return f.passes[p]
}

// atEnd is how many words of the longest beginning of sought stand at the end of
// the text, behind the cursor (the matcher of Knuth, Morris and Pratt).
func (f *finder) atEnd(s *sieve, sought []uint32) int {
	from := max(f.text.lines()-len(sought), f.cursor)
	if from > f.text.lines() {
		return 0
	}
	back := borders(sought)
	n := 0
	for _, w := range s.words(f.text, from) {
		for n > 0 && (n == len(sought) || sought[n] != w || w == stranger) {
			n = back[n]
		}
		if w != stranger && sought[n] == w {
			n++
		}
	}
	return n
}

// borders gives for each length the longest shorter beginning of words that is
// also its end.
func borders(words []uint32) []int {
	back := make([]int, len(words)+1)
	n := 0
	for i := 1; i < len(words); i++ {
		for n > 0 && words[n] != words[i] {
			n = back[n]
		}
		if words[n] == words[i] {
			n++
		}
		back[i+1] = n
	}
	return back
}
