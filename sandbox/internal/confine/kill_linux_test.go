//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// daemons starts every kind of process that is hard to get hold of.
const daemons = `
echo 'sleep 0.01; setsid sh hop.sh & exit' > hop.sh
setsid sleep 1000 &
(setsid sh -c 'sleep 1001 & setsid sleep 1002' &)
(trap '' TERM HUP INT; sleep 1003) &
(setsid sh -c '(sleep 1004 &) ; exit' &)
setsid sh hop.sh &
sh -c 'trap "" TERM; while :; do sleep 0.01; done' &
`

// living lists the processes that run in the workspace.
func (p place) living() (pids []int) {
	for _, pr := range proc.All() {
		dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pr.PID))
		if err == nil && dir == p.ws && !pr.Dead {
			pids = append(pids, pr.PID)
		}
	}
	return pids
}

func (p place) isUp() bool { _, err := os.Stat(filepath.Join(p.ws, "up")); return err == nil }

// eventually waits for a condition to hold, with a bound for a hang only.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 6000 { // a minute: others may have the machine
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal(what)
}

// awaitDaemons waits until so many run that they prove something.
func (p place) awaitDaemons(t *testing.T) {
	t.Helper()
	eventually(t, "the daemons did not start", func() bool { return p.isUp() && len(p.living()) >= 6 })
}

func TestKillLeavesNobody(t *testing.T) {
	for _, tt := range []struct {
		name    string
		without kernel.Missing
		rounds  int
	}{{"scope", kernel.Missing{}, 25}, {"descent", kernel.Missing{LandlockAbove: 5}, 5}, {"no broker", kernel.Missing{Broker: true}, 3}} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			c := confiner(t, p.policy(), tt.without)
			if !testlevel.All() {
				tt.rounds = 3
			}
			for range tt.rounds {
				cmd := exec.Command("/bin/sh", "-c", daemons+"echo up > up; sleep 1005")
				cmd.Dir = p.ws
				d, err := c.Start(starting(cmd))
				must(t, err)
				p.awaitDaemons(t)
				must(t, d.Kill())
				_ = wait(cmd)
				waitDone(t, d)
				eventually(t, "processes survived", func() bool { return len(p.living()) == 0 })
				must(t, os.Remove(filepath.Join(p.ws, "up")))
			}
		})
	}
}

// TestGroupKillIsNotEnough proves that the daemons above are hard to kill.
func TestGroupKillIsNotEnough(t *testing.T) {
	p := newPlace(t)
	c := confiner(t, p.policy(), kernel.Missing{})
	cmd := exec.Command("/bin/sh", "-c", daemons+"sleep 1005")
	cmd.Dir = p.ws
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	d, err := c.Start(starting(cmd))
	must(t, err)
	time.Sleep(100 * time.Millisecond)
	must(t, unix.Kill(-cmd.Process.Pid, unix.SIGKILL))
	_ = wait(cmd)
	time.Sleep(50 * time.Millisecond)
	if len(p.living()) == 0 {
		t.Error("killing the group killed all: the kill test proves nothing")
	}
	if !d.Alive() {
		t.Error("the domain does not know of its survivors")
	}
	must(t, d.Kill())
	waitDone(t, d)
}

func TestSignalReachesTheDomainOnly(t *testing.T) {
	p := newPlace(t)
	c := confiner(t, p.policy(), kernel.Missing{})
	one, two := exec.Command("sleep", "1000"), exec.Command("sleep", "1000")
	a, err := c.Start(starting(one))
	must(t, err)
	b, err := c.Start(starting(two))
	must(t, err)
	must(t, a.Signal(unix.SIGTERM))
	if err := wait(one); err == nil {
		t.Error("the command was not signalled")
	}
	waitDone(t, a)
	if !b.Alive() || unix.Kill(two.Process.Pid, 0) != nil {
		t.Error("another command was")
	}
	must(t, b.Kill())
	_ = wait(two)
}

