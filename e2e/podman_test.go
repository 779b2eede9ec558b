//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

// A podman keeps images, volumes and containers in a directory of its own and touches no network.
type podman struct {
	dir     string
	runtime string // what starts containers here
}

// errNoPods: what the tests of Kubernetes' manifests need is not here.
var errNoPods = errors.New("needs root, podman with runc or crun, and a static busybox: apt-get install podman runc busybox-static")

// newPodman prepares a podman whose pods the test removes, or skips the test with the line that installs one.
func newPodman(t *testing.T) *podman {
	t.Helper()
	testlevel.Battery(t, "pods take seconds")
	busybox, err := staticBusybox()
	if _, missing := exec.LookPath("podman"); missing != nil || err != nil || os.Geteuid() != 0 {
		t.Skip(errNoPods)
	}
	dir, err := os.MkdirTemp("", "pb-podman-") // short: sockets lie in it
	if err != nil {
		t.Fatal(err)
	}
	p := &podman{dir: dir}
	t.Cleanup(func() {
		_, _ = p.run("pod", "rm", "--all", "--force", "--time", "0")
		_, _ = p.run("volume", "rm", "--all", "--force")
		_, _ = p.run("secret", "rm", "--all")
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "containers.conf"), []byte(p.config(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	rootfs, err := rootfs(busybox)
	if err != nil {
		t.Fatal(err)
	}
	if err := load(p, "localhost/pause", rootfs, `ENTRYPOINT ["/bin/sh", "-c", "trap exit TERM; while sleep 1; do :; done"]`); err != nil {
		t.Fatal(err)
	}
	p.chooseRuntime(t)
	return p
}

// config has podman need no systemd, and set no limits that this machine does not let it set.
func (p *podman) config(t *testing.T) string {
	limit := func(name string, resource int) string {
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%q", fmt.Sprintf("%s=%d:%[2]d", name, min(now.Cur, 4096)))
	}
	return fmt.Sprintf(`[containers]
default_ulimits = [%s, %s]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
infra_image = "localhost/pause"
`, limit("nofile", unix.RLIMIT_NOFILE), limit("nproc", unix.RLIMIT_NPROC))
}

// command is a call of podman.
func (p *podman) command(args ...string) *exec.Cmd {
	own := []string{"--root", filepath.Join(p.dir, "root"), "--runroot", filepath.Join(p.dir, "run"), "--tmpdir", filepath.Join(p.dir, "tmp"),
		"--volumepath", filepath.Join(p.dir, "volumes"), "--storage-driver", "vfs", "--log-level", "fatal"}
	if p.runtime != "" {
		own = append(own, "--runtime", p.runtime)
	}
	cmd := exec.Command("podman", append(own, args...)...)
	cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+filepath.Join(p.dir, "containers.conf"))
	return cmd
}

// run calls podman and returns what it prints.
func (p *podman) run(args ...string) (string, error) { return output(p.command(args...)) }

// must is run, where a failure ends the test.
func (p *podman) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := p.run(args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// chooseRuntime finds a runtime that starts containers here: crun refuses cgroups of both versions at once, as some machines have.
func (p *podman) chooseRuntime(t *testing.T) {
	t.Helper()
	var all error
	for _, p.runtime = range []string{"crun", "runc"} {
		_, err := p.run("run", "--rm", "--network", "none", "--entrypoint", "/bin/true", "localhost/pause")
		if err == nil {
			return
		}
		all = errors.Join(all, err)
	}
	t.Skipf("%v; neither starts a container here: %v", errNoPods, all)
}

// forward passes connections to an address of this machine on to a port in the network of process pid, as
// kubectl port-forward does; it returns the address.
func forward(t *testing.T, pid, port int) string {
	t.Helper()
	inside, err := os.Open("/proc/" + strconv.Itoa(pid) + "/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { pass(from, inside, port) })
		}
	})
	t.Cleanup(func() { l.Close(); browserless.CloseIdleConnections(); passing.Wait(); inside.Close() })
	return l.Addr().String()
}

// pass joins a connection with a new one in a network namespace, until both have ended.
func pass(from net.Conn, inside *os.File, port int) {
	defer from.Close()
	to, err := dialIn(inside, port)
	if err != nil {
		return // the client sees that its connection ends
	}
	defer to.Close()
	over := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() { _, _ = io.Copy(way[0], way[1]); over <- struct{}{} }()
	}
	<-over
}

// dialIn connects to a port of loopback from a thread that enters the namespace, and is not used again.
func dialIn(inside *os.File, port int) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with this
		if err = unix.Setns(int(inside.Fd()), unix.CLONE_NEWNET); err != nil {
			return
		}
		var fd int
		if fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0); err != nil {
			return
		}
		file := os.NewFile(uintptr(fd), "pod")
		defer file.Close()
		if err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err == nil {
			conn, err = net.FileConn(file)
		}
	}()
	<-done
	return conn, err
}
