package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/trace"
)

const (
	logKept  = 1 << 20     // bytes of lines that wait to be written
	logFlush = time.Second // how long the end of the process waits for them
)

// stderr is standard error for all that runs while commands do. Whoever has the other
// end of it may not read.
var stderr = newLineQueue(os.Stderr, func(dropped int) []byte {
	return fmt.Appendf(nil, "perstack-base: %d lines were dropped, as nobody took them in time\n", dropped)
})

// A lineQueue writes lines in order, and no caller waits for it: what there is no
// room for is dropped and counted.
type lineQueue struct {
	to   io.Writer
	note func(dropped int) []byte // the line that tells how many

	mu      sync.Mutex
	waiting []byte
	dropped int
	idle    chan struct{} // closed when all is written; nil while there is nothing to write
}

func newLineQueue(to io.Writer, note func(dropped int) []byte) *lineQueue {
	return &lineQueue{to: to, note: note}
}

// Write takes whole lines. It never fails.
func (q *lineQueue) Write(lines []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting)+len(lines) > logKept {
		q.dropped += max(1, bytes.Count(lines, []byte("\n")))
		return len(lines), nil
	}
	q.waiting = append(q.waiting, lines...)
	if q.idle == nil {
		q.idle = make(chan struct{})
		go q.drain()
	}
	return len(lines), nil
}

// drain writes until nothing waits.
func (q *lineQueue) drain() {
	var batch []byte
	for q.take(&batch) {
		_, _ = q.to.Write(batch) // there is nowhere left to report it
	}
}

// take exchanges a batch that was written for what waits.
func (q *lineQueue) take(batch *[]byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	*batch, q.waiting = q.waiting, (*batch)[:0]
	if q.dropped > 0 {
		*batch = append(*batch, q.note(q.dropped)...)
		q.dropped = 0
	}
	if len(*batch) > 0 {
		return true
	}
	close(q.idle)
	q.idle, q.waiting = nil, nil
	return false
}

// flush waits until all is written, and no longer than for a moment.
func (q *lineQueue) flush() {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-time.After(logFlush):
	}
}

// logger writes warnings to standard error, and with --log-file one JSON line for
// each call and connection and everything else to that file.
func (o *options) logger() (*slog.Logger, func(), error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, nil, fmt.Errorf("--log-level %s: %w", o.logLevel, err)
	}
	if o.verbose {
		level = min(level, slog.LevelInfo)
	}
	text := slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})
	if o.logFile == "" {
		return slog.New(text), stderr.flush, nil
	}
	file, err := openLog(o.logFile, o.commandsWrite())
	if err != nil {
		return nil, nil, fmt.Errorf("--log-file: %w", err)
	}
	// The file has a queue of its own: it gets every line even when nothing reads
	// standard error.
	queue := newLineQueue(file, droppedJSON)
	lines := slog.NewJSONHandler(queue, &slog.HandlerOptions{Level: min(level, slog.LevelInfo)})
	return slog.New(slog.NewMultiHandler(text, inTrace{lines})), func() { queue.flush(); file.Close(); stderr.flush() }, nil
}

// An inTrace handler adds to each line what leads from it to the span that it belongs
// to: the ids of the trace and the span, by the names that OpenTelemetry has for logs
// of other formats.
type inTrace struct{ slog.Handler }

func (h inTrace) Handle(ctx context.Context, line slog.Record) error {
	if span := trace.Of(ctx); span != nil {
		line.AddAttrs(slog.String("trace_id", span.TraceID()), slog.String("span_id", span.ID()))
	}
	return h.Handler.Handle(ctx, line)
}

func (h inTrace) WithAttrs(attrs []slog.Attr) slog.Handler {
	return inTrace{h.Handler.WithAttrs(attrs)}
}
func (h inTrace) WithGroup(name string) slog.Handler { return inTrace{h.Handler.WithGroup(name)} }

// droppedJSON is the note of a file of JSON lines.
func droppedJSON(dropped int) []byte {
	var line bytes.Buffer
	slog.New(slog.NewJSONHandler(&line, nil)).Warn("lines were dropped, as they could not be written in time", "lines", dropped)
	return line.Bytes()
}
