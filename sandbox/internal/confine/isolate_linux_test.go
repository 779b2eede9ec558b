//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/namespaces"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/selftest"
	"golang.org/x/sys/unix"
)

// isolator is one for the place, with Landlock on top or without, or the test is skipped.
func (p place) isolator(t testing.TB, landlock bool) *namespaces.Isolator {
	t.Helper()
	has := kernel.Features{}
	if landlock {
		has.Landlock = kernel.LandlockABI()
	}
	i, err := namespaces.NewWith(namespaces.Isolation{Policy: p.policy(), Workspace: p.ws, Guard: true, Lacks: lacking}, has)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { must(t, i.Close()) })
	return i
}

// in runs a program in a cell to its end and returns what it wrote.
func (p place) in(t testing.TB, i *namespaces.Isolator, env []string, argv ...string) (string, syscall.WaitStatus) {
	t.Helper()
	out, c := p.begin(t, i, env, argv...)
	text, _ := io.ReadAll(out)
	out.Close()
	status := c.Wait()
	must(t, c.Kill())
	<-c.Done()
	return string(text), status
}

func (p place) begin(t testing.TB, i *namespaces.Isolator, env []string, argv ...string) (*os.File, *namespaces.Cell) {
	t.Helper()
	out, write, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { out.Close() })
	defer write.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	defer null.Close()
	tmp := filepath.Join(p.ws, ".tmp")
	c, err := i.Start(namespaces.Program{Path: argv[0], Argv: argv, Dir: p.ws,
		Env:   append(os.Environ(), append([]string{"HOME=" + tmp, "TMPDIR=" + tmp}, env...)...),
		Files: [3]uintptr{null.Fd(), write.Fd(), write.Fd()}})
	must(t, err)
	return out, c
}

func (p place) inSh(t testing.TB, i *namespaces.Isolator, script string) (string, syscall.WaitStatus) {
	t.Helper()
	return p.in(t, i, nil, "/bin/sh", "-c", script)
}

// harmless are probes that get what they ask for in a cell, where it leads
// nowhere: a network and objects of its own.
var harmless = map[string]bool{"mptcp": true, "posix-queue-create": true, "shared-memory-mode": true, "shared-memory-mode-by-descriptor": true, "shared-memory-owner": true,
	"tcp-autobind": true, "tcp-listen": true}

// TestEscapeFromCell is TestEscape for namespaces, with Landlock on top and without.
func TestEscapeFromCell(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	for _, name := range probeNames() {
		t.Run(name, func(t *testing.T) {
			if probeTable[name].root && os.Getuid() != 0 {
				t.Skip("only root could do this anyway")
			}
			free := newPlace(t)
			if r := free.do(t, nil, append(scene(t, free), probeVar+"="+name), exe); r.err != nil {
				t.Skipf("unconfined it fails too, so it proves nothing here: %s", r.out)
			}
			for machine, landlock := range map[string]bool{"landlock": true, "no landlock": false} {
				t.Run(machine, func(t *testing.T) {
					p := newPlace(t)
					out, status := p.in(t, p.isolator(t, landlock), append(scene(t, p), probeVar+"="+name), exe)
					if got := status.ExitStatus() == 0; got != harmless[name] {
						t.Errorf("got out: %v", got)
					}
					if !status.Exited() || strings.Contains(out, "panic") {
						t.Errorf("it did not run: %v %s", status, out)
					}
				})
			}
		})
	}
}

// TestKeeper: the first process of a session is in the sight of commands, but out
// of their reach.
func TestKeeper(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	p := newPlace(t)
	i := p.isolator(t, false)
	env := append(scene(t, p), "PROBE_VICTIM=1", "PROBE_SERVER=1")
	for _, name := range []string{"environ", "mem", "fd", "proc-root", "proc-cwd", "ptrace", "vm-read", "pidfd-getfd"} {
		if out, status := p.in(t, i, append(env, probeVar+"="+name), exe); status.ExitStatus() == 0 {
			t.Errorf("%s got at it: %s", name, out)
		}
	}
	out, status := p.inSh(t, i, "for s in STOP KILL TERM INT SEGV USR1; do kill -$s 1; done; sleep 0.1; ps -o stat= -p 1 | cut -c1; exit 4")
	if out != "S\n" || status.ExitStatus() != 4 {
		t.Errorf("%q %v", out, status)
	}
}

