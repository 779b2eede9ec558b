package trace

import (
	"context"
	"encoding/hex"
	"sync"
	"time"
)

// Kinds of spans, as OTLP numbers them.
const (
	kindInternal = 1
	kindServer   = 2
)

// A Span is something that the server does. All methods may be called at the same
// time, and on nil.
type Span struct {
	tracer *Tracer
	kind   int
	trace  traceID
	id     spanID
	parent spanID // zero: none
	state  string // tracestate, as the client sent it
	flags  byte
	remote bool // the parent is somebody else's
	start  int64

	mu     sync.Mutex
	ended  bool
	name   string
	target string // what the name is followed by
	failed bool
	end    int64
	attrs  [maxAttrs]attr
	count  int
}

// maxAttrs is how many attributes a span can have: those of a request, which has the
// most, and some. They are part of the span, so that setting one allocates nothing.
const maxAttrs = 12

type attr struct {
	key  string
	kind attrKind
	text string
	num  int64
}

type attrKind byte

const (
	attrText attrKind = iota
	attrInt
	attrBool
)

type spanKey struct{}

// Of returns the span that ctx belongs to, nil for none.
func Of(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

// With returns a context that belongs to s, ctx itself when that is nil.
func With(ctx context.Context, s *Span) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, s)
}

// Start begins a span inside of the one that ctx belongs to. Where there is none, it
// returns ctx and nil.
func Start(ctx context.Context, name string) (context.Context, *Span) {
	s := Of(ctx).Start(name)
	return With(ctx, s), s
}

// Start begins a span inside of s, also after s has ended.
func (s *Span) Start(name string) *Span {
	if s == nil {
		return nil
	}
	return &Span{
		tracer: s.tracer, name: name, kind: kindInternal, trace: s.trace, id: newSpanID(), parent: s.id, state: s.state, flags: s.flags,
		start: s.tracer.stamp(time.Now()),
	}
}

// Rename gives a span its name, which ends with a blank and the target, where there is one.
func (s *Span) Rename(name, target string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.name, s.target = name, target
	}
}

// Text sets an attribute.
func (s *Span) Text(key, value string) { s.set(attr{key: key, kind: attrText, text: value}) }

// Int sets an attribute.
func (s *Span) Int(key string, n int64) { s.set(attr{key: key, kind: attrInt, num: n}) }

// Bool sets an attribute.
func (s *Span) Bool(key string, on bool) {
	a := attr{key: key, kind: attrBool}
	if on {
		a.num = 1
	}
	s.set(a)
}

// set sets an attribute, in the place of the one of that name. One too many is left out.
func (s *Span) set(a attr) {
	if s == nil || s.flags&flagSampled == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	for i := range s.attrs[:s.count] {
		if s.attrs[i].key == a.key {
			s.attrs[i] = a
			return
		}
	}
	if s.count < maxAttrs {
		s.attrs[s.count] = a
		s.count++
	}
}

// Fail says that what the span is about did not succeed.
func (s *Span) Fail() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = s.failed || !s.ended
}

// End ends the span and has it written. What is set or said later is lost, and so is
// a second end.
func (s *Span) End() {
	if s == nil || s.flags&flagSampled == 0 {
		return
	}
	at := s.tracer.stamp(time.Now())
	s.mu.Lock()
	first := !s.ended
	s.ended = true
	if first {
		s.end = at
	}
	s.mu.Unlock()
	if first {
		s.tracer.queue.push(s)
	}
}

// TraceID is the id of the trace in hexadecimal digits.
func (s *Span) TraceID() string { return hex.EncodeToString(s.trace[:]) }

// ID is the id of the span in hexadecimal digits.
func (s *Span) ID() string { return hex.EncodeToString(s.id[:]) }
