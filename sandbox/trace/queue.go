package trace

import (
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// maxWaiting bounds the spans that wait to be written; each has less than 2 KiB.
	maxWaiting = 4096
	// gather is how long the first of them waits for more: to wake a thread for each
	// would cost a call more than all else about its span.
	gather = 5 * time.Millisecond
	// closeTime is what the last of them have to be written.
	closeTime = time.Second
)

// A queue writes spans, one at a time, and nobody waits for it: what there is no room
// for is dropped and counted.
type queue struct {
	to     io.Writer
	encode *encoder
	log    *slog.Logger
	timer  *time.Timer // starts drain

	mu      sync.Mutex
	waiting []*Span
	busy    bool          // the timer or drain runs
	idle    chan struct{} // closed when all is written; not nil once there was a span
	closed  bool
	dropped int

	// Of drain, which runs once at a time.
	line    []byte
	torn    bool // the last line was cut off
	refused bool // a write has failed, which was said
	full    bool // spans were dropped, which was said
}

func newQueue(to io.Writer, e *encoder, log *slog.Logger) *queue {
	q := &queue{to: to, encode: e, log: log}
	q.timer = time.AfterFunc(time.Hour, q.drain)
	q.timer.Stop()
	return q
}

// push takes a span that has ended.
func (q *queue) push(s *Span) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return
	case len(q.waiting) >= maxWaiting:
		q.dropped++
		return
	}
	q.waiting = append(q.waiting, s)
	if !q.busy {
		q.busy, q.idle = true, make(chan struct{})
		q.timer.Reset(gather)
	}
}

// drain writes until nothing waits.
func (q *queue) drain() {
	var batch []*Span
	for q.take(&batch) {
		q.tellDropped()
		for _, s := range batch {
			q.write(s)
		}
		clear(batch)
	}
}

// take exchanges a batch that was written for what waits.
func (q *queue) take(batch *[]*Span) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	*batch, q.waiting = q.waiting, (*batch)[:0]
	if len(*batch) > 0 {
		return true
	}
	close(q.idle)
	q.busy, q.waiting = false, nil
	return false
}

// tellDropped says once that there were too many spans.
func (q *queue) tellDropped() {
	q.mu.Lock()
	dropped := q.dropped
	q.mu.Unlock()
	if dropped > 0 && !q.full {
		q.full = true
		q.log.Error("spans are lost: the trace file does not take them in time; calls go on")
	}
}

// write writes the line of one span with one write, so that several servers can append
// to a file. After a part of a line the next begins a new one.
func (q *queue) write(s *Span) {
	q.line = q.line[:0]
	if q.torn {
		q.line = append(q.line, '\n')
	}
	q.line = q.encode.encode(q.line, s)
	n, err := q.to.Write(q.line)
	if err == nil {
		q.torn = false
		return
	}
	if n > 0 {
		q.torn = true
	}
	if !q.refused {
		q.refused = true
		q.log.Error("spans cannot be written to the trace file and are lost; calls go on", "error", err)
	}
}

// close writes what waits, within closeTime.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	busy, idle := q.busy, q.idle
	q.mu.Unlock()
	if !busy {
		return
	}
	if q.timer.Stop() {
		go q.drain()
	}
	limit := time.NewTimer(closeTime)
	defer limit.Stop()
	select {
	case <-idle:
	case <-limit.C:
		q.log.Error("the last spans were lost: the trace file did not take them in time")
	}
}
