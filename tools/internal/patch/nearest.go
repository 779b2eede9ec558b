package patch

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/tools/internal/alike"
	"github.com/perstack-ai/perstack-base/tools/internal/outcut"
)

// shownLines is how many of the wanted lines a refusal shows.
const shownLines = 20

// halfAlike is the likeness from which on a line is worth showing.
const halfAlike = 0.5

// A MatchError says that a header or the lines of a chunk were not found.
type MatchError struct {
	Path     string
	Line     int      // of the chunk, in the patch
	Header   string   // the header that was not found, "" for the lines
	Expected []string // the wanted lines, those that tell most
	At       int      // where the most similar lines of the file begin, from 1
	Closest  []string // these lines, as they are shown; nil when nothing is alike
	Advice   string   // what to do
}

func (e *MatchError) Error() string {
	if e.Header != "" {
		return fmt.Sprintf("Failed to find context '%s' in %s (patch line %d).", e.Header, e.Path, e.Line)
	}
	return fmt.Sprintf("Failed to find expected lines in %s (patch line %d).", e.Path, e.Line)
}
func (*MatchError) Code() fault.Code { return fault.NoMatch }

// Hint shows what was wanted, what comes closest, and says what to do.
func (e *MatchError) Hint() string {
	var b strings.Builder
	b.WriteString("Expected:\n")
	for _, line := range e.Expected {
		b.WriteString(line + "\n")
	}
	if len(e.Closest) > 0 {
		b.WriteString("Closest lines in the file:\n")
	}
	for i, line := range e.Closest {
		fmt.Fprintf(&b, "L%d: %s\n", e.At+i, line)
	}
	return b.String() + e.Advice
}

// refuse makes the error for lines (a header, or the old lines of c) that were
// not found.
func (u *updater) refuse(c *Chunk, header string, old []string) error {
	e := &MatchError{Path: u.section.Path, Line: c.Line, Header: header}
	e.Advice = u.advice(c, header, old)
	shown := u.window(old)
	for _, line := range shown {
		e.Expected = append(e.Expected, outcut.More(line))
	}
	at, n := u.closest(shown)
	e.At = at + 1
	for i := at; i < at+n; i++ {
		e.Closest = append(e.Closest, outcut.Line(u.text.line(i)))
	}
	return e
}

// unifiedHeader is what stands behind @@ in the patches of other tools.
var unifiedHeader = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-\d+(,\d+)? \+\d+(,\d+)? @@`) })

// advice says why the lines were not found, if that can be told.
func (u *updater) advice(c *Chunk, header string, old []string) string {
	if unifiedHeader().MatchString(header) {
		return "This is a unified diff header; write @@ alone or @@ and a line of the file."
	}
	if header == "" && c.EndOfFile {
		if h, ok := u.elsewhere(old, u.finder.cursor); ok {
			return fmt.Sprintf("They are at line %d, not at the end of the file; drop '*** End of File'.", h.line+1)
		}
	}
	if h, ok := u.elsewhere(old, 0); ok {
		return fmt.Sprintf("They are at line %d, above an earlier chunk; put chunks in file order.", h.line+1)
	}
	return "Read the file again and copy the lines as they are."
}

// elsewhere seeks lines from a line on that the finder has passed.
func (u *updater) elsewhere(old []string, from int) (hit, bool) {
	f := finder{text: u.text, wanted: old, cursor: from}
	return f.find(old, false)
}

// window picks the lines to show: the first ones, or those around the first that
// the file lacks.
func (u *updater) window(old []string) []string {
	if len(old) <= shownLines {
		return old
	}
	f := finder{text: u.text, wanted: old}
	from := 0
	if h := f.try(asASCII, old, false); h.n >= shownLines && h.n < len(old) {
		from = min(h.n-3, len(old)-shownLines)
	}
	return old[from : from+shownLines]
}

// closest finds the stretch of the file that is most like the wanted lines: most
// lines equal in the last pass, then most alike in characters. n is 0 when not
// even one line is half alike. It takes shownLines looks at each line at most.
func (u *updater) closest(wanted []string) (at, n int) {
	c := newComparer(u.text, wanted)
	most := c.mostEqual()
	best := -1.0
	for i := range c.places() {
		if c.equal(i) != most {
			continue
		}
		if score, half := c.likeness(i); half && score > best {
			at, best, n = i, score, c.n
		}
	}
	return at, n
}

// A comparer holds wanted lines against any stretch of a text.
type comparer struct {
	text   *text
	words  []uint32 // the text in the last pass
	wanted []uint32 // the wanted lines, likewise
	lines  []*alike.Line
	n      int // lines in a stretch
}

func newComparer(t *text, wanted []string) *comparer {
	s := newSieve(asASCII, wanted)
	c := &comparer{text: t, words: make([]uint32, t.lines()), n: min(len(wanted), t.lines())}
	for i := range c.words {
		c.words[i] = s.number(t.line(i))
	}
	for _, line := range wanted[:c.n] {
		form := asASCII.normal([]byte(line), nil)
		c.wanted = append(c.wanted, s.number(form))
		c.lines = append(c.lines, alike.New(string(form)))
	}
	return c
}

// places is how many stretches there are.
func (c *comparer) places() int { return c.text.lines() - c.n + 1 }

// equal counts the lines of the stretch at line i that are equal.
func (c *comparer) equal(i int) (n int) {
	for j, w := range c.wanted {
		if c.words[i+j] == w {
			n++
		}
	}
	return n
}

func (c *comparer) mostEqual() (most int) {
	for i := range c.places() {
		most = max(most, c.equal(i))
	}
	return most
}

// likeness sums how alike the lines of the stretch at line i are; half tells
// whether there is one that is half alike at least.
func (c *comparer) likeness(i int) (sum float64, half bool) {
	var scratch [256]byte
	for j, line := range c.lines {
		l := line.Likeness(asASCII.normal(c.text.line(i+j), scratch[:]), halfAlike)
		sum += l
		half = half || l >= halfAlike || c.words[i+j] == c.wanted[j] && len(c.text.line(i+j)) > 0
	}
	return sum, half
}
