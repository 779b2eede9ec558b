package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

// hang is how long a test waits before it says that something hangs.
const hang = 60 * time.Second

// lines are what a tracer has written, a line for each write.
type lines struct {
	mu  sync.Mutex
	all []string
	err error // of every write, after a part of the line
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		n := min(len(b), 10)
		l.all = append(l.all, string(b[:n]))
		return n, l.err
	}
	l.all = append(l.all, string(b))
	return len(b), nil
}

func tracer(to *lines) (*Tracer, *bytes.Buffer) {
	var log bytes.Buffer
	return New(Config{To: to, Service: "perstack-base", Version: "1", Log: slog.New(slog.NewTextHandler(&log, nil))}), &log
}

// A line is what a test looks at in one of the file.
type line struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes []keyValue }
		ScopeSpans []struct {
			Scope struct{ Name, Version string }
			Spans []written
		}
	}
}

type keyValue struct {
	Key   string
	Value map[string]any
}

type written struct {
	TraceID, SpanID, ParentSpanID, TraceState, Name string
	Flags, Kind                                     int
	StartTimeUnixNano, EndTimeUnixNano              string
	Attributes                                      []keyValue
	Status                                          struct{ Code int }
}

func (l *lines) spans(t *testing.T) (spans []written) {
	t.Helper()
	for _, text := range l.all {
		var one line
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&one); err != nil || strings.Index(text, "\n") != len(text)-1 {
			t.Fatalf("%v: %q", err, text)
		}
		spans = append(spans, one.ResourceSpans[0].ScopeSpans[0].Spans...)
	}
	return spans
}

const (
	someTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	someSpan   = "00f067aa0ba902b7"
	someParent = "00-" + someTrace + "-" + someSpan + "-01"
)

