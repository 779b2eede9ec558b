package capture

import (
	"sync"
	"time"
)

// A Part is the output of a running command from one position to another, which
// count from its beginning.
type Part struct {
	First  []byte // what follows From
	Last   []byte // what leads to To, when something between is not kept any more
	From   int64
	To     int64
	Missed int64 // bytes between First and Last
}

// Since returns what is kept of the stream from a position on.
func (c *Stream) Since(from int64) Part {
	c.mu.Lock()
	defer c.mu.Unlock()
	from = min(max(from, 0), c.total)
	p := Part{From: from, To: c.total}
	if at := int64(len(c.head)); from < at {
		p.First = append(p.First, c.head[from:]...)
		from = at
	}
	begin := c.total - int64(len(c.ring))
	p.Missed = max(begin-from, 0)
	rest := c.ringFrom(int(max(from-begin, 0)))
	if p.Missed > 0 {
		p.Last = rest
	} else {
		p.First = append(p.First, rest...)
	}
	return p
}

// ringFrom copies the ring but for the first bytes.
func (c *Stream) ringFrom(skip int) []byte {
	n := len(c.ring) - skip
	if n <= 0 {
		return nil
	}
	out := make([]byte, 0, n)
	at := (c.next + skip) % len(c.ring)
	out = append(out, c.ring[at:min(at+n, len(c.ring))]...)
	return append(out, c.ring[:n-len(out)]...)
}

// Grown tells how long the stream is, when it last grew, and when it grows again.
func (c *Stream) Grown() (total int64, wrote time.Time, more <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.news == nil {
		c.news = make(chan struct{})
	}
	return c.total, c.wrote, c.news
}

// Size is how long the stream is, and how much memory it takes.
func (c *Stream) Size() (total int64, kept int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total, len(c.head) + len(c.ring)
}

// A Pace keeps a command that prints as fast as it can from taking a processor of
// the server's for as long as it runs. No build and no server prints so much.
type Pace struct {
	began time.Time
	bytes int
}

const (
	paceTime  = 100 * time.Millisecond
	paceBytes = 4 << 20
)

// keep waits when too many bytes have come in too short a time.
func (p *Pace) keep(n int) {
	if p.bytes += n; p.bytes < paceBytes {
		return
	}
	time.Sleep(paceTime - time.Since(p.began))
	p.began, p.bytes = time.Now(), 0
}

// buffers are what pipes are emptied into: as large as a pipe is.
var buffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}
