//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

func init() {
	probeTable["hold-sockets"] = escape{try: holdSockets}
	probeTable["meet"] = escape{try: meetOwnServer}
}

// heldSockets are as many as the broker keeps for one command.
const heldSockets = 255

// holdSockets makes sockets that are never connected, and keeps them.
func holdSockets() error {
	for range heldSockets {
		if _, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
	}
	if err := os.WriteFile(fmt.Sprintf("up%d", os.Getpid()), nil, 0o600); err != nil {
		return err
	}
	time.Sleep(5 * time.Minute)
	return nil
}

// meetOwnServer connects to a server of its own.
func meetOwnServer() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	return errors.Join(conn.Close(), listener.Close())
}

// descriptorsNow is how many this process has.
func descriptorsNow(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(all)
}

// TestKeptSocketsAreFew: where commands' descriptors cannot be duplicated the server keeps
// copies of their sockets, which are few however many commands there are; and another
// command connects all the same.
func TestKeptSocketsAreFew(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	less := limit
	less.Cur = 1024
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &less))
	defer func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }()
	p := newPlace(t)
	c := confiner(t, p.policy(), kernel.Missing{GetFD: true})
	before := descriptorsNow(t)
	const commands = 3
	ended := make(chan result, commands)
	for range commands {
		go func() { ended <- p.do(t, c, []string{probeVar + "=hold-sockets"}, exe) }()
	}
	eventually(t, "sockets are not made", func() bool {
		up, err := filepath.Glob(p.ws + "/up*")
		return err == nil && len(up) == commands
	})
	if now := descriptorsNow(t); now > before+heldSockets+100 {
		t.Errorf("commands hold %d descriptors of the server", now-before)
	}
	if r := p.do(t, c, []string{probeVar + "=meet"}, exe); r.err != nil {
		t.Error(r.err, r.out)
	}
	must(t, c.Close())
	for range commands {
		<-ended
	}
}
