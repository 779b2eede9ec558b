//go:build amd64 || arm64

package broker

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestInterruptions(t *testing.T) {
	const none, usr1, term = "0000000000000000", "0000000000000200", "0000000000004000"
	for _, c := range []struct {
		threads, own, shared, blocked string
		want                          unix.Errno
	}{
		{"1", none, none, none, 0},
		{"1", usr1, none, none, restart},
		{"1", none, usr1, none, restart},
		{"3", usr1, none, none, unix.EINTR},
		{"3", none, term, usr1, unix.EINTR},
		{"1", usr1, none, usr1, 0},
		{"1", none, usr1, usr1, 0},
		{"1", usr1, term, usr1, restart},
	} {
		status := "Name:\tx\nThreads:\t" + c.threads + "\nSigQ:\t1/99\nSigPnd:\t" + c.own + "\nShdPnd:\t" + c.shared + "\nSigBlk:\t" + c.blocked + "\n"
		if got := interruptionOf(status); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
