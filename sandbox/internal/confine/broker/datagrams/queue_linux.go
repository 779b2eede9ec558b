//go:build amd64 || arm64

package datagrams

import (
	"sync/atomic"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// allQueued counts the bytes that wait in this process.
var allQueued atomic.Int64

// A datagram waits to be received.
type datagram struct {
	from []byte // the sender's address, as the receiver's kind of socket has it
	data []byte
}

func (d datagram) cost() int { return len(d.data) + queuedCost }

// deliver queues a datagram for the command that has the other end, and reports whether
// there was room. As with UDP, what finds none is lost.
func (l *Socket) deliver(d datagram) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.queued+d.cost() > maxQueued {
		return false
	}
	if allQueued.Add(int64(d.cost())) > maxAllQueued && (l.queued > 0 || d.cost() > answerCost) {
		allQueued.Add(-int64(d.cost()))
		return false
	}
	l.queue, l.queued = append(l.queue, d), l.queued+d.cost()
	if !l.pumping {
		l.pumping = true
		go l.pump()
	}
	return true
}

// pump hands over one datagram at a time: so it is known who sent the one that the
// command receives next, however it does.
func (l *Socket) pump() {
	for l.awaitTaken() && l.handOver() {
		select {
		case l.Arrived <- struct{}{}:
		default:
		}
	}
}

// handOver hands over the next. If there is none, the pump has ended.
func (l *Socket) handOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.pumping = false
		return false
	}
	d := l.dequeue()
	l.from = d.from
	_ = l.conn.Control(func(fd uintptr) { // fails where the command has closed its end
		_ = kernel.IgnoringEINTR(func() error { return unix.Send(int(fd), d.data, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL) })
	})
	return true
}

// dequeue needs the lock.
func (l *Socket) dequeue() datagram {
	d := l.queue[0]
	l.queue, l.queued = l.queue[1:], l.queued-d.cost()
	allQueued.Add(-int64(d.cost()))
	return d
}

// awaitTaken waits until the command has received what was handed over; false means that
// it never will.
func (l *Socket) awaitTaken() bool {
	const tellsEarly = 1 // the kernel wakes us before it has subtracted the last byte
	err := l.conn.Write(func(fd uintptr) bool {
		left, err := unix.IoctlGetInt(int(fd), unix.TIOCOUTQ)
		return err != nil || left <= tellsEarly
	})
	return err == nil
}

// Receive takes what the command would receive next, and says whom it is from. end is
// the command's end. The size is that of the datagram, of which some may be cut off.
func (l *Socket) Receive(end int, b []byte, flags int) (size int, from []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	flags = flags&unix.MSG_PEEK | unix.MSG_DONTWAIT | unix.MSG_TRUNC
	err = kernel.IgnoringEINTR(func() (err error) { size, _, err = unix.Recvfrom(end, b, flags); return err })
	return size, l.from, err
}
