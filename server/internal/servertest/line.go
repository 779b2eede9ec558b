package servertest

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
)

// A Line is a live connection of a client to a server over pipes.
type Line struct {
	T    *testing.T
	In   *io.PipeWriter
	Stop context.CancelFunc // ends the server's context
	Done chan error         // what the server returned

	out  *io.PipeReader
	pump sync.Once
	got  chan string // lines of out, once a test wants one
}

// Dial connects to what serve serves.
func Dial(t *testing.T, serve func(ctx context.Context, in io.Reader, out io.Writer) error) *Line {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	l := &Line{T: t, In: inW, out: outR, got: make(chan string, 10000), Done: make(chan error, 1), Stop: stop}
	go func() {
		err := serve(ctx, inR, outW)
		outW.Close()
		l.Done <- err
	}()
	t.Cleanup(func() {
		stop()
		inW.Close()
		outR.Close()
	})
	return l
}

// Send sends messages.
func (l *Line) Send(lines ...string) {
	l.T.Helper()
	for _, s := range lines {
		sent := make(chan error, 1)
		go func() {
			_, err := io.WriteString(l.In, s+"\n")
			sent <- err
		}()
		if err := Within(l.T, sent, "the reader"); err != nil {
			l.T.Fatal(err)
		}
	}
}

// Next returns the next line of output, "" at its end.
func (l *Line) Next() string {
	l.T.Helper()
	l.pump.Do(func() {
		go func() {
			defer close(l.got)
			out := bufio.NewReader(l.out)
			for {
				s, err := out.ReadString('\n')
				if err != nil {
					return
				}
				l.got <- strings.TrimSuffix(s, "\n")
			}
		}()
	})
	return Within(l.T, l.got, "a line of output")
}

// Want expects the next lines of output to be these.
func (l *Line) Want(lines ...string) {
	l.T.Helper()
	for _, want := range lines {
		if got := l.Next(); got != want {
			l.T.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

// End closes the input, expects the given output and a clean end.
func (l *Line) End(lines ...string) {
	l.T.Helper()
	l.In.Close()
	l.Want(append(lines, "")...)
	if err := Within(l.T, l.Done, "the end"); err != nil {
		l.T.Fatal(err)
	}
}
