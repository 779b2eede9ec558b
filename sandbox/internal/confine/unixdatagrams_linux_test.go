//go:build amd64 || arm64

package confine

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker/datagrams"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"golang.org/x/sys/unix"
)

func init() {
	probeTable["dgram-echo"] = escape{try: echoUnix}
	probeTable["dgram-ask"] = escape{try: askUnix}
	probeTable["dgram-permitted"] = escape{try: sendPermitted}
	probeTable["dgram-attack"] = escape{try: attackUnix}
}

func listenUnixgram(path string) (*net.UnixConn, error) {
	return net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
}

// echoUnix answers every datagram with whom it is from and what it says.
func echoUnix() error {
	conn, err := listenUnixgram("echo.sock")
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		b := make([]byte, datagrams.MaxUDP)
		for {
			n, from, err := conn.ReadFromUnix(b)
			if err != nil {
				return
			}
			if from != nil {
				_, _ = conn.WriteToUnix(fmt.Appendf(nil, "%s %.9s", from.Name, b[:n]), from)
			}
		}
	}()
	if err := os.WriteFile("ready", nil, 0o600); err != nil {
		return err
	}
	if !await("stop") {
		return errors.New("nobody stops it")
	}
	return nil
}

// askUnix asks the echo of an earlier command by every way, and tries the rest of what
// such sockets do.
func askUnix() error {
	if !await("ready") {
		return errors.New("there is no echo")
	}
	if err := os.Mkdir("d", 0o700); err != nil {
		return err
	}
	own := filepath.Join("d", "own.sock")
	conn, err := listenUnixgram(own)
	if err != nil {
		return err
	}
	defer conn.Close()
	if info, err := os.Lstat(own); err != nil || info.Mode()&os.ModeSocket == 0 || conn.LocalAddr().String() != own {
		return fmt.Errorf("%v is bound to %v: %w", conn.LocalAddr(), info, err)
	}
	if again, err := listenUnixgram(own); !errors.Is(err, unix.EADDRINUSE) {
		again.Close()
		return fmt.Errorf("two have one name: %w", err)
	}
	return errors.Join(askUnixNamed(conn, own), askUnixConnected(), sendsUnixOrdered(), leavesUnix())
}

func askUnixNamed(conn *net.UnixConn, own string) error {
	_ = conn.SetDeadline(time.Now().Add(patience))
	b := make([]byte, 99)
	for i, send := range []func([]byte, *net.UnixAddr) error{
		func(b []byte, to *net.UnixAddr) error { _, err := conn.WriteToUnix(b, to); return err },
		func(b []byte, to *net.UnixAddr) error { _, _, err := conn.WriteMsgUnix(b, nil, to); return err },
	} {
		if err := send([]byte("hello"), &net.UnixAddr{Name: "echo.sock", Net: "unixgram"}); err != nil {
			return fmt.Errorf("way %d: %w", i, err)
		}
		n, from, err := conn.ReadFromUnix(b)
		if err != nil || string(b[:n]) != own+" hello" || from == nil || from.Name != "echo.sock" {
			return fmt.Errorf("way %d: %q from %v: %w", i, b[:n], from, err)
		}
	}
	return nil
}

