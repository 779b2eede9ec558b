package trace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"
)

// A Config says where spans go, and whose they are.
type Config struct {
	To      io.Writer    // gets one write for each span; none waits for it
	Service string       // the name of the program
	Version string       // its version
	Log     *slog.Logger // is told once that spans could not be written; not nil
}

// A Tracer writes the spans of one server. Make one with [New], end it with Close.
type Tracer struct {
	begun    time.Time // all times are counted from here, by one clock
	unix     int64     // when that was
	instance string
	queue    *queue
}

// New makes a tracer.
func New(cfg Config) *Tracer {
	now := time.Now()
	id := newTraceID()
	t := &Tracer{begun: now, unix: now.UnixNano(), instance: hex.EncodeToString(id[:])}
	t.queue = newQueue(cfg.To, newEncoder(cfg.Service, cfg.Version, t.instance), cfg.Log)
	return t
}

// Close writes the spans that have ended, for a moment at most. Those that end
// later are lost.
func (t *Tracer) Close() {
	if t != nil {
		t.queue.close()
	}
}

// Serve begins the span of a request that was received at a time, now where that is
// zero. Without a parent it begins a trace of its own. A request whose trace is not
// sampled has a span that is never written.
func (t *Tracer) Serve(ctx context.Context, name string, parent Parent, received time.Time) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	s := &Span{tracer: t, name: name, kind: kindServer, trace: parent.trace, parent: parent.span, state: parent.state, flags: parent.flags, remote: true}
	if parent.trace == (traceID{}) {
		s.trace, s.flags, s.remote = newTraceID(), flagSampled, false
	}
	s.id = newSpanID()
	if received.IsZero() {
		received = time.Now()
	}
	s.start = t.stamp(received)
	return context.WithValue(ctx, spanKey{}, s), s
}

// stamp is a time in nanoseconds since 1970, by the tracer's own clock: a step of the
// machine's does not make a child begin before its parent.
func (t *Tracer) stamp(at time.Time) int64 { return t.unix + int64(at.Sub(t.begun)) }

// SessionID is what stands for a session in the attributes: its id is a secret. The
// same session has the same one as long as the server runs, and nobody can tell the
// id from it: sha256 of service.instance.id, a slash and the id.
func (t *Tracer) SessionID(id string) string {
	const shown = 16 // bytes
	var room [128]byte
	sum := sha256.Sum256(append(append(append(room[:0], t.instance...), '/'), id...))
	return hex.EncodeToString(sum[:shown])
}

type (
	traceID [16]byte
	spanID  [8]byte
)

// The ids are random, as W3C Trace Context wants them. They are no secrets.
func newTraceID() (id traceID) {
	for id == (traceID{}) {
		put(id[:8], rand.Uint64())
		put(id[8:], rand.Uint64())
	}
	return id
}

func newSpanID() (id spanID) {
	for id == (spanID{}) {
		put(id[:], rand.Uint64())
	}
	return id
}

func put(b []byte, n uint64) {
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
}
