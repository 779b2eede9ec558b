package files

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox"
	"golang.org/x/sys/unix"
)

// TestLease: a file that another program has a lease on is refused when that
// program does not give it up, and read when it does.
func TestLease(t *testing.T) {
	testlevel.NotQuick(t, "waits for the kernel to give up a lease")
	w := newWorld(t)
	w.file("f", "content")
	holder, err := os.OpenFile(w.path("f"), os.O_RDWR, 0)
	must(t, err)
	defer holder.Close()
	if _, err := unix.FcntlInt(holder.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skip("no leases here:", err)
	}
	if _, err := w.fs.ReadFile("f", 100); !errors.Is(err, sandbox.ErrLeased) {
		t.Error("read while leased:", err)
	}
	if _, err := w.fs.Open("f"); !errors.Is(err, sandbox.ErrLeased) {
		t.Error("opened while leased:", err)
	}
	given := make(chan struct{})
	time.AfterFunc(50*time.Millisecond, func() {
		_, _ = unix.FcntlInt(holder.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		close(given)
	})
	if got, err := w.fs.ReadFile("f", 100); err != nil || string(got) != "content" {
		t.Errorf("once it is given up: %q, %v", got, err)
	}
	<-given
}
