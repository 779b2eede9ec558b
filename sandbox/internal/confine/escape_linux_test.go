//go:build amd64 || arm64

package confine

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"golang.org/x/sys/unix"
)

// lesser are machines that lack something of this one.
var lesser = map[string]kernel.Missing{
	"landlock 1": {LandlockAbove: 1}, "landlock 2": {LandlockAbove: 2}, "landlock 3": {LandlockAbove: 3},
	"landlock 5": {LandlockAbove: 5}, "no broker": {Broker: true}, "no broker, landlock 5": {Broker: true, LandlockAbove: 5},
	"no duplicates": {GetFD: true}, "no duplicates, landlock 1": {GetFD: true, LandlockAbove: 1},
}

// TestEscape runs every probe unconfined, where it must get out, which proves
// the probe, and confined, on this machine and lesser ones, where it must not.
func TestEscape(t *testing.T) {
	for _, name := range probeNames() {
		t.Run(name, func(t *testing.T) {
			if probeTable[name].root && os.Getuid() != 0 {
				t.Skip("only root could do this anyway")
			}
			exe, err := os.Executable()
			must(t, err)
			free := newPlace(t)
			if r := free.do(t, nil, append(scene(t, free), probeVar+"="+name), exe); r.err != nil {
				t.Skipf("unconfined it fails too, so it proves nothing here: %s", r.out)
			}
			mustStayInside(t, name, exe, kernel.Missing{})
			t.Run("behind a gate", func(t *testing.T) {
				p := newPlace(t)
				c, _ := gated(t, p, "one.example,198.51.100.1", &book{}, kernel.Missing{})
				p.mustStayInside(t, c, name, exe)
			})
			for machine, without := range lesser {
				if !testlevel.All() && machine != "landlock 1" {
					continue // they differ in what a user's rights have no part in
				}
				t.Run(machine, func(t *testing.T) { mustStayInside(t, name, exe, without) })
			}
		})
	}
}

func mustStayInside(t *testing.T, name, exe string, without kernel.Missing) {
	p := newPlace(t)
	p.mustStayInside(t, confiner(t, p.policy(), without), name, exe)
}

func (p place) mustStayInside(t *testing.T, c *threads.Confiner, name, exe string) {
	r := p.do(t, c, append(scene(t, p), probeVar+"="+name), exe)
	if r.err == nil {
		t.Fatal("it got out")
	}
	if _, failed := r.err.(*exec.ExitError); !failed || strings.Contains(r.out, "panic") {
		t.Fatalf("it did not run: %v %s", r.err, r.out)
	}
	waitDone(t, r.domain)
}

func probeNames() []string {
	var names []string
	for name := range probeTable {
		if !slices.Contains([]string{"attack", "inherited", "random", "bindfirst", "steer", "disconnect", "dial", "dial-link", "pidfd-own", "terminals", "connects", "hang", "loopback", "watchers", "subvolume", "late", "late-queue",
			"ask", "write-long", "fill", "patient", "pending", "full", "usurp", "both", "by-name", "reach", "names", "datagrams", "options", "crowd",
			"udp-echo", "udp-ask", "udp-greet", "udp-out", "udp-pieces", "udp-wait", "pairs", "dgram-echo", "dgram-ask", "dgram-permitted", "dgram-attack", "dgram-places", "signal-connect", "signal-receive", "hold-sockets", "meet"}, name) { // they have tests of their own
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

var scenes atomic.Int32

// scene builds what the probes go for and returns the environment that says so.
func scene(t *testing.T, p place) []string {
	must(t, os.Mkdir(filepath.Join(p.outside, "empty"), 0o755))
	sock := filepath.Join(p.outside, "docker.sock")
	abstract := fmt.Sprintf("@confine-%d-%d", os.Getpid(), scenes.Add(1))
	serve(t, "unix", sock)
	serve(t, "unix", abstract)
	for _, name := range []string{filepath.Join(p.outside, "dgram.sock"), abstract + "d"} {
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		must(t, err)
		t.Cleanup(func() { conn.Close() })
	}
	queue := abstract[1:]
	must(t, openQueue(queue, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL))
	t.Cleanup(func() { _ = unlinkQueue(queue) })
	return append(systemV(t),
		"PROBE_POSIX_QUEUE="+queue, fmt.Sprintf("PROBE_NETLINK=%d", netlinkPort(t)),
		"PROBE_OUTSIDE="+p.outside, "PROBE_SOCK="+sock, "PROBE_ABSTRACT="+abstract,
		"PROBE_TCP="+serve(t, "tcp", "127.0.0.1:0"), "PROBE_OWN="+anOwnAddress(),
		fmt.Sprintf("PROBE_VICTIM=%d", bystander(t, "")), fmt.Sprintf("PROBE_SERVER=%d", os.Getpid()),
	)
}

// anOwnAddress is an address of this machine that is not loopback's, or nothing.
func anOwnAddress() string {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return ""
}

// netlinkPort is the address of a netlink socket of another program.
func netlinkPort(t *testing.T) uint32 {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	must(t, err)
	t.Cleanup(func() { unix.Close(s) })
	must(t, unix.Bind(s, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
	at, err := unix.Getsockname(s)
	must(t, err)
	return at.(*unix.SockaddrNetlink).Pid
}

// systemV makes objects of this user's that are not the commands'.
func systemV(t *testing.T) (env []string) {
	key := 0x5c000000 + os.Getpid()<<8 + int(scenes.Load())&0xff
	for i, name := range []string{"PROBE_SHARED", "PROBE_SEMAPHORE", "PROBE_QUEUE"} {
		kind := &broker.IPCKinds[i]
		args := [6]uint64{uint64(key), 64}
		if kind.Get == unix.SYS_SEMGET {
			args[1] = 1
		}
		args[kind.Flags] = ipcCreate | 0o600
		id, e := ipcCall(kind.Get, args)
		if e != 0 {
			t.Fatal(name, e)
		}
		t.Cleanup(func() { _, _ = ipcCall(kind.Ctl, [6]uint64{uint64(id)}) }) // to remove is 0, in whichever place
		env = append(env, fmt.Sprintf("%s=%d", name, id), fmt.Sprintf("%s_KEY=%d", name, key))
	}
	return env
}

// serve accepts connections and drops them.
func serve(t *testing.T, network, address string) string {
	l, err := net.Listen(network, address)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, conn); conn.Close() }()
		}
	}()
	return l.Addr().String()
}

// bystander starts a process in dir that is nobody's business, in a group of its own.
func bystander(t *testing.T, dir string) int {
	cmd := exec.Command("sleep", "1000")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}