func TestCellStatus(t *testing.T) {
	for _, landlock := range []bool{true, false} {
		i := newPlace(t).isolator(t, landlock)
		s := i.Status()
		if !s.Enforced() || !s.Kill.Proven || !s.Seccomp || s.Tier != selftest.Namespaces || (s.LandlockABI > 0) != (landlock && kernel.LandlockABI() > 0) {
			t.Errorf("%+v", s)
		}
		must(t, i.SelfTest())
	}
}

// TestLimitsOfOthersStay: no command sets the limits of what holds its session together.
func TestLimitsOfOthersStay(t *testing.T) {
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skip(err)
	}
	p := newPlace(t)
	i := p.isolator(t, true)
	for _, limit := range []string{"nofile", "cpu", "as", "stack", "nproc"} {
		out, _ := p.inSh(t, i, "for p in 1 $(cd /proc; echo [0-9]*); do [ $p = $$ ] || { prlimit --pid $p --"+limit+"=0:0 && echo set $p; }; done 2>/dev/null; prlimit --nofile=64:64 echo own")
		if out != "own\n" {
			t.Errorf("%s: %q", limit, out)
		}
		if out, status := p.inSh(t, i, "cat /proc/version > /dev/null && echo well"); out != "well\n" || status != 0 {
			t.Fatalf("the next command after %s: %q %v", limit, out, status)
		}
	}
}

// TestOpenNetworkIsProvenWithScopesOnly: without them commands could reach the
// abstract sockets of other programs.
func TestOpenNetworkIsProvenWithScopesOnly(t *testing.T) {
	p := newPlace(t)
	policy := p.policy()
	policy.Network = true
	for abi, want := range map[int]bool{0: false, 5: false, 6: true} {
		if abi > kernel.LandlockABI() {
			continue
		}
		i, err := namespaces.NewWith(namespaces.Isolation{Policy: policy, Workspace: p.ws}, kernel.Features{Landlock: abi})
		if err != nil {
			t.Skip(err)
		}
		defer i.Close()
		if s := i.Status(); s.Network.Proven != want || s.Enforced() != want || !s.Files.Proven {
			t.Errorf("ABI %d: %+v", abi, s)
		}
	}
}

// TestCellView: what a command finds where others would find the machine's.
func TestCellView(t *testing.T) {
	t.Run("as it is here", testCellView)
	t.Run("without mount_setattr", func(t *testing.T) {
		withLacks(t, namespaces.Lacks{MountSetattr: true})
		testCellView(t)
	})
}

