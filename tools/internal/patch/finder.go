package patch

import (
	"slices"
	"sort"
)

// A finder looks in a text for the lines of one section's chunks. What each pass needs
// is built when it is first tried.
type finder struct {
	text   *text
	wanted []string // every line that will be looked for
	cursor int      // the first line that is searched
	want   int      // of several places the one nearest to this line is meant: 0, the first
	work   int      // lines that have been compared, see maxWork
	passes [passes]*sieve
}

// maxWork bounds the lines that are compared for one section. Only a patch of very many
// chunks whose lines the file repeats very often needs more: all others compare a line
// of the file a few times at most.
const maxWork = 1 << 28

// A hit is a place that was found.
type hit struct {
	line  int  // first line, from 0
	n     int  // lines, perhaps fewer than were asked for
	count int  // places from the cursor on, in the same pass
	pass  pass // the pass that found it
}

// newFinder makes a finder for the chunks of a section.
func newFinder(t *text, chunks []Chunk) *finder {
	f := &finder{text: t}
	for i := range chunks {
		f.wanted = append(append(f.wanted, chunks[i].Headers...), chunks[i].old()...)
	}
	return f
}

// find looks for the lines of old from the cursor on; with atEnd only the last lines
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
	if f.passes[p] == nil {
		f.passes[p] = newSieve(p, f.wanted)
		f.passes[p].read(f.text)
	}
	s := f.passes[p]
	words := make([]uint32, len(old))
	for i, line := range old {
		words[i] = s.number([]byte(line))
	}
	if atEnd {
		_, n := f.match(s, words, max(f.text.lines()-len(old), f.cursor))
		return hit{line: f.text.lines() - n, n: n, count: 1, pass: p}
	}
	h, _ := f.match(s, words, f.cursor)
	return h
}

// match finds the longest beginning of wanted that stands in the text from a line on.
// atEnd is how many lines of the longest beginning stand at the end of the text. (This
// is the algorithm of Knuth, Morris and Pratt, which goes on from each line that could
// be the first to the next of these.)
func (f *finder) match(s *sieve, wanted []uint32, from int) (h hit, atEnd int) {
	h.pass = s.pass
	first := s.where[wanted[0]]
	back := borders(wanted)
	for i, have := sort.SearchInts(s.lines, from), 0; i < len(s.words) && f.work < maxWork; i++ {
		if have == 0 {
			next, _ := slices.BinarySearch(first, i)
			if first = first[next:]; len(first) == 0 {
				break
			}
			i = first[0]
		}
		f.work++
		w := s.words[i]
		for have > 0 && (have == len(wanted) || wanted[have] != w) {
			have = back[have]
		}
		if wanted[have] == w {
			have++
		}
		if have > h.n {
			h.n, h.count = have, 0
		}
		if have == h.n && have > 0 {
			h.add(s.lines[i-have+1], f.want)
		}
		if i == len(s.words)-1 {
			atEnd = have
		}
	}
	return h, atEnd
}

// add counts a place, and takes it when it is the first or the nearest to the line that is meant.
func (h *hit) add(line, want int) {
	if h.count == 0 || max(line-want, want-line) < max(h.line-want, want-h.line) {
		h.line = line
	}
	h.count++
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