func TestSpansNest(t *testing.T) {
	var out lines
	tr, _ := tracer(&out)
	ctx, request := tr.Serve(context.Background(), "tools/call", ParseParent(someParent, "a=1,b=2"), time.Time{})
	inner, run := Start(ctx, "workspace.run")
	_, command := Start(inner, "command")
	command.Int("process.exit.code", -3)
	command.Int("process.exit.code", 4)
	command.Bool("perstack_base.timed_out", false)
	command.Text("perstack_base.tier", "a\"b\\c\n\x7f\xff")
	command.Fail()
	command.End()
	command.Text("late", "x")
	command.End()
	run.End()
	request.Rename("tools/call", "exec")
	request.End()
	request.Start("workspace.cleanup").End() // when the session ends
	tr.Close()
	spans := out.spans(t)
	if len(spans) != 4 || len(out.all) != 4 {
		t.Fatalf("%d spans in %d writes", len(spans), len(out.all))
	}
	c, r, q, late := spans[0], spans[1], spans[2], spans[3]
	if c.ParentSpanID != r.SpanID || r.ParentSpanID != q.SpanID || q.ParentSpanID != someSpan || late.ParentSpanID != q.SpanID {
		t.Errorf("parents: %+v", spans)
	}
	for _, s := range spans {
		if s.TraceID != someTrace || s.TraceState != "a=1,b=2" || s.StartTimeUnixNano > s.EndTimeUnixNano {
			t.Errorf("%+v", s)
		}
	}
	if q.Name != "tools/call exec" || q.Kind != kindServer || q.Flags != 0x301 || c.Kind != kindInternal || c.Flags != 0x101 {
		t.Errorf("%+v %+v", q, c)
	}
	want := `[{"Key":"process.exit.code","Value":{"intValue":"4"}},{"Key":"perstack_base.timed_out","Value":{"boolValue":false}},` +
		`{"Key":"perstack_base.tier","Value":{"stringValue":"a\"b\\c\n` + "\x7f" + `` + "\ufffd" + `"}}]`
	if got, _ := json.Marshal(c.Attributes); string(got) != want || c.Status.Code != 2 || r.Status.Code != 0 {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestNewTraces(t *testing.T) {
	var out lines
	tr, _ := tracer(&out)
	for range 2 {
		_, s := tr.Serve(context.Background(), "ping", Parent{}, time.Now().Add(-time.Second))
		s.End()
	}
	tr.Close()
	spans := out.spans(t)
	if spans[0].TraceID == spans[1].TraceID || spans[0].ParentSpanID != "" || spans[0].Flags != 0x101 || len(spans[0].EndTimeUnixNano) != len(spans[0].StartTimeUnixNano) {
		t.Errorf("%+v", spans)
	}
}

// TestNotSampled: nothing is written, and who is called is told the same.
func TestNotSampled(t *testing.T) {
	var out lines
	tr, _ := tracer(&out)
	ctx, s := tr.Serve(context.Background(), "ping", ParseParent(strings.TrimSuffix(someParent, "1")+"0", "a=1"), time.Time{})
	_, inner := Start(ctx, "command")
	inner.Text("a", "b")
	inner.End()
	s.End()
	env := inner.Env()
	tr.Close()
	if len(out.all) != 0 || env[EnvParent] != "00-"+someTrace+"-"+inner.ID()+"-00" || env[EnvState] != "a=1" {
		t.Errorf("written: %q; told: %v", out.all, env)
	}
}

func TestParseParent(t *testing.T) {
	digits := someTrace + "-" + someSpan
	for _, c := range []struct {
		parent string
		flags  byte
		ok     bool
	}{
		{someParent, 1, true},
		{"00-" + digits + "-00", 0, true},
		{"00-" + digits + "-ff", 3, true},
		{"01-" + digits + "-01", 1, true},
		{"cc-" + digits + "-01-what-comes", 1, true},
		{"", 0, false},
		{"ff-" + digits + "-01", 0, false},
		{"00-" + digits + "-01-more", 0, false},
		{"01-" + digits + "-01.more", 0, false},
		{"00-" + strings.ToUpper(digits) + "-01", 0, false},
		{"00-" + digits + "-0", 0, false},
		{"00-" + digits + "-0g", 0, false},
		{"00_" + digits + "-01", 0, false},
		{"00-" + strings.Repeat("0", 32) + "-" + someSpan + "-01", 0, false},
		{"00-" + someTrace + "-" + strings.Repeat("0", 16) + "-01", 0, false},
		{" " + someParent, 0, false},
	} {
		p := ParseParent(c.parent, "k=v")
		if ok := p != (Parent{}); ok != c.ok || p.flags != c.flags || ok && p.state != "k=v" {
			t.Errorf("%q: %+v", c.parent, p)
		}
	}
	for state, ok := range map[string]bool{
		"a=1": true, "a=1, b@c=2": true, "": false, "a": false, "a=": false, "=1": false, "a=1,": false, "a=\n": false, "a=é": false,
		strings.Repeat("a", 600) + "=1": false, strings.Repeat("a=1,", 32) + "a=1": false,
	} {
		if got := ParseParent(someParent, state).state; (got == state && state != "") != ok || got != "" && !ok {
			t.Errorf("%q became %q", state, got)
		}
	}
}

func FuzzParseParent(f *testing.F) {
	f.Add(someParent, "a=1,b=2")
	f.Add("cc-"+someTrace+"-"+someSpan+"-01-x", "a")
	f.Fuzz(func(t *testing.T, parent, state string) {
		p := ParseParent(parent, state)
		if p == (Parent{}) {
			return
		}
		if p.trace == (traceID{}) || p.span == (spanID{}) || p.flags > 3 || p.state != "" && p.state != state {
			t.Errorf("%q became %+v", parent, p)
		}
		var out lines
		tr, _ := tracer(&out)
		_, s := tr.Serve(context.Background(), parent, p, time.Time{})
		again := ParseParent(s.Env()[EnvParent], s.Env()[EnvState])
		if again.trace != p.trace || again.flags != p.flags || again.state != p.state {
			t.Errorf("%q is passed on as %v", parent, s.Env())
		}
		s.End()
		tr.Close()
		if n := len(out.spans(t)); n != int(p.flags&flagSampled) {
			t.Errorf("%q: %d spans", parent, n)
		}
	})
}

// TestWriteErrors: they are said once, cost nothing else, and what comes later is not
// spoilt by the part of a line that was written.
func TestWriteErrors(t *testing.T) {
	out := lines{err: errors.New("no space left")}
	tr, log := tracer(&out)
	end := func() {
		_, s := tr.Serve(context.Background(), "ping", Parent{}, time.Time{})
		s.End()
	}
	end()
	end()
	deadline := time.Now().Add(hang)
	for failed := 0; failed < 2; {
		if time.Now().After(deadline) {
			t.Fatal("nothing was written")
		}
		time.Sleep(time.Millisecond)
		out.mu.Lock()
		failed = len(out.all)
		out.mu.Unlock()
	}
	out.mu.Lock()
	out.err, out.all = nil, nil
	out.mu.Unlock()
	end()
	end()
	tr.Close()
	if strings.Count(log.String(), "no space left") != 1 || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("the log says %q", log)
	}
	if len(out.all) != 2 || out.all[0][0] != '\n' || out.all[1][0] != '{' {
		t.Errorf("%q", out.all)
	}
}

// stuck is a file that takes nothing.
type stuck chan struct{}

func (s stuck) Write(b []byte) (int, error) {
	<-s
	return len(b), nil
}

// TestStuckFile: nobody waits for a file that takes nothing, and what waits for it is bounded.
func TestStuckFile(t *testing.T) {
	testlevel.NotQuick(t, "waits until a file is given up")
	file := make(stuck)
	var log bytes.Buffer
	tr := New(Config{To: file, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 * maxWaiting {
		_, s := tr.Serve(context.Background(), "ping", Parent{}, time.Time{})
		s.End()
	}
	tr.queue.mu.Lock()
	waiting := len(tr.queue.waiting)
	tr.queue.mu.Unlock()
	if waiting > maxWaiting {
		t.Errorf("%d spans wait", waiting)
	}
	tr.Close() // returns
	close(file)
	<-tr.queue.idle
	if !strings.Contains(log.String(), "the last spans were lost") || strings.Count(log.String(), "does not take them in time; calls go on") != 1 {
		t.Errorf("the log says %q", &log)
	}
}

// TestOffAllocatesNothing: without a tracer nothing of this costs an allocation.
func TestOffAllocatesNothing(t *testing.T) {
	var none *Tracer
	base := context.WithValue(context.Background(), t, t)
	if n := testing.AllocsPerRun(1000, func() { useAll(none, base) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if ctx, s := none.Serve(base, "x", Parent{}, time.Time{}); s != nil || ctx != base {
		t.Error("there is a span")
	}
}

func useAll(tr *Tracer, base context.Context) {
	ctx, request := tr.Serve(base, "tools/call", Parent{}, time.Time{})
	request.Text("gen_ai.tool.name", "exec")
	ctx, command := Start(ctx, "command")
	command.Int("process.exit.code", 1)
	command.Bool("perstack_base.timed_out", true)
	command.Fail()
	_ = command.Env()
	command.End()
	Of(ctx).Text("a", "b")
	request.Rename("tools/call", "exec")
	request.End()
}

func TestConcurrently(t *testing.T) {
	var out lines
	tr, _ := tracer(&out)
	ctx, s := tr.Serve(context.Background(), "ping", Parent{}, time.Time{})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			_, inner := Start(ctx, "command")
			s.Text("k", inner.ID())
			s.Rename("ping", inner.ID())
			inner.End()
			s.End()
		})
	}
	all.Wait()
	tr.Close()
	if n := len(out.spans(t)); n != 51 {
		t.Errorf("%d spans", n)
	}
}

// BenchmarkSpan is what the span of a request costs, with the attributes it has.
func BenchmarkSpan(b *testing.B) {
	for name, tr := range map[string]*Tracer{"off": nil, "on": New(Config{To: discard{}, Log: slog.New(slog.DiscardHandler)})} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				useAll(tr, context.Background())
			}
		})
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
