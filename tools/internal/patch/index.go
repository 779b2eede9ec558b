package patch

// An index finds stretches of lines in a file, from a cursor on that only moves
// forward. It knows only the lines that are sought and numbers them; everything
// between them counts as one stranger. A suffix array over these numbers, sorted
// as deep as the longest stretch sought, gives all places of a stretch as one
// interval; a tree over it knows the first place behind the cursor and how many
// there are. So n lines of file and k lines of patch take O((n+k) log n) steps,
// whatever they contain.
type index struct {
	words  []uint32 // the file: numbers of sought lines, 0 for a run of others
	at     []uint32 // the line that words[i] stands for
	suffix []uint32 // positions in words, sorted by what follows there
	rank   []uint32 // the inverse of suffix
	live   *tree    // over suffix: the positions at or behind the cursor
	passed int      // words that are before the cursor
}

// stranger stands for lines that nobody seeks.
const stranger = 0

// newIndex indexes words, the number of each line of a file, as deep as depth.
func newIndex(words []uint32, depth int) *index {
	x := &index{}
	for i, w := range words {
		if n := len(x.words); w != stranger || n == 0 || x.words[n-1] != stranger {
			x.words = append(x.words, w)
			x.at = append(x.at, uint32(i))
		}
	}
	x.suffix, x.rank = sortSuffixes(x.words, depth)
	x.live = newTree(x.suffix)
	return x
}

// advance moves the cursor to a line of the file, never back.
func (x *index) advance(line int) {
	for x.passed < len(x.at) && int(x.at[x.passed]) < line {
		x.live.remove(int(x.rank[x.passed]))
		x.passed++
	}
}

// prefix finds the longest beginning of sought that stands somewhere behind the
// cursor: how many lines it has, where it stands first, and how often.
func (x *index) prefix(sought []uint32) (n, line, count int) {
	low, high := 0, len(x.suffix)
	for n < len(sought) && sought[n] != stranger {
		l, h := x.narrow(low, high, n, sought[n])
		c, first := x.live.query(l, h)
		if c == 0 {
			break
		}
		low, high, count, line = l, h, c, int(x.at[first])
		n++
	}
	return n, line, count
}

// narrow finds the part of an interval, whose suffixes agree up to depth, that
// has word there.
func (x *index) narrow(low, high, depth int, word uint32) (l, h int) {
	bound := func(from int, word uint32) int {
		to := high
		for from < to {
			mid := int(uint(from+to) >> 1)
			if x.word(int(x.suffix[mid])+depth) < word {
				from = mid + 1
			} else {
				to = mid
			}
		}
		return from
	}
	l = bound(low, word)
	return l, bound(l, word+1)
}

// word is words[i]; what lies behind the end is a stranger.
func (x *index) word(i int) uint32 {
	if i >= len(x.words) {
		return stranger
	}
	return x.words[i]
}

// sortSuffixes sorts the positions of words by the depth words that begin there,
// doubling the depth that is sorted in each round.
func sortSuffixes(words []uint32, depth int) (suffix, rank []uint32) {
	n := len(words)
	rank = append([]uint32(nil), words...)
	suffix, bySecond := make([]uint32, n), make([]uint32, n)
	for i := range bySecond {
		bySecond[i] = uint32(i)
	}
	countingSort(suffix, bySecond, rank)
	distinct := rename(suffix, rank, func(a, b uint32) bool { return words[a] == words[b] })
	for h := 1; h < depth && distinct < n; h *= 2 {
		shift(bySecond, suffix, h)
		countingSort(suffix, bySecond, rank)
		old := append([]uint32(nil), rank...)
		second := func(i uint32) uint32 { // 0 behind the end, where everything is smallest
			if int(i)+h >= n {
				return 0
			}
			return old[int(i)+h] + 1
		}
		distinct = rename(suffix, rank, func(a, b uint32) bool { return old[a] == old[b] && second(a) == second(b) })
	}
	for i, p := range suffix {
		rank[p] = uint32(i)
	}
	return suffix, rank
}

// shift lists the positions in the order of what begins h words behind them.
func shift(bySecond, suffix []uint32, h int) {
	out := bySecond[:0]
	for i := max(len(suffix)-h, 0); i < len(suffix); i++ {
		out = append(out, uint32(i))
	}
	for _, p := range suffix {
		if int(p) >= h {
			out = append(out, p-uint32(h))
		}
	}
}

// countingSort puts the positions in from into to, stably by their key.
func countingSort(to, from, key []uint32) {
	var top uint32
	for _, k := range key {
		top = max(top, k)
	}
	start := make([]uint32, top+2)
	for _, k := range key {
		start[k+1]++
	}
	for k := range top + 1 {
		start[k+1] += start[k]
	}
	for _, p := range from {
		to[start[key[p]]] = p
		start[key[p]]++
	}
}

// rename numbers the positions by their place in suffix, equal ones alike, and
// returns how many numbers there are.
func rename(suffix, rank []uint32, equal func(a, b uint32) bool) int {
	if len(suffix) == 0 {
		return 0
	}
	var number uint32
	last := suffix[0]
	for i, p := range suffix {
		if i > 0 && !equal(last, p) {
			number++
		}
		last = p
		rank[p] = number
	}
	return int(number) + 1
}
