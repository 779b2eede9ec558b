package stream

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	. "github.com/perstack-ai/perstack-base/server/internal/servertest"
)

// over is the transport that serves b.
func over(b *Bench, in io.Reader, out io.Writer) *Stdio {
	return &Stdio{Dispatcher: b.Dispatcher(), In: in, Out: out, Drain: func() {}}
}

// talk feeds input to a fresh server and returns what it wrote until it ended.
func talk(t testing.TB, input string) string {
	t.Helper()
	return talkTo(t, New(), strings.NewReader(input))
}

func talkTo(t testing.TB, b *Bench, in io.Reader) string {
	t.Helper()
	var out output
	if err := over(b, in, &out).Serve(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// An output may be written to after its server has ended: by a call that was left
// behind.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// A line is a live stdio connection to a bench.
type line struct {
	*Bench
	*Line
}

// dial connects to a fresh server; change may alter it before it starts.
func dial(t *testing.T, change func(*Stdio)) *line {
	t.Helper()
	b := New()
	return &line{Bench: b, Line: Dial(t, func(ctx context.Context, in io.Reader, out io.Writer) error {
		s := over(b, in, out)
		if change != nil {
			change(s)
		}
		return s.Serve(ctx)
	})}
}

// wait waits for the gate calls with these tags to start, in any order.
func (l *line) wait(tags ...string) {
	l.T.Helper()
	for range tags {
		Within(l.T, l.Started, "a call to start")
	}
}

// exchange sends a stream and returns n lines of answers, all that there are.
// Unlike talk it keeps the input open until they are in: long messages may
// take longer than the end of input leaves them.
func exchange(t *testing.T, in string, n int) string {
	t.Helper()
	l := dial(t, nil)
	l.Send(in)
	var out strings.Builder
	for range n {
		out.WriteString(l.Next() + "\n")
	}
	l.End()
	return out.String()
}
