//go:build amd64 || arm64

package namespaces

import (
	"encoding/binary"
	"os"
	"syscall"
	"testing"
)

// TestOneEnd: the number of a program that has ended can be that of another process of its
// cell later, which descends from the reaper, too. Its end is none of the program's.
func TestOneEnd(t *testing.T) {
	notes, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	const program, first, stop = 7, 3 << 8, 5<<8 | 0x7f
	for _, n := range []note{{stop, program}, {first, program}, {4 << 8, program}, {stop, program}, {}} {
		b := binary.NativeEndian.AppendUint64(nil, n.status)
		if _, err := told.Write(binary.NativeEndian.AppendUint64(b, n.pid)); err != nil {
			t.Fatal(err)
		}
	}
	told.Close()
	c := &Cell{isolator: &Isolator{}, program: program, notes: notes, leader: make(chan struct{}), done: make(chan struct{})}
	c.follow(false)
	if got := c.Wait(); got != syscall.WaitStatus(first) {
		t.Errorf("it ended with %#x, not %#x", got, first)
	}
	<-c.Done()
}
