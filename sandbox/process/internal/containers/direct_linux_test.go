package containers

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
)

// TestDirectTakesOnlyTheRunner: who does not know the token is not let in, and keeps
// nobody out who does; after that nobody listens.
func TestDirectTakesOnlyTheRunner(t *testing.T) {
	tree, err := os.MkdirTemp("", "s-") // short enough for the name of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(tree) })
	d := openDirect(tree)
	if d == nil {
		t.Fatal("no socket")
	}
	hello := &remote.Hello{}
	d.offer(hello, tree)
	stranger, err := net.Dial("unix", string(hello.Socket))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := stranger.Write(bytes.Repeat([]byte("0"), len(hello.Token))); err != nil {
		t.Fatal(err)
	}
	runner := DialDirect(hello)
	if runner == nil {
		t.Fatal("the runner does not reach the socket")
	}
	defer runner.Close()
	conn, err := d.accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := runner.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if b := make([]byte, 1); readFull(conn, b) != nil || b[0] != 'x' {
		t.Errorf("what was let in is not the runner: %q", b)
	}
	if err := readFull(stranger, make([]byte, 1)); err == nil {
		t.Error("a stranger was let in")
	}
	if late := DialDirect(hello); late != nil {
		late.Close()
		t.Error("somebody could connect when the runner had")
	}
	if _, err := (*direct)(nil).accept(); !errors.Is(err, errNotDirect) {
		t.Errorf("accepted where there is no socket: %v", err)
	}
}

func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	return err
}