// askUnixConnected connects before it sends, by an absolute name.
func askUnixConnected() error {
	top, err := os.Getwd()
	if err != nil {
		return err
	}
	conn, err := net.DialUnix("unixgram", &net.UnixAddr{Name: "asker.sock", Net: "unixgram"}, &net.UnixAddr{Name: filepath.Join(top, "echo.sock"), Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	b := make([]byte, 99)
	if _, err := conn.Write([]byte("again")); err != nil {
		return err
	}
	n, err := conn.Read(b)
	if err != nil || string(b[:n]) != "asker.sock again" || conn.RemoteAddr().String() != "echo.sock" {
		return fmt.Errorf("connected to %v: %q %w", conn.RemoteAddr(), b[:n], err)
	}
	return nil
}

// sendsUnixOrdered sends more than there is room for: nothing is lost, and who must not
// wait is told so.
func sendsUnixOrdered() error {
	server, err := listenUnixgram("slow.sock")
	if err != nil {
		return err
	}
	defer server.Close()
	_ = server.SetDeadline(time.Now().Add(patience))
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	to := &unix.SockaddrUnix{Name: "slow.sock"}
	text := bytes.Repeat([]byte("x"), 8<<10)
	sent := 0
	for ; err == nil && sent < 10000; sent++ {
		text[0] = byte(sent)
		err = unix.Sendto(s, text, unix.MSG_DONTWAIT, to)
	}
	if sent--; err != unix.EAGAIN {
		return fmt.Errorf("after %d datagrams: %w", sent, err)
	}
	done := make(chan error, 1)
	go func() {
		for i := range 20 { // which have to wait
			more := bytes.Clone(text)
			more[0] = byte(sent + i)
			if err := unix.Sendto(s, more, 0, to); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	b := make([]byte, 16<<10)
	for i := range sent + 20 {
		n, from, err := server.ReadFromUnix(b)
		if err != nil || n != len(text) || b[0] != byte(i) || from != nil {
			return fmt.Errorf("datagram %d of %d: %d bytes, %d first, from %v: %w", i, sent+20, n, b[0], from, err)
		}
	}
	return <-done
}

// leavesUnix: nobody hears at the name of a socket that has gone, and the name is there
// until it is removed.
func leavesUnix() error {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	name := &unix.SockaddrUnix{Name: "gone.sock"}
	if err := unix.Bind(s, name); err != nil {
		return err
	}
	unix.Close(s)
	two, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(two)
	refused := func() bool { return unix.Sendto(two, []byte("x"), 0, name) == unix.ECONNREFUSED }
	for until := time.Now().Add(patience); !refused(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			return errors.New("what has gone is sent to")
		}
	}
	if err := unix.Bind(two, name); err != unix.EADDRINUSE {
		return fmt.Errorf("a name that is there is bound again: %w", err)
	}
	if err := os.Remove(name.Name); err != nil {
		return err
	}
	return unix.Bind(two, name)
}

// attackUnix sends to PROBE_OUTSIDE/service by every way, each with a text of its own, and
// tries to make sockets outside.
func attackUnix() error {
	service := outside("service")
	for name, attack := range map[string]func(s int) error{
		"sendto": func(s int) error { return unix.Sendto(s, []byte("sendto"), 0, &unix.SockaddrUnix{Name: service}) },
		"sendmsg": func(s int) error {
			return unix.Sendmsg(s, []byte("sendmsg"), nil, &unix.SockaddrUnix{Name: service}, 0)
		},
		"connected": func(s int) error { return connectAndWrite(s, service, "connected") },
		"link": func(s int) error {
			_ = os.Symlink(service, "link")
			return unix.Sendto(s, []byte("link"), 0, &unix.SockaddrUnix{Name: "link"})
		},
		"directory": func(s int) error {
			_ = os.Symlink(filepath.Dir(service), "dir")
			return connectAndWrite(s, "dir/service", "directory")
		},
		"descriptor": func(s int) error {
			fd, err := unix.Open(service, unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return connectAndWrite(s, fmt.Sprintf("/proc/self/fd/%d", fd), "descriptor")
		},
		"root": func(s int) error { return connectAndWrite(s, "/proc/self/root"+service, "root") },
		"bind": func(s int) error { return unix.Bind(s, &unix.SockaddrUnix{Name: outside("bound")}) },
		"bind by link": func(s int) error {
			_ = os.Symlink(outside("empty"), "empty")
			return unix.Bind(s, &unix.SockaddrUnix{Name: "empty/bound"})
		},
		"bind by root": func(s int) error {
			return unix.Bind(s, &unix.SockaddrUnix{Name: "/proc/self/root" + outside("empty/rooted")})
		},
	} {
		s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		fmt.Println(name, attack(s))
		unix.Close(s)
	}
	return errors.Join(swapUnixAddresses(service), swapUnixLinks(service))
}

func connectAndWrite(s int, path, text string) error {
	if err := unix.Connect(s, &unix.SockaddrUnix{Name: path}); err != nil {
		return err
	}
	_, err := unix.Write(s, []byte(text))
	return err
}

// tries is how often a race is run.
const tries = 2000

// swapUnixAddresses changes the address in memory while it is sent to.
func swapUnixAddresses(service string) error {
	own, err := listenUnixgram("swap.sock")
	if err != nil {
		return err
	}
	defer own.Close()
	go func() {
		for b := make([]byte, 99); ; {
			if _, err := own.Read(b); err != nil {
				return
			}
		}
	}()
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	text := []byte("swapped")
	names := [2][]byte{unixName("swap.sock"), unixName(service)}
	address := make([]byte, 110)
	copy(address, names[0])
	stop, all := make(chan struct{}), sync.WaitGroup{}
	all.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				clear(address[2:])
				copy(address, names[i%2])
			}
		}
	})
	for range 10 * tries {
		_ = syscallErr(unix.SYS_SENDTO, uintptr(s), ptr(&text[0]), uintptr(len(text)), 0, ptr(&address[0]), uintptr(len(address)))
	}
	close(stop)
	all.Wait()
	return nil
}

