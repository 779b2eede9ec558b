//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// watcherAttacks are what a command tries on a watcher, its own or another's.
var watcherAttacks = map[string]func(pid int, sig syscall.Signal) error{
	"kill":  func(pid int, sig syscall.Signal) error { return unix.Kill(pid, sig) },
	"group": func(pid int, sig syscall.Signal) error { return unix.Kill(-pid, sig) },
	"tkill": func(pid int, sig syscall.Signal) error {
		return syscallErr(unix.SYS_TKILL, uintptr(pid), uintptr(sig))
	},
	"tgkill": func(pid int, sig syscall.Signal) error { return unix.Tgkill(pid, pid, sig) },
	"pidfd":  pidfdSignal,
	"prlimit": func(pid int, _ syscall.Signal) error {
		return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{}, nil)
	},
	"setpriority": func(pid int, _ syscall.Signal) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 19) },
	"affinity": func(pid int, _ syscall.Signal) error {
		set := new(unix.CPUSet)
		if err := unix.SchedGetaffinity(0, set); err != nil {
			return err
		}
		return unix.SchedSetaffinity(pid, set)
	},
	"ioprio": func(pid int, _ syscall.Signal) error {
		const process, idle = 1, 3 << 13
		return syscallErr(unix.SYS_IOPRIO_SET, process, uintptr(pid), idle)
	},
}

// attackWatchers is a probe: it does all that to every watcher of its server,
// tells in the file "attacked" what came of it, and stays.
func attackWatchers() error {
	sig := syscall.Signal(number("PROBE_SIGNAL"))
	var report []string
	for _, p := range proc.All() {
		if p.Parent != number("PROBE_SERVER") || !isWatcher(p.PID) {
			continue
		}
		report = append(report, fmt.Sprint("watcher ", p.PID))
		for name, attack := range watcherAttacks {
			if err := attack(p.PID, sig); err != unix.EPERM {
				report = append(report, fmt.Sprintf("%s of %d: %v", name, p.PID, err))
			}
		}
	}
	if err := os.WriteFile("attacking", []byte(strings.Join(report, "\n")), 0o600); err != nil {
		return err
	}
	if err := os.Rename("attacking", "attacked"); err != nil {
		return err
	}
	select {}
}

func init() { probeTable["watchers"] = escape{try: attackWatchers} }

// evader is a daemon that nothing but its domain ties to its command.
const evader = `(env -i setsid sleep 1000 &) ; `

// launchConfined starts a script in the place, which says when it is under way.
func (p place) launchConfined(t *testing.T, c *threads.Confiner, env []string, script string) (*threads.Domain, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", evader+script)
	cmd.Dir, cmd.Env = p.ws, append(os.Environ(), env...)
	d, err := c.Start(starting(cmd))
	must(t, err)
	go func() { _ = wait(cmd) }()
	eventually(t, "the daemon did not start", func() bool {
		for _, pid := range p.living() {
			if proc.Name(pid) == "sleep" {
				return true
			}
		}
		return false
	})
	return d, cmd
}

// ends fails unless the domain and all that runs in the place end. It waits long:
// giving a watcher up takes its time.
func (p place) ends(t *testing.T, d *threads.Domain) {
	t.Helper()
	select {
	case <-d.Done():
	case <-time.After(2 * time.Minute):
		t.Fatal("the domain still has processes")
	}
	eventually(t, "processes survived", func() bool { return len(p.living()) == 0 })
}

// kills has Kill end the domain, which must return.
func (p place) kills(t *testing.T, d *threads.Domain) {
	t.Helper()
	killed := make(chan error, 1)
	go func() { killed <- d.Kill() }()
	select {
	case err := <-killed:
		must(t, err)
	case <-time.After(2 * time.Minute):
		t.Fatal("Kill does not return")
	}
	p.ends(t, d)
}

// TestWatcherIsOutOfReach: a command can neither stop, end nor slow any watcher
// down, its own or another command's, and is killed with all that it left.
func TestWatcherIsOutOfReach(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			p := newPlace(t)
			a, b := p.beside(t, "a"), p.beside(t, "b")
			c := confiner(t, p.policy(), kernel.Missing{})
			other, _ := b.launchConfined(t, c, nil, "exec sleep 1001")
			if other.Watcher == nil {
				t.Skip("signals are not scoped")
			}
			d, _ := a.launchConfined(t, c, []string{probeVar + "=watchers", "PROBE_SERVER=" + strconv.Itoa(os.Getpid()),
				"PROBE_SIGNAL=" + strconv.Itoa(int(sig))}, "exec "+exe)
			var report []byte
			eventually(t, "the probe does not report", func() bool {
				report, err = os.ReadFile(filepath.Join(a.ws, "attacked"))
				return err == nil
			})
			for _, w := range []*threads.Watcher{d.Watcher, other.Watcher} {
				if !strings.Contains(string(report), fmt.Sprint("watcher ", w.PID)) {
					t.Errorf("the probe did not see the watcher %d", w.PID)
				}
			}
			if strings.Contains(string(report), ":") {
				t.Errorf("not refused:\n%s", report)
			}
			a.kills(t, d)
			if !other.Alive() || len(b.living()) != 2 {
				t.Error("the other command did not go on")
			}
			b.kills(t, other)
		})
	}
}

// TestWatcherLost: whatever else ends a watcher ends its domain, daemons
// included, and no other.
func TestWatcherLost(t *testing.T) {
	for name, without := range map[string]kernel.Missing{"broker": {}, "no broker": {Broker: true}} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			a, b := p.beside(t, "a"), p.beside(t, "b")
			c, stranger := confiner(t, p.policy(), without), confiner(t, p.policy(), without)
			d, _ := a.launchConfined(t, c, nil, "exec sleep 1001")
			if d.Watcher == nil {
				t.Skip("signals are not scoped")
			}
			other, _ := b.launchConfined(t, c, nil, "exec sleep 1001")
			foreign, _ := b.launchConfined(t, stranger, nil, "exec sleep 1001")
			must(t, unix.Kill(d.Watcher.PID, unix.SIGKILL))
			a.ends(t, d)
			if !other.Alive() || !foreign.Alive() || len(b.living()) != 4 {
				t.Error("another command did not go on")
			}
			must(t, other.Kill())
			b.kills(t, foreign)
		})
	}
}

// TestWatcherStopped: a watcher that was stopped is let go on, and one that stands
// still for good is done without.
func TestWatcherStopped(t *testing.T) {
	stop := func(pid int) error { return unix.Kill(pid, unix.SIGSTOP) }
	for name, halt := range map[string]func(int) error{"for once": stop, "for good": unix.PtraceAttach} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread() // a tracer must live on
			defer runtime.UnlockOSThread()
			p := newPlace(t)
			c := confiner(t, p.policy(), kernel.Missing{})
			d, cmd := p.launchConfined(t, c, nil, "exec sleep 1001")
			if d.Watcher == nil {
				t.Skip("signals are not scoped")
			}
			must(t, halt(d.Watcher.PID))
			eventually(t, "the watcher does not stand still", func() bool {
				w, _ := proc.Read(d.Watcher.PID)
				return w.Stopped
			})
			if has := d.Watcher.Has(cmd.Process.Pid); has != (name == "for once") {
				t.Errorf("its answer is %v", has)
			}
			p.kills(t, d)
		})
	}
}