// beServer starts daemons, says so, and waits to be killed.
func beServer(dir string) {
	p := place{ws: dir}
	if os.Getenv(crowdVar) != "" {
		beBombedServer(p)
	}
	if os.Getenv(isolatingVar) != "" {
		beIsolatingServer(p)
	}
	c, err := threads.New(p.policy(), threads.Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	cmd := exec.Command("/bin/sh", "-c", daemons+"echo up > up; sleep 1005")
	cmd.Dir = dir
	if _, err := c.Start(starting(cmd)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_ = wait(cmd)
	os.Exit(1)
}

// ends are the ways in which a server dies, as victims of SIGKILL: alone; with
// its process group; with all that is called like it (pkill -9 NAME); with all
// that shares its memory (the kernel, when memory has run out).
var ends = map[string]func(server int) []int{
	"alone": func(server int) []int { return []int{server} },
	"group": func(server int) []int { return []int{-server} },
	"by name": func(server int) []int {
		return kin(server, func(pid int) bool {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			return proc.Name(pid) == proc.Name(server) || strings.Contains(string(line), filepath.Base(os.Args[0]))
		})
	},
	"by memory": func(server int) []int {
		const sameMemory = 1 // KCMP_VM
		return kin(server, func(pid int) bool {
			same, _, e := unix.Syscall6(unix.SYS_KCMP, uintptr(server), uintptr(pid), sameMemory, 0, 0, 0)
			return e == 0 && same == 0
		})
	},
}

// kin are the processes descended from the server for which is holds, and itself,
// last: those who are to outlive it must not get the time to act.
func kin(server int, is func(pid int) bool) (pids []int) {
	for _, p := range proc.Family(proc.All(), func(p proc.Process) bool { return p.Parent == server }) {
		if is(p.PID) {
			pids = append(pids, p.PID)
		}
	}
	return append(pids, server)
}

// TestServerKilled: the processes of a server that dies by SIGKILL die with it.
func TestServerKilled(t *testing.T) {
	if !kernel.Probe().Scoped() {
		t.Skip("signals are not scoped: the watchdog of package sandbox ends what it finds, see e2e/kernels")
	}
	for name, victims := range ends {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			exe, err := os.Executable()
			must(t, err)
			server := exec.Command(exe)
			server.Env = append(os.Environ(), serverVar+"="+p.ws)
			server.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
			must(t, server.Start())
			p.awaitDaemons(t)
			for _, pid := range victims(server.Process.Pid) {
				_ = unix.Kill(pid, unix.SIGKILL) // some may have ended with it
			}
			_ = server.Wait()
			eventually(t, "processes survived their server", func() bool { return len(p.living()) == 0 })
		})
	}
}

// TestCommandsGoFirst: when memory runs out the system ends commands, all of
// them, and neither the server nor what watches over them.
func TestCommandsGoFirst(t *testing.T) {
	p := newPlace(t)
	c := confiner(t, p.policy(), kernel.Missing{})
	own := score(t, os.Getpid())
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			cmd := exec.Command("/bin/sh", "-c", "cat /proc/self/oom_score_adj; (setsid cat /proc/self/oom_score_adj); echo 0 > /proc/self/oom_score_adj")
			var out strings.Builder
			cmd.Stdout = &out
			if err := runIn(c, cmd); err == nil {
				t.Error("it could make itself last")
			}
			if out.String() != "1000\n1000\n" {
				t.Errorf("a command has %q", out.String())
			}
		})
	}
	all.Wait()
	eventually(t, "there is no watcher", func() bool {
		return slices.ContainsFunc(kin(os.Getpid(), func(int) bool { return true }), isWatcher)
	})
	for _, pid := range kin(os.Getpid(), isWatcher) {
		if got := score(t, pid); got != own {
			t.Errorf("process %d has %q, want %q", pid, got, own)
		}
	}
}

func isWatcher(pid int) bool { return proc.Name(pid) == threads.WatcherName }

func score(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
	must(t, err)
	return strings.TrimSpace(string(text))
}

