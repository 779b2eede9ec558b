package server

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func TestEveryCallReadIsAnswered(t *testing.T) {
	for range 20 {
		sameLines(t, talk(t, ping+"\n"+toolCall("2", "noop", "{}")), []string{pong, okText("2", "ok")})
	}
}

// What ends the input: its end, and a signal.
func TestEndings(t *testing.T) {
	for name, end := range map[string]func(*line){
		"end of input": func(l *line) { l.in.Close() },
		"signal":       func(l *line) { l.stop() },
	} {
		t.Run(name+": calls run to their end", func(t *testing.T) {
			drained := make(chan struct{})
			l := dial(t, func(cfg *stdioConfig) { cfg.drain = func() { close(drained) } })
			l.send(tagged("1", "gate", "a"), tagged("2", "lane", "b"), tagged("3", "lane", "c"), toolCall("4", "noop", "{}"))
			l.wait("a", "b")
			l.want(okText("4", "ok")) // so all of them were read
			end(l)
			within(t, drained, "the drain")
			close(l.gate("a"))
			l.want(okText("1", "a"))
			close(l.gate("b"))
			close(l.gate("c"))
			l.want(okText("2", "b"), okText("3", "c"), "")
			within(t, l.done, "the end")
		})
		t.Run(name+": but not for ever", func(t *testing.T) {
			l := dial(t, nil)
			l.send(tagged("1", "gate", "a"), tagged("2", "deaf", "b"))
			l.wait("a", "b")
			start := time.Now()
			end(l)
			l.want(errText("1", "cancelled"), "")
			within(t, l.done, "the end")
			if took := time.Since(start); took < drainTime || took > 10*time.Second {
				t.Errorf("ended after %v", took)
			}
			close(l.gate("b")) // too late: nothing is written any more
		})
	}
}

func TestNothingIsReadAfterASignal(t *testing.T) {
	l := dial(t, nil)
	l.send(tagged("1", "gate", "a"))
	l.wait("a")
	l.stop()
	// Until it has been seen, a message may still be read: send until one is not answered.
	go func() {
		for {
			if _, err := io.WriteString(l.in, `{"jsonrpc":"2.0","id":"late","method":"no/such"}`+"\n"); err != nil {
				return
			}
		}
	}()
	time.Sleep(50 * time.Millisecond)
	close(l.gate("a"))
	for got := l.next(); got != ""; got = l.next() {
		if got != okText("1", "a") && !strings.Contains(got, `"late"`) {
			t.Error(got)
		}
	}
	within(t, l.done, "the end")
}

func TestOutputGone(t *testing.T) {
	b := newBench()
	in, w := io.Pipe()
	defer w.Close()
	drained := false
	cfg := b.config()
	cfg.drain = func() { drained = true }
	done := make(chan error, 1)
	go func() { done <- serveStdio(t.Context(), in, brokenWriter{}, cfg) }()
	io.WriteString(w, ping+"\n")
	if err := within(t, done, "the end"); err != nil || !drained {
		t.Errorf("error %v, drained %v", err, drained)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// Nobody reads the output: the end comes all the same.
func TestOutputStuck(t *testing.T) {
	b := newBench()
	outR, out := io.Pipe()
	defer outR.Close()
	done := make(chan error, 1)
	go func() {
		done <- serveStdio(t.Context(), strings.NewReader(toolCall("1", "noop", "{}")+"\n"+toolCall("2", "noop", "{}")), out, b.config())
	}()
	if err := within(t, done, "the end"); err != nil {
		t.Error(err)
	}
}

// The reader takes in a cancel while an answer cannot be written.
func TestReaderDoesNotWaitForTheWriter(t *testing.T) {
	l := dial(t, nil)
	l.send(toolCall("1", "big", `{"n":300000}`), tagged("2", "gate", "a"))
	l.wait("a")
	l.send(cancelOf("2"), tagged("3", "gate", "b"))
	l.wait("b")
	for !strings.Contains(l.seen(), "-a") {
		time.Sleep(time.Millisecond)
	}
	close(l.gate("b"))
	for range 2 {
		if got := l.next(); len(got) < 300000 && got != okText("3", "b") {
			t.Error(got)
		}
	}
	l.end()
}

// A call that lasts does not keep the reader, nor does the one after a pause
// in which the watcher has gone to sleep.
func TestReaderIsRelieved(t *testing.T) {
	l := dial(t, nil)
	for i, tag := range []string{"a", "b"} {
		id := fmt.Sprint(10 + i)
		l.send(tagged(id, "gate", tag))
		l.wait(tag)
		l.send(ping)
		l.want(pong)
		l.send(cancelOf(id), toolCall(id, "noop", "{}"))
		l.want(okText(id, "ok"))
		time.Sleep(2 * quietTicks * patience)
	}
	l.end()
}

func TestInputFails(t *testing.T) {
	b := newBench()
	got := talkTo(t, b, io.MultiReader(strings.NewReader(ping+"\nhalf a mess"), failingReader{}))
	sameLines(t, got, []string{pong})
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("input/output error") }
