// Package outcut shortens text that is longer than a model should be sent.
//
// Start with [Middle], which leaves out the middle of a text. [Text] does the
// same for a text that was never held whole: it knows a head, a tail and how
// long the text was, and [Collector] gathers one from a stream. [Prefix] and
// [Line] cut at the end. All of them cut between characters, never within one.
package outcut

import (
	"fmt"
	"strings"
)

// TokenBytes is how many bytes of UTF-8 are counted as one token.
const TokenBytes = 4

// A Way says how to get at what was left out. It is given the head that stays
// and whether the head ends with a whole line.
type Way func(head string, wholeLines bool) string

// Advice is the Way that always says the same.
func Advice(s string) Way { return func(string, bool) string { return s } }

// Middle returns text unchanged when it has at most limit bytes. Otherwise it
// returns the head of text, a marker and the tail of text, cut at lines where
// there are lines of a useful length: head and tail together have at most limit
// bytes, the marker is not counted. text is valid UTF-8.
func Middle(text string, limit int, way Way) string {
	return Whole(text).Cut(limit, way)
}

// A Text is a text of which perhaps only the two ends are known.
type Text struct {
	Head  string // its first bytes; the whole of it when len(Head) == Total
	Tail  string // its last bytes; may overlap Head
	Total int64  // its length in bytes
}

// Whole is a Text that is known from end to end.
func Whole(s string) Text { return Text{Head: s, Tail: s, Total: int64(len(s))} }

// whole tells whether every byte is known.
func (t Text) whole() bool { return int64(len(t.Head)) >= t.Total }

// Append returns the text t followed by the text u.
func (t Text) Append(u Text) Text {
	sum := Text{Head: t.Head, Tail: u.Tail, Total: t.Total + u.Total}
	if t.whole() {
		sum.Head += u.Head
	}
	if u.whole() {
		sum.Tail = t.Tail + u.Tail
	}
	return sum
}

// Cut is [Middle] for t. A t that is not whole must have more than limit bytes,
// and know at least limit/2+1 of them at either end; then the answer is the one
// that Middle would give for the whole text.
func (t Text) Cut(limit int, way Way) string {
	if t.Total <= int64(limit) && t.whole() {
		return t.Head
	}
	limit = max(limit, 0)
	head, wholeLines := cutHead(t.Head, limit)
	tail := cutTail(t.Tail, limit)
	left := t.Total - int64(len(head)) - int64(len(tail))
	tokens := (left + TokenBytes - 1) / TokenBytes
	return fmt.Sprintf("%s\n\n[...truncated...] %d tokens left out here; %s\n\n%s",
		head, tokens, way(head, wholeLines), tail)
}

// cutHead keeps what stands before the last line feed in the second quarter of
// the budget, so that lines stay whole; without one it keeps half the budget.
func cutHead(s string, limit int) (head string, wholeLines bool) {
	low, high := quarters(limit)
	if i := strings.LastIndexByte(s[:min(high+1, len(s))], '\n'); i >= low {
		return s[:i], true
	}
	return Prefix(s, high), false
}

// cutTail is cutHead from the other end.
func cutTail(s string, limit int) string {
	low, high := quarters(limit)
	near := max(len(s)-high-1, 0)
	far := max(len(s)-low, near)
	if i := strings.IndexByte(s[near:far], '\n'); i >= 0 {
		return s[near+i+1:]
	}
	return suffix(s, high)
}

// quarters gives a quarter of limit, rounded up, and a half, rounded down.
func quarters(limit int) (low, high int) { return limit/4 + min(limit%4, 1), limit / 2 }

// A Collector is a writer that keeps the head and the tail of what is written
// to it, whatever the length. It holds at most six times its limit. Not safe
// for concurrent use.
type Collector struct {
	limit int
	head  []byte // the first limit+1 bytes
	tail  []byte // the last bytes, limit+1 of them at least once that many were written
	total int64
}

// NewCollector returns a Collector whose Text can be cut to limit bytes, or any
// number below it.
func NewCollector(limit int) *Collector { return &Collector{limit: max(limit, 0)} }

// Write takes the next bytes of the text. It never fails.
func (c *Collector) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	if room := c.keep() - len(c.head); room > 0 {
		c.head = append(c.head, p[:min(room, n)]...)
	}
	if n > c.keep() {
		p = p[n-c.keep():]
	}
	c.tail = append(c.tail, p...)
	if len(c.tail) > 4*c.keep() {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-c.keep():]...)
	}
	return n, nil
}

// keep is how many bytes are kept at either end.
func (c *Collector) keep() int { return c.limit + 1 }

// Text is what was written so far. What is kept may begin or end within a
// character; Cut drops such pieces.
func (c *Collector) Text() Text {
	return Text{Head: string(c.head), Tail: string(c.tail), Total: c.total}
}
