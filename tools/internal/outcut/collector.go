package outcut

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

// WriteString is Write for a string.
func (c *Collector) WriteString(s string) (int, error) { return c.Write([]byte(s)) }

// keep is how many bytes are kept at either end.
func (c *Collector) keep() int { return c.limit + 1 }

// Text is what was written so far. What is kept may begin or end within a
// character; Cut drops such pieces.
func (c *Collector) Text() Text {
	return Text{Head: string(c.head), Tail: string(c.tail), Total: c.total}
}
