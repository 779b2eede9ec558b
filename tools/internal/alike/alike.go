// Package alike tells how much two lines look alike, so that a refusal can show
// the place that was probably meant.
package alike

// maxBytes is how much of a line is compared: enough to tell lines apart, and
// a bound on the work for files without line breaks.
const maxBytes = 500

// buckets is how many counters the pairs of bytes are spread over.
const buckets = 4096

// A Line is a line prepared for being compared with many others. Not safe for
// concurrent use.
type Line struct {
	size  int             // pairs in the line
	count [buckets]uint16 // how often each pair occurs in it
	taken []uint16        // scratch: the buckets that Likeness took from
}

// New prepares the line s.
func New(s string) *Line {
	l := &Line{}
	s = s[:min(len(s), maxBytes)]
	for i := 0; i+1 < len(s); i++ {
		l.count[pair(s[i], s[i+1])]++
	}
	l.size = max(len(s)-1, 0)
	return l
}

// Likeness returns how much of the two lines is the same, from 0 (nothing) to 1:
// Dice's coefficient of their pairs of neighbouring bytes. Lines of fewer than
// two bytes have no pairs and are like nothing. least is the likeness from which
// on the caller cares; where it cannot be reached the answer may be 0.
func (l *Line) Likeness(s []byte, least float64) float64 {
	s = s[:min(len(s), maxBytes)]
	size := max(len(s)-1, 0)
	if l.size == 0 || size == 0 || 2*float64(min(l.size, size)) < least*float64(l.size+size) {
		return 0
	}
	l.taken = l.taken[:0]
	for i := 0; i+1 < len(s); i++ {
		if b := pair(s[i], s[i+1]); l.count[b] > 0 {
			l.count[b]--
			l.taken = append(l.taken, b)
		}
	}
	for _, b := range l.taken {
		l.count[b]++
	}
	return 2 * float64(len(l.taken)) / float64(l.size+size)
}

// pair is the bucket of two neighbouring bytes.
func pair(a, b byte) uint16 { return (uint16(a)*61 ^ uint16(b)) % buckets }
