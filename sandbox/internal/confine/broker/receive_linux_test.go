//go:build amd64 || arm64

package broker

import (
	"os"
	"testing"
	"time"
)

// TestReceiveEnds: a listener that cannot be asked ends the broker, whose end tells those
// who wait. Here it is a pipe, which has something to say and takes no such request.
func TestReceiveEnds(t *testing.T) {
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer in.Close()
	if _, err := in.WriteString("not a question"); err != nil {
		t.Fatal(err)
	}
	conn, err := out.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	b := &Broker{file: out, conn: conn, size: notificationSize()}
	heard := make(chan bool, 1)
	go func() {
		_, ok := b.receive(make([]uint64, (b.size+7)/8))
		heard <- ok
	}()
	select {
	case ok := <-heard:
		if ok {
			t.Error("a question was heard that nobody asked")
		}
	case <-time.After(time.Minute):
		t.Error("it listens on where nothing can be heard")
	}
}