// swapUnixLinks has a name lead in and out of the workspace while it is sent to, and while
// sockets are bound below it.
func swapUnixLinks(service string) error {
	if err := errors.Join(os.Mkdir("in", 0o700), os.Mkdir("park", 0o700), os.Symlink(filepath.Dir(service), "out")); err != nil {
		return err
	}
	stop, all := make(chan struct{}), sync.WaitGroup{}
	all.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, "in", unix.AT_FDCWD, "out", unix.RENAME_EXCHANGE)
			}
		}
	})
	for i := range tries {
		s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err == nil {
			_ = unix.Sendto(s, []byte("raced"), 0, &unix.SockaddrUnix{Name: "in/service"})
			_ = unix.Bind(s, &unix.SockaddrUnix{Name: fmt.Sprintf("in/raced-%d", i%100)})
			unix.Close(s)
		}
	}
	close(stop)
	all.Wait()
	return nil
}

// TestUnixDatagramsOfTheSession: commands of one session reach each other by Unix datagram
// sockets with names, as they would outside.
func TestUnixDatagramsOfTheSession(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	serve := probeVar + "=dgram-echo " + exe + " >echo.log 2>&1 & "
	ask := []string{probeVar + "=dgram-ask"}
	confiners := map[string]func(*testing.T, place) *threads.Confiner{
		"threads": func(t *testing.T, p place) *threads.Confiner { return confiner(t, p.policy(), kernel.Missing{}) },
		"threads, no duplicates": func(t *testing.T, p place) *threads.Confiner {
			return confiner(t, p.policy(), kernel.Missing{GetFD: true})
		},
		"threads, landlock 1": func(t *testing.T, p place) *threads.Confiner {
			return confiner(t, p.policy(), kernel.Missing{LandlockAbove: 1})
		},
		"behind a gate": func(t *testing.T, p place) *threads.Confiner {
			c, _ := gated(t, p, "one.example", &book{}, kernel.Missing{})
			return c
		},
		"outside": func(*testing.T, place) *threads.Confiner { return nil }, // the test asks for what there is
	}
	for name, confined := range confiners {
		if name != "threads" && name != "outside" && testlevel.Quick() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			c := confined(t, p)
			r := p.sh(t, c, serve)
			if r = p.do(t, c, ask, exe); r.err != nil {
				log, _ := os.ReadFile(filepath.Join(p.ws, "echo.log"))
				t.Error(r.err, r.out, string(log))
				if c != nil {
					t.Error(r.domain.Refusals())
				}
			}
			must(t, os.WriteFile(filepath.Join(p.ws, "stop"), nil, 0o600))
			if c == nil {
				return
			}
			eventually(t, "the domains end", func() bool { return len(c.Live()) == 0 })
			eventually(t, "sockets are kept", func() bool {
				return c.Datagrams.None() && holdsNothing(c.Datagrams)
			})
		})
	}
}

