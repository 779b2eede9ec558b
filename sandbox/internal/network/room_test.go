package network

import (
	"io"
	"net"
	"testing"
)

// TestOneSessionLeavesRoomForOthers has gates relay as much as they are let.
func TestOneSessionLeavesRoomForOthers(t *testing.T) {
	gateway, server := listen(t), listen(t)
	shared := &room{size: func() int { return 12 }}
	var gates []*Gate
	for _, want := range []int{6, 3, 2} { // half of what is left
		g := testGate(t, "198.51.100.1", &zone{}, to(server))
		g.room = shared
		gates = append(gates, g)
		for range want {
			r := relay(t, g, gateway, server)
			through(t, r.command, r.server)
		}
		more := relay(t, g, gateway, nil)
		wantReset(t, "one connection too many", more.command)
		<-more.done
		wantRefusals(t, g, 0, "198.51.100.1:443 (too many connections at once; close some)")
	}
	gates[0].Close()
	r := relay(t, gates[2], gateway, server)
	through(t, r.command, r.server)
	for _, g := range gates {
		g.Close()
	}
	if shared.used != 0 {
		t.Error(shared.used, "relays are counted still")
	}
}

// A kernelCopy is a connection that notes when it is left to the kernel to copy.
type kernelCopy struct {
	*net.TCPConn
	at int64
}

func (k *kernelCopy) ReadFrom(src io.Reader) (int64, error) {
	k.at = src.(*counted).n
	return k.TCPConn.ReadFrom(src)
}

// counted counts what is read.
type counted struct {
	net.Conn
	n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.n += int64(n)
	return n, err
}

func TestMuchIsCopiedByTheKernel(t *testing.T) {
	for size, want := range map[int]int64{copiedSmall - 1: 0, copiedSmall: copiedSmall, copiedSmall * 3: copiedSmall} {
		l := listen(t)
		from, src := connected(t, l)
		dst, to := connected(t, l)
		go func() {
			_, _ = from.Write(make([]byte, size))
			from.Close()
		}()
		got := make(chan string)
		go func() { got <- readAll(t, to) }()
		k := &kernelCopy{TCPConn: dst}
		n, err := move(k, &counted{Conn: src})
		dst.Close()
		if all := <-got; err != nil || n != int64(size) || len(all) != size || k.at != want {
			t.Errorf("%d bytes: %d moved, %d came, by the kernel from %d: %v", size, n, len(all), k.at, err)
		}
	}
}

func TestRoomIsHalfOfTheDescriptors(t *testing.T) {
	for descriptors, want := range map[uint64]int{0: 2, 1024: 85, 12 * 100: 100, 1 << 20: 1024, 1<<64 - 1: 1024} {
		if got := roomFor(descriptors); got != want {
			t.Error(descriptors, got)
		}
	}
	if size := everyGate.size(); size < 2 || size > relaysOfAll {
		t.Error(size)
	}
}