func testCellView(t *testing.T) {
	p := newPlace(t)
	must(t, os.MkdirAll(filepath.Join(p.ws, "Perstack/sub"), 0o755))
	must(t, os.WriteFile(filepath.Join(p.ws, "Perstack/secret"), []byte("sesame"), 0o644))
	must(t, os.MkdirAll(filepath.Join(p.ws, ".git/hooks"), 0o755))
	must(t, os.WriteFile(filepath.Join(p.ws, ".git/config"), []byte("[core]\n"), 0o644))
	i := p.isolator(t, false)
	for name, tt := range map[string]struct{ script, want string }{
		"perstack is empty":       {"ls -A Perstack | wc -l; touch Perstack/x 2>&1 | grep -o Read-only", "0\nRead-only\n"},
		"hooks are read only":     {"ls -d .git/hooks && touch .git/hooks/x 2>&1 | grep -o Read-only", ".git/hooks\nRead-only\n"},
		"config is read only":     {"cat .git/config && (echo x > .git/config) 2>&1 | grep -o Read-only", "[core]\nRead-only\n"},
		"config is not replaced":  {"echo x > c; mv -f c .git/config 2>/dev/null || echo kept; rm -f c", "kept\n"},
		".git cannot be moved":    {"mv .git g 2>&1 | grep -o busy", "busy\n"},
		"the rest of .git works":  {"echo x > .git/HEAD && cat .git/HEAD", "x\n"},
		"/tmp is private":         {"ls /tmp | grep -v '^c-\\|^go-build\\|confine' | wc -l; echo x > /tmp/f && cat /tmp/f", "0\nx\n"},
		"the root is read only":   {"touch /x 2>&1 | grep -o Read-only; mkdir /etc/x 2>&1 | grep -o Read-only", "Read-only\nRead-only\n"},
		"sysctls are read only":   {"echo x 2>/dev/null > /proc/sys/kernel/hostname || echo refused", "refused\n"},
		"nobody else is seen":     {"test $(ls /proc | grep -c '^[0-9]') -lt 9 && echo few", "few\n"},
		"links of the machine":    {"test -x /bin/sh && echo x > /dev/stdout", "x\n"},
		"a terminal":              {"test -c /dev/ptmx && test -d /dev/pts && echo x > /dev/null && echo ok", "ok\n"},
		"open files":              {"ulimit -n", "1024\n"},
		"no descriptors are left": {"ls /proc/self/fd | wc -l", "4\n"},
		"no capabilities":         {"unshare -Ur true 2>/dev/null || mount -t tmpfs x /tmp 2>/dev/null || echo none", "none\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, _ := p.inSh(t, i, tt.script); out != tt.want {
				t.Errorf("got %q, want %q", out, tt.want)
			}
		})
	}
	if _, err := os.Stat("/tmp/f"); err == nil {
		t.Error("/tmp is the machine's")
	}
	out, _ := p.inSh(t, p.isolator(t, true), "cat /tmp/f 2>&1 | grep -o 'No such'")
	if out != "No such\n" {
		t.Errorf("another session sees this one's /tmp: %q", out)
	}
}

// TestCellWork is TestWork for namespaces.
func TestCellWork(t *testing.T) {
	for machine, landlock := range map[string]bool{"landlock": true, "no landlock": false} {
		t.Run(machine, func(t *testing.T) {
			p := newPlace(t)
			i := p.isolator(t, landlock)
			for _, k := range tasks {
				t.Run(k.name, func(t *testing.T) {
					for _, program := range strings.Fields(k.needs) {
						if _, err := exec.LookPath(program); err != nil {
							t.Skip(err)
						}
					}
					// This server listens on IPv4 alone: only the broker would let ::1 lead there.
					script, want := strings.ReplaceAll(k.script, "[::1]:", "127.0.0.2:"), k.want
					if out, status := p.in(t, i, []string{"PYTHONUNBUFFERED=1"}, "/bin/sh", "-c", script); status.ExitStatus() != 0 || !strings.Contains(out, want) {
						t.Errorf("%v\n%s\nwant %q", status.ExitStatus(), out, want)
					}
				})
			}
		})
	}
}

// TestCellsShareTheNetwork: with the session, and with nobody else.
func TestCellsShareTheNetwork(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	p := newPlace(t)
	mine, other := p.isolator(t, true), p.isolator(t, true)
	out, server := p.begin(t, mine, nil, "/usr/bin/env", "python3", "-uc", `
import socket
l = socket.create_server(("127.0.0.1", 8123)); print("up")
while True: l.accept()[0].send(b"heard")`)
	must(t, func() error { _, err := io.ReadFull(out, make([]byte, 3)); return err }())
	client := `python3 -c 'import socket; print(socket.create_connection(("127.0.0.1", 8123)).recv(9).decode())' 2>&1 | tail -1`
	if out, _ := p.inSh(t, mine, client); out != "heard\n" {
		t.Errorf("the session's next command: %q", out)
	}
	if out, _ := p.inSh(t, other, client); !strings.Contains(out, "refused") {
		t.Errorf("another session: %q", out)
	}
	must(t, server.Kill())
	<-server.Done()
}

// TestCellKill is TestKillLeavesNobody for namespaces.
func TestCellKill(t *testing.T) {
	p := newPlace(t)
	i := p.isolator(t, false)
	for range 10 {
		_, c := p.begin(t, i, nil, "/bin/sh", "-c", daemons+"echo up > up; sleep 1005")
		p.awaitDaemons(t)
		p.kill(t, c)
		if status := c.Wait(); status.Signal() != unix.SIGKILL {
			t.Errorf("ended by %v", status)
		}
		must(t, os.Remove(filepath.Join(p.ws, "up")))
	}
}