// TestUnixDatagramAttacks: no way leads to a service of the machine's, nor makes a socket
// outside, and all of them would without walls.
func TestUnixDatagramAttacks(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	attack := func(t *testing.T, c func(place) *threads.Confiner) (heard map[string]bool, made []string) {
		p := newPlace(t)
		must(t, os.Mkdir(filepath.Join(p.outside, "empty"), 0o755))
		service, err := listenUnixgram(filepath.Join(p.outside, "service"))
		must(t, err)
		texts := make(chan map[string]bool)
		go func() {
			heard := map[string]bool{}
			for b := make([]byte, 99); ; {
				n, err := service.Read(b)
				if err != nil {
					texts <- heard
					return
				}
				heard[string(b[:n])] = true
			}
		}()
		r := p.do(t, c(p), []string{probeVar + "=dgram-attack", "PROBE_OUTSIDE=" + p.outside}, exe)
		if r.err != nil || !strings.Contains(r.out, "sendmsg ") {
			t.Error("the attacks did not run:", r.err, r.out)
		}
		t.Log(r.out)
		_ = service.SetReadDeadline(time.Now().Add(time.Second)) // what was sent is there by now
		heard = <-texts
		service.Close()
		for _, pattern := range []string{"bound", "raced-*", "empty/*"} {
			found, _ := filepath.Glob(filepath.Join(p.outside, pattern))
			made = append(made, found...)
		}
		return heard, made
	}
	heard, made := attack(t, func(place) *threads.Confiner { return nil })
	for _, text := range []string{"sendto", "sendmsg", "connected", "link", "directory", "descriptor", "root", "swapped", "raced"} {
		if !heard[text] {
			t.Errorf("outside %s is not heard: the test proves nothing", text)
		}
	}
	if len(made) < 4 {
		t.Errorf("outside only %q are made: the test proves nothing", made)
	}
	for name, without := range map[string]kernel.Missing{"threads": {}, "no duplicates": {GetFD: true}, "landlock 1": {LandlockAbove: 1}} {
		if name != "threads" && !testlevel.All() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			heard, made := attack(t, func(p place) *threads.Confiner { return confiner(t, p.policy(), without) })
			if len(heard) > 0 || len(made) > 0 {
				t.Errorf("the service hears %v, and these are made: %q", heard, made)
			}
		})
	}
}

// TestUnixDatagramsPermitted: a socket of another program's hears what commands send where
// the policy lets them write it.
func TestUnixDatagramsPermitted(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	p := newPlace(t)
	must(t, os.Mkdir(filepath.Join(p.outside, "empty"), 0o755))
	path := filepath.Join(p.outside, "service")
	service, err := listenUnixgram(path)
	must(t, err)
	defer service.Close()
	policy := p.policy()
	policy.Write = append(policy.Write, path)
	r := p.do(t, confiner(t, policy, kernel.Missing{}), []string{probeVar + "=dgram-permitted", "PROBE_OUTSIDE=" + p.outside}, exe)
	if r.err != nil {
		t.Fatal(r.err, r.out, r.domain.Refusals())
	}
	_ = service.SetReadDeadline(time.Now().Add(patience))
	b := make([]byte, 99)
	for _, want := range []string{"sent", "connected"} {
		if n, err := service.Read(b); err != nil || string(b[:n]) != want {
			t.Errorf("the service hears %q, not %q: %v", b[:n], want, err)
		}
	}
}

// sendPermitted sends to PROBE_OUTSIDE/service, with an address and without.
func sendPermitted() error {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	if err := unix.Sendto(s, []byte("sent"), 0, &unix.SockaddrUnix{Name: outside("service")}); err != nil {
		return err
	}
	return connectAndWrite(s, outside("service"), "connected")
}

// unixName is the address of a socket as the kernel reads it.
func unixName(path string) []byte { return append([]byte{unix.AF_UNIX, 0}, path+"\x00"...) }
