package capture

import (
	"bytes"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"
)

// An Output is what is kept of one stream: all of it, or, when it was long,
// its exact head and tail as raw bytes.
type Output struct {
	Head, Tail []byte // the first and the last bytes; together everything when Complete
	Total      int64  // bytes the stream had
	TextBytes  int64  // bytes the whole stream has as text, every invalid byte counted as U+FFFD
}

// Complete reports whether no byte of the stream is missing.
func (o Output) Complete() bool { return int64(len(o.Head)+len(o.Tail)) == o.Total }

// Text is the stream as valid UTF-8 in at most budget bytes, plus a line that
// says how much was cut. The budget must not be above the bytes kept at each end.
func (o Output) Text(budget int) (text string, cut bool) {
	if o.Complete() && o.TextBytes <= int64(budget) {
		return ValidText(o.Head) + ValidText(o.Tail), false
	}
	half := max(budget, 0) / 2
	all := o
	if o.Complete() { // one piece, so that no character is split between the parts
		all.Head = append(append(make([]byte, 0, o.Total), o.Head...), o.Tail...)
		all.Tail = all.Head
	}
	head, tail := HeadOf(all.Head, half), tailOf(all.Tail, half)
	missing := o.Total - int64(len(head)+len(tail))
	mark := fmt.Sprintf("[... %d bytes cut; %d bytes in all ...]\n", missing, o.Total)
	if n := len(head); n > 0 && head[n-1] != '\n' {
		mark = "\n" + mark
	}
	return ValidText(head) + mark + ValidText(tail), true
}

// Cut words two streams within one budget. A stream's share is at least
// half of it, and what the other one leaves.
func Cut(stdout, stderr Output, budget int) (out, err string, cut bool) {
	share := func(other Output) int {
		return int(max(int64(budget/2), int64(budget)-other.TextBytes))
	}
	out, cutOut := stdout.Text(share(stderr))
	err, cutErr := stderr.Text(share(stdout))
	return out, err, cutOut || cutErr
}

// Join is stdout, then stderr, a line feed between them where stdout is
// not empty and does not end with one. Head and Tail of the result are exact.
func Join(stdout, stderr Output) Output {
	if stdout.Total == 0 || stderr.Total == 0 {
		if stdout.Total == 0 {
			return stderr
		}
		return stdout
	}
	first := bytes.Join([][]byte{stdout.Head, stdout.Tail}, nil)
	second := bytes.Join([][]byte{stderr.Head, stderr.Tail}, nil)
	var gap []byte
	if first[len(first)-1] != '\n' {
		gap = []byte{'\n'}
	}
	n := int64(len(gap))
	joined := Output{Head: stdout.Head, Tail: stderr.Tail,
		Total: stdout.Total + stderr.Total + n, TextBytes: stdout.TextBytes + stderr.TextBytes + n}
	switch {
	case stdout.Complete() && stderr.Complete():
		joined.Head, joined.Tail = bytes.Join([][]byte{first, gap, second}, nil), nil
	case stdout.Complete():
		joined.Head = bytes.Join([][]byte{first, gap, stderr.Head}, nil)
	case stderr.Complete():
		joined.Tail = bytes.Join([][]byte{stdout.Tail, gap, second}, nil)
	}
	return joined
}

// ValidText is b as a string in which every invalid byte became U+FFFD.
func ValidText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	text := make([]byte, 0, len(b)+len(b)/8)
	for _, r := range string(b) {
		text = utf8.AppendRune(text, r)
	}
	return string(text)
}

// textWidth is what a decoded character takes in the text.
func textWidth(r rune, n int) int {
	if r == utf8.RuneError {
		return 3
	}
	return n
}

// HeadOf is the beginning of b whose text has at most limit bytes, cut between characters.
func HeadOf(b []byte, limit int) []byte {
	used, end := 0, 0
	for end < len(b) {
		if b[end] >= utf8.RuneSelf && !utf8.FullRune(b[end:]) {
			break // its rest was not kept
		}
		r, n := utf8.DecodeRune(b[end:])
		if used += textWidth(r, n); used > limit {
			break
		}
		end += n
	}
	return b[:end]
}

func tailOf(b []byte, limit int) []byte {
	used, start := 0, len(b)
	for start > 0 {
		r, n := utf8.DecodeLastRune(b[:start])
		if used += textWidth(r, n); used > limit {
			break
		}
		start -= n
	}
	return b[start:]
}

// A Stream keeps head and tail of a stream while it is drained.
type Stream struct {
	mu      sync.Mutex
	Keep    int
	First   int // bytes of head; 0 means keep
	head    []byte
	ring    []byte // the last keep bytes behind head, in a circle once it is full
	next    int    // where the ring goes on
	total   int64
	text    int64  // text bytes of what is decoded
	pending []byte // the beginning of a character whose rest has not come
	closed  bool   // nothing is kept any more
	Latest  *Tail
	wrote   time.Time     // last
	news    chan struct{} // closed at the next write; nil when nobody waits
	Pace    *Pace         // of what may print for ever; nil for none
	CopyTo  func([]byte)  // gets every piece first; nil for nobody
}