// TestCellOutlastsKill: what could not be killed within the bounds, here because
// nobody of the session can be seen, is killed as soon as it can be.
func TestCellOutlastsKill(t *testing.T) {
	p := newPlace(t)
	i := p.attacked(t)
	c := p.launch(t, i, nil, "/bin/sh", "-c", daemons+"echo up > up; sleep 1005")
	eventually(t, "the daemons did not start", p.isUp)
	procs, err := unix.Dup(int(i.Procs))
	must(t, err)
	defer unix.Close(procs)
	empty, err := os.Open(t.TempDir())
	must(t, err)
	defer empty.Close()
	must(t, unix.Dup3(int(empty.Fd()), int(i.Procs), unix.O_CLOEXEC))
	if err := c.Kill(); err != namespaces.ErrLives {
		t.Errorf("it is said to be killed: %v", err)
	}
	must(t, unix.Dup3(procs, int(i.Procs), unix.O_CLOEXEC))
	within(t, "Done", func() { <-c.Done() })
	if left := p.living(); len(left) > 0 {
		t.Errorf("%v survived", left)
	}
}

// TestCellsLeaveNothing: no process, no descriptor, no mount of the machine's.
func TestCellsLeaveNothing(t *testing.T) {
	p := newPlace(t)
	count := func() (fds, mounts int) {
		entries, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		text, err := os.ReadFile("/proc/self/mountinfo")
		must(t, err)
		return len(entries), strings.Count(string(text), p.ws)
	}
	p.isolator(t, true)
	fds, mounts := count()
	for range 3 {
		i, err := namespaces.New(namespaces.Isolation{Policy: p.policy(), Workspace: p.ws})
		must(t, err)
		var all sync.WaitGroup
		for n := range 100 {
			all.Go(func() {
				if _, status := p.in(t, i, nil, "/bin/sh", "-c", fmt.Sprintf("exit %d", n)); status.ExitStatus() != n {
					t.Errorf("exit %d: %v", n, status)
				}
			})
		}
		out, c := p.begin(t, i, nil, "/bin/sleep", "1000")
		out.Close()
		all.Wait()
		must(t, i.Close())
		<-c.Done()
		if _, err := i.Start(namespaces.Program{}); err == nil {
			t.Error("it is closed")
		}
	}
	f, m := count()
	if f > fds+3 || m != mounts {
		t.Errorf("%d descriptors, then %d; %d mounts, then %d", fds, f, mounts, m)
	}
	if left := p.living(); len(left) > 0 {
		t.Errorf("%v still live", left)
	}
}

func TestCellStartErrors(t *testing.T) {
	p := newPlace(t)
	i := p.isolator(t, true)
	script := filepath.Join(p.ws, "script")
	must(t, os.WriteFile(script, []byte("#!/no/such\n"), 0o755))
	must(t, os.WriteFile(filepath.Join(p.ws, "data"), []byte("\x00\x01"), 0o755))
	for name, tt := range map[string]struct {
		path, dir string
		want      error
	}{
		"no program":     {"/no/such", p.ws, unix.ENOENT},
		"outside":        {filepath.Join(p.outside, "secret"), p.ws, unix.ENOENT},
		"no interpreter": {script, p.ws, unix.ENOENT},
		"a directory":    {p.ws, p.ws, unix.EACCES},
		"no format":      {filepath.Join(p.ws, "data"), p.ws, unix.ENOEXEC},
		"no directory":   {"/bin/true", p.outside, unix.ENOENT},
		"NUL":            {"/bin/tr\x00ue", p.ws, unix.EINVAL},
	} {
		c, err := i.Start(namespaces.Program{Path: tt.path, Argv: []string{"x"}, Dir: tt.dir, Files: [3]uintptr{0, 1, 2}})
		if c != nil || !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	eventually(t, "processes are left", func() bool { // the stage may still be about to end
		left, err := i.Procs.List()
		return len(left) == 0 && err == nil
	})
}
