package stream

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	. "github.com/perstack-ai/perstack-base/server/internal/servertest"
)

func TestEveryCallReadIsAnswered(t *testing.T) {
	for range 20 {
		sameLines(t, talk(t, Ping+"\n"+ToolCall("2", "noop", "{}")), []string{Pong, OKText("2", "ok")})
	}
}

// What ends the input: its end, and a signal.
func TestEndings(t *testing.T) {
	for name, end := range map[string]func(*line){
		"end of input": func(l *line) { l.In.Close() },
		"signal":       func(l *line) { l.Stop() },
	} {
		t.Run(name+": calls run to their end", func(t *testing.T) {
			drained := make(chan struct{})
			l := dial(t, func(s *Stdio) { s.Drain = func() { close(drained) } })
			l.Send(Tagged("1", "gate", "a"), Tagged("2", "lane", "b"), Tagged("3", "lane", "c"), ToolCall("4", "noop", "{}"))
			l.wait("a", "b")
			l.Want(OKText("4", "ok")) // so all of them were read
			end(l)
			Within(t, drained, "the drain")
			close(l.Gate("a"))
			l.Want(OKText("1", "a"))
			close(l.Gate("b"))
			close(l.Gate("c"))
			l.Want(OKText("2", "b"), OKText("3", "c"), "")
			Within(t, l.Done, "the end")
		})
		t.Run(name+": but not for ever", func(t *testing.T) {
			t.Parallel()
			if name == "signal" {
				testlevel.NotQuick(t, "waits once more")
			}
			l := dial(t, nil)
			l.Send(Tagged("1", "gate", "a"), Tagged("2", "deaf", "b"))
			l.wait("a", "b")
			start := time.Now()
			end(l)
			l.Want(ErrText("1", "cancelled"), "")
			Within(t, l.Done, "the end")
			if took := time.Since(start); took < DrainTime || took > 10*time.Second {
				t.Errorf("ended after %v", took)
			}
			close(l.Gate("b")) // too late: nothing is written any more
		})
	}
}

func TestNothingIsReadAfterASignal(t *testing.T) {
	l := dial(t, nil)
	l.Send(Tagged("1", "gate", "a"))
	l.wait("a")
	l.Stop()
	// Until it has been seen, a message may still be read: send until one is not answered.
	go func() {
		for {
			if _, err := io.WriteString(l.In, `{"jsonrpc":"2.0","id":"late","method":"no/such"}`+"\n"); err != nil {
				return
			}
		}
	}()
	time.Sleep(50 * time.Millisecond)
	close(l.Gate("a"))
	for got := l.Next(); got != ""; got = l.Next() {
		if got != OKText("1", "a") && !strings.Contains(got, `"late"`) {
			t.Error(got)
		}
	}
	Within(t, l.Done, "the end")
}

func TestOutputGone(t *testing.T) {
	b := New()
	in, w := io.Pipe()
	defer w.Close()
	drained := false
	s := over(b, in, brokenWriter{})
	s.Drain = func() { drained = true }
	done := make(chan error, 1)
	go func() { done <- s.Serve(t.Context()) }()
	io.WriteString(w, Ping+"\n")
	if err := Within(t, done, "the end"); err != nil || !drained {
		t.Errorf("error %v, drained %v", err, drained)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// Nobody reads the output: the end comes all the same.
func TestOutputStuck(t *testing.T) {
	testlevel.NotQuick(t, "waits until a client that reads nothing is given up")
	b := New()
	outR, out := io.Pipe()
	defer outR.Close()
	done := make(chan error, 1)
	go func() {
		in := strings.NewReader(ToolCall("1", "noop", "{}") + "\n" + ToolCall("2", "noop", "{}"))
		done <- over(b, in, out).Serve(t.Context())
	}()
	if err := Within(t, done, "the end"); err != nil {
		t.Error(err)
	}
}

// The reader takes in a cancel while an answer cannot be written.
func TestReaderDoesNotWaitForTheWriter(t *testing.T) {
	l := dial(t, nil)
	l.Send(ToolCall("1", "big", `{"n":300000}`), Tagged("2", "gate", "a"))
	l.wait("a")
	l.Send(CancelOf("2"), Tagged("3", "gate", "b"))
	l.wait("b")
	for !strings.Contains(l.Seen(), "-a") {
		time.Sleep(time.Millisecond)
	}
	close(l.Gate("b"))
	for range 2 {
		if got := l.Next(); len(got) < 300000 && got != OKText("3", "b") {
			t.Error(got)
		}
	}
	l.End()
}

// A call that lasts does not keep the reader, nor does the one after a pause
// in which the watcher has gone to sleep.
func TestReaderIsRelieved(t *testing.T) {
	l := dial(t, nil)
	for i, tag := range []string{"a", "b"} {
		id := fmt.Sprint(10 + i)
		l.Send(Tagged(id, "gate", tag))
		l.wait(tag)
		l.Send(Ping)
		l.Want(Pong)
		l.Send(CancelOf(id), ToolCall(id, "noop", "{}"))
		l.Want(OKText(id, "ok"))
		time.Sleep(2 * quietTicks * maxHold)
	}
	l.End()
}

func TestInputFails(t *testing.T) {
	b := New()
	got := talkTo(t, b, io.MultiReader(strings.NewReader(Ping+"\nhalf a mess"), failingReader{}))
	sameLines(t, got, []string{Pong})
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("input/output error") }