// TestSurvivors: what a command leaves running goes on, is served by its broker,
// can be signalled by a later command, and ends the domain when it ends.
func TestSurvivors(t *testing.T) {
	p := newPlace(t)
	c := confiner(t, p.policy(), kernel.Missing{})
	first := p.sh(t, c, `(setsid sh -c 'echo $$ > pid; while :; do sleep 0.01; chmod 600 pid || exit; done' &) ; sleep 0.3; exit 0`)
	if first.err != nil && first.err != exec.ErrWaitDelay {
		t.Fatal(first.err, first.out)
	}
	if !first.domain.Alive() {
		t.Fatal("the domain ended with its leader")
	}
	second := p.sh(t, c, `kill -0 $(cat pid) && kill -TERM $(cat pid)`)
	if second.err != nil {
		t.Fatal("a later command cannot signal it:", second.out)
	}
	waitDone(t, first.domain)
	waitDone(t, second.domain)
}

// TestPidfdSignals: signals by descriptor arrive, though no command sends one itself.
func TestPidfdSignals(t *testing.T) {
	p := newPlace(t)
	exe, err := os.Executable()
	must(t, err)
	for name, without := range map[string]kernel.Missing{"here": {}, "landlock 5": {LandlockAbove: 5}} {
		if r := p.do(t, confiner(t, p.policy(), without), []string{probeVar + "=pidfd-own"}, exe); r.err != nil {
			t.Errorf("%s: %v %s", name, r.err, r.out)
		}
	}
}

func TestCloseKillsAll(t *testing.T) {
	p := newPlace(t)
	c, err := threads.New(p.policy(), threads.Options{})
	must(t, err)
	r := p.sh(t, c, daemons+"exit 0")
	if len(p.living()) == 0 {
		t.Fatal("nothing to kill")
	}
	must(t, c.Close())
	waitDone(t, r.domain)
	eventually(t, "processes survived", func() bool { return len(p.living()) == 0 })
	if _, err := c.Start(starting(exec.Command("true"))); err == nil {
		t.Error("a closed confiner starts commands")
	}
}

// TestOrphansAreReaped: processes whose parents ended leave no zombies behind.
func TestOrphansAreReaped(t *testing.T) {
	p := newPlace(t)
	c := confiner(t, p.policy(), kernel.Missing{})
	r := p.sh(t, c, `(setsid sh -c 'sleep 0.1' &); exit 0`)
	must(t, r.err)
	waitDone(t, r.domain)
	eventually(t, "a zombie stayed", func() bool { return countChildren(true) == 0 })
}

func countChildren(zombies bool) (n int) {
	for _, p := range proc.All() {
		if p.Parent == os.Getpid() && (p.Dead || !zombies) {
			n++
		}
	}
	return n
}

// confinedThreads counts the threads of this process under a filter of ours.
func confinedThreads(t *testing.T) (n int) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	must(t, err)
	free := proc.StatusField(os.Getpid(), "Seccomp_filters")
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name())
		if filters := proc.StatusField(tid, "Seccomp_filters"); filters != "" && filters != free {
			n++
		}
	}
	return n
}

func openFDs(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(fds)
}

// TestThousands runs 3,000 commands, a hundred at a time, and looks for what
// stayed behind.
func TestThousands(t *testing.T) {
	p := newPlace(t)
	warm, err := threads.New(p.policy(), threads.Options{})
	must(t, err)
	must(t, runIn(warm, exec.Command("/bin/true"))) // the runtime opens its own descriptors once
	must(t, warm.Close())
	before := openFDs(t)
	c, err := threads.New(p.policy(), threads.Options{})
	must(t, err)
	const workers, each = 100, 30
	errs := make(chan error, workers)
	for range workers {
		go func() {
			for range each {
				if err := runIn(c, exec.Command("/bin/true")); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range workers {
		must(t, <-errs)
	}
	eventually(t, "domains stayed", func() bool { return len(c.Live()) == 0 })
	eventually(t, "no spare thread is confined: the count below proves nothing", func() bool { return confinedThreads(t) > 0 })
	must(t, c.Close())
	eventually(t, "threads stayed confined", func() bool { return confinedThreads(t) == 0 })
	eventually(t, "descriptors leaked", func() bool { return openFDs(t) <= before })
	eventually(t, "children stayed", func() bool { return countChildren(false) == 0 })
}
