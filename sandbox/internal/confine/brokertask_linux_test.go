//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

func init() { probeTable["late"] = escape{try: callLate} }

// A lateCall names another task by its number, and is judged before that number
// becomes somebody else's.
type lateCall struct {
	nr   int32
	make func(task int) error
	seen func(pid int) string // what it changes
}

var lateCalls = map[string]lateCall{
	"prlimit": {unix.SYS_PRLIMIT64, func(task int) error {
		return syscallErr(unix.SYS_PRLIMIT64, uintptr(task), unix.RLIMIT_NOFILE, ptr(&unix.Rlimit{Cur: 7, Max: 7}))
	}, func(pid int) string {
		var l unix.Rlimit
		err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &l)
		return fmt.Sprint(l, err)
	}},
	"setpriority": {unix.SYS_SETPRIORITY, func(task int) error {
		return syscallErr(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, uintptr(task), 17)
	}, func(pid int) string {
		nice, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
		return fmt.Sprint(nice, err)
	}},
	"sched_setscheduler": {unix.SYS_SCHED_SETSCHEDULER, func(task int) error {
		return syscallErr(unix.SYS_SCHED_SETSCHEDULER, uintptr(task), unix.SCHED_IDLE, ptr(new(int32)))
	}, func(pid int) string {
		a, err := unix.SchedGetAttr(pid, 0)
		return fmt.Sprint(a, err)
	}},
}

// callLate is a probe: it makes the call for a thread of its own that ends as soon
// as the call has been judged.
func callLate() error {
	started := make(chan int)
	go func() {
		runtime.LockOSThread() // it ends with its thread
		started <- unix.Gettid()
		for !fileExists("judged") {
			time.Sleep(time.Millisecond)
		}
	}()
	task := <-started
	if err := os.WriteFile("task", []byte(strconv.Itoa(task)), 0o600); err != nil {
		return err
	}
	err := lateCalls[os.Getenv("PROBE_WAY")].make(task)
	fmt.Println("answer:", err)
	return nil
}

func fileExists(path string) bool { _, err := os.Stat(path); return err == nil }

// TestLateCalls: a call that names a thread of the command's own reaches nobody
// outside, when the number passes to a process outside after the call was judged.
func TestLateCalls(t *testing.T) {
	if !withOwnNumbers(t) {
		return
	}
	if unix.Access(lastGiven, unix.W_OK) != nil {
		t.Skip("nobody may say here which number comes next")
	}
	exe, err := os.Executable()
	must(t, err)
	for name, call := range lateCalls {
		t.Run(name, func(t *testing.T) {
			own := call.seen(bystander(t, t.TempDir()))
			try := func(t *testing.T, judge func(*broker.Question) broker.Answer) string {
				p := newPlace(t)
				var victim atomic.Int32
				handled := broker.Handlers[call.nr]
				t.Cleanup(func() { broker.Handlers[call.nr] = handled })
				broker.Handlers[call.nr] = func(q *broker.Question) broker.Answer {
					a := judge(q)
					if victim.Store(int32(p.successor(t))); victim.Load() == 0 {
						return broker.Fail(unix.EINTR) // whose the number is now nobody knows
					}
					return a
				}
				c := confiner(t, p.policy(), kernel.Missing{})
				r := p.do(t, c, []string{probeVar + "=late", "PROBE_WAY=" + name}, exe)
				if r.err != nil || victim.Load() == 0 {
					t.Fatalf("%v %s, victim %d", r.err, r.out, victim.Load())
				}
				t.Log(strings.TrimSpace(r.out))
				return call.seen(int(victim.Load()))
			}
			t.Run("judged and let through", func(t *testing.T) {
				if try(t, func(*broker.Question) broker.Answer { return broker.Answer{Run: true} }) == own {
					t.Error("it does not reach the process outside: the test proves nothing")
				}
			})
			t.Run("as it is", func(t *testing.T) {
				if got := try(t, broker.Handlers[call.nr]); got != own {
					t.Errorf("a process outside has %s, had %s", got, own)
				}
			})
		})
	}
}

// lastGiven is where root says which number comes next.
const lastGiven = "/proc/sys/kernel/ns_last_pid"

// successor has the probe's thread end and starts a process outside that gets its
// number; 0 when that was not to be had.
func (p place) successor(t *testing.T) int {
	text, _ := os.ReadFile(filepath.Join(p.ws, "task"))
	task, _ := strconv.Atoi(string(text))
	_ = os.WriteFile(filepath.Join(p.ws, "judged"), nil, 0o600)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if unix.Kill(task, 0) != unix.ESRCH {
			continue
		}
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		started := make(chan error)
		go kernel.OnThrowawayThread(func() { // root's other processes are safe from a command, which has fewer capabilities
			err := os.WriteFile(lastGiven, []byte(strconv.Itoa(task-1)), 0)
			if err == nil {
				err = kernel.DropCaps()
			}
			if err == nil {
				err = cmd.Start()
			}
			started <- err
		})
		if <-started != nil {
			continue
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		if cmd.Process.Pid == task {
			return task
		}
		_ = cmd.Process.Kill() // somebody else was faster
	}
	return 0
}

// TestSchedulingOfOwn: commands schedule their own threads and processes, and none
// above what they may.
func TestSchedulingOfOwn(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	const script = `python3 -c '
import os, resource, subprocess, threading, time
t = threading.Thread(target=time.sleep, args=(100,), daemon=True); t.start()
child = subprocess.Popen(["sleep", "100"])
one = {min(os.sched_getaffinity(0))}
for task in (t.native_id, child.pid, os.getpid(), 0):
    os.sched_setaffinity(task, one); assert os.sched_getaffinity(task) == one
    os.setpriority(os.PRIO_PROCESS, task, 7); assert os.getpriority(os.PRIO_PROCESS, task) == 7
    os.sched_setscheduler(task, os.SCHED_BATCH, os.sched_param(0)); assert os.sched_getscheduler(task) == os.SCHED_BATCH
    for above in (lambda: os.setpriority(os.PRIO_PROCESS, task, -5), lambda: os.sched_setscheduler(task, os.SCHED_FIFO, os.sched_param(1))):
        try: above(); raise SystemExit("above what it may")
        except PermissionError: pass
resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE, (99, 99)); assert resource.prlimit(0, resource.RLIMIT_NOFILE) == (99, 99)
assert resource.prlimit(child.pid, resource.RLIMIT_NOFILE)[0] > 99
child.kill(); print("scheduled"); os._exit(0)
'`
	p := newPlace(t)
	for _, without := range []kernel.Missing{{}, lesser["no duplicates"]} {
		c := confiner(t, p.policy(), without)
		if !c.Kernel.Scoped() || !c.Kernel.Broker {
			t.Skip("this kernel does not tell whose a process is")
		}
		if r := p.sh(t, c, script); r.err != nil || !strings.Contains(r.out, "scheduled") {
			t.Errorf("%v %s", r.err, r.out)
		}
	}
	// In namespaces a filter judges, which knows no number of a process's own but 0.
	unlimited := regexp.MustCompile(`(?m)^resource\..*\n|^assert resource.*\n`).ReplaceAllString(script, "")
	if out, status := p.inSh(t, p.isolator(t, true), unlimited); status.ExitStatus() != 0 || !strings.Contains(out, "scheduled") {
		t.Errorf("%v %s", status, out)
	}
}