// Write keeps what belongs to head and tail; it never fails.
func (c *Stream) Write(b []byte) (int, error) {
	if c.Pace != nil {
		c.Pace.keep(len(b)) // who is not read from has to wait
	}
	if c.CopyTo != nil {
		c.CopyTo(b)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return len(b), nil
	}
	c.total += int64(len(b))
	c.count(b)
	if c.Latest != nil {
		c.Latest.saw(c)
	}
	n := min(c.atHead()-len(c.head), len(b))
	c.head = append(c.head, b[:n]...)
	c.push(b[n:])
	c.wrote = time.Now()
	if c.news != nil {
		close(c.news)
		c.news = nil
	}
	return len(b), nil
}

func (c *Stream) atHead() int {
	if c.First > 0 {
		return c.First
	}
	return c.Keep
}

func (c *Stream) push(b []byte) {
	b = b[max(0, len(b)-c.Keep):]
	n := min(c.Keep-len(c.ring), len(b))
	c.ring = append(c.ring, b[:n]...)
	for b = b[n:]; len(b) > 0; {
		n := copy(c.ring[c.next:], b)
		c.next = (c.next + n) % len(c.ring)
		b = b[n:]
	}
}

// count adds the text bytes of b, minding characters split between reads.
func (c *Stream) count(b []byte) {
	for len(c.pending) > 0 && len(b) > 0 && !utf8.FullRune(c.pending) {
		c.pending = append(c.pending, b[0])
		b = b[1:]
	}
	for len(c.pending) > 0 && (utf8.FullRune(c.pending)) {
		r, n := utf8.DecodeRune(c.pending)
		c.text += int64(textWidth(r, n))
		c.pending = c.pending[n:]
	}
	if len(c.pending) > 0 && len(b) > 0 { // the rest of a broken character begins another
		b = append(append([]byte(nil), c.pending...), b...)
		c.pending = nil
	}
	if utf8.Valid(b) {
		c.text += int64(len(b))
		return
	}
	for len(b) > 0 {
		if !utf8.FullRune(b) {
			c.pending = append([]byte(nil), b...)
			return
		}
		r, n := utf8.DecodeRune(b)
		c.text += int64(textWidth(r, n))
		b = b[n:]
	}
}

// TextBytes is how many bytes the pieces of a stream have as text.
func TextBytes(pieces ...[]byte) int64 {
	var c Stream
	for _, piece := range pieces {
		c.count(piece)
	}
	return c.text + 3*int64(len(c.pending))
}

// Finish ends the keeping and hands over what was kept.
func (c *Stream) Finish() Output {
	if c == nil {
		return Output{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	out := Output{Head: c.head, Tail: c.tail(), Total: c.total, TextBytes: c.text + 3*int64(len(c.pending))}
	c.head, c.ring = nil, nil
	return out
}

func (c *Stream) tail() []byte {
	if c.next == 0 {
		return c.ring
	}
	return append(append(make([]byte, 0, len(c.ring)), c.ring[c.next:]...), c.ring[:c.next]...)
}

// A Tail watches a running command. Make one, put it into Command.Tail and ask
// it while the command runs.
type Tail struct {
	mu    sync.Mutex
	from  *Stream // the stream that spoke last
	line  string  // instead, of output that is not kept here
	bytes int64
}

// Set tells the last line.
func (t *Tail) Set(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line = line
	t.bytes++
}

func (t *Tail) saw(c *Stream) {
	t.mu.Lock()
	t.from = c
	t.bytes++
	t.mu.Unlock()
}

// LookBack is how much of the output is searched for its last line.
const LookBack = 4096

// Last returns the last line so far that is not blank, as it was written (at
// most 4,096 bytes of it), and a number that rises whenever output has come.
func (t *Tail) Last() (line string, version int64) {
	t.mu.Lock()
	c, line, version := t.from, t.line, t.bytes
	t.mu.Unlock()
	if c == nil {
		return line, version
	}
	c.mu.Lock()
	recent := c.recent()
	c.mu.Unlock()
	recent = bytes.TrimRight(recent, " \t\r\n\v\f\x00")
	if i := bytes.LastIndexAny(recent, "\r\n"); i >= 0 {
		recent = recent[i+1:]
	}
	return ValidText(recent), version
}

func (c *Stream) recent() []byte {
	n := min(LookBack, len(c.ring))
	recent := make([]byte, 0, LookBack)
	if n < LookBack {
		recent = append(recent, c.head[max(0, len(c.head)-(LookBack-n)):]...)
	}
	for i := len(c.ring) - n; i < len(c.ring); i++ {
		recent = append(recent, c.ring[(c.next+i)%len(c.ring)])
	}
	return recent
}
