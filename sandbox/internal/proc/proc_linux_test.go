package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits for a condition to hold, with a bound for a hang only.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// fork starts a shell in a group of its own, without package os knowing.
func fork(script string) (int, error) {
	return syscall.ForkExec("/bin/sh", []string{"sh", "-c", script}, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true}})
}

func isZombie(pid int) func() bool {
	return func() bool { p, ok := Read(pid); return ok && p.Dead && p.Parent == os.Getpid() }
}

// TestStatusIsTheCallers: a child that has ended long ago, while orphans were
// collected, keeps its status for the one who started it.
func TestStatusIsTheCallers(t *testing.T) {
	Adopt()
	held := exec.Command("/bin/sh", "-c", "exit 6") // by a descriptor of package os
	held.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, held.Start())
	pid, err := Start(func() (int, error) { return fork("exit 7") })
	must(t, err)
	eventually(t, "they do not end", func() bool { return isZombie(pid)() && isZombie(held.Process.Pid)() })
	collected := make(chan bool, 1)
	forget := OnReap(func() {
		select {
		case collected <- true:
		default:
		}
	})
	defer forget()
	orphan, err := Start(func() (int, error) { return fork("setsid sh -c 'exit 0' & exit 0") })
	must(t, err)
	_, err = Wait(orphan)
	must(t, err)
	Release(orphan)
	select {
	case <-collected:
	case <-time.After(time.Minute):
		t.Error("no orphan was collected: nothing is proven")
	}
	status, err := Wait(pid)
	if err != nil || status.ExitStatus() != 7 {
		t.Errorf("got %v, %v", status, err)
	}
	Release(pid)
	if err := held.Wait(); err == nil || held.ProcessState.ExitCode() != 6 {
		t.Errorf("got %v", err)
	}
}

// TestKnownBeforeForkReturns: a child that ends before its fork has come back to
// the caller is already the caller's.
func TestKnownBeforeForkReturns(t *testing.T) {
	Adopt()
	pid, err := Start(func() (int, error) {
		pid, err := fork("exit 8")
		must(t, err)
		eventually(t, "it does not end", isZombie(pid))
		done := make(chan bool)
		go func() { done <- take(pid) }() // the reaper sees it now
		select {
		case <-done:
			t.Error("the reaper has decided about a child that is not known yet")
		case <-time.After(50 * time.Millisecond):
		}
		return pid, err
	})
	must(t, err)
	defer Release(pid)
	if status, err := Wait(pid); err != nil || status.ExitStatus() != 8 {
		t.Errorf("got %v, %v", status, err)
	}
}

// TestReleasedIsCollected: what nobody waits for is collected, also when
// somebody else's child hides it.
func TestReleasedIsCollected(t *testing.T) {
	Adopt()
	hiding := exec.Command("/bin/true")
	must(t, hiding.Start())
	defer hiding.Wait()
	pid, err := Start(func() (int, error) { return fork("exit 0") })
	must(t, err)
	eventually(t, "it does not end", isZombie(pid))
	Release(pid)
	lookSoon()
	eventually(t, "it was not collected", func() bool { _, ok := Read(pid); return !ok })
}

func TestSignalSparesTheSystem(t *testing.T) {
	for _, pid := range []int{-1, 0, 1} {
		if err := Signal(pid, 0); err != unix.EINVAL {
			t.Errorf("%d: got %v", pid, err)
		}
	}
	must(t, Signal(os.Getpid(), 0))
}

// signalling is source that sends a signal by number.
var signalling = regexp.MustCompile(`\b(unix|syscall)\.(Kill|Tgkill|PidfdSendSignal)\(|SYS_(KILL|TKILL|TGKILL|RT_SIGQUEUEINFO|RT_TGSIGQUEUEINFO)\b`)

// mayBeSignalling are the lines that do not go through Signal, by file, with why.
var mayBeSignalling = map[string]string{
	"sandbox/internal/proc/signal_unix.go":             "Signal itself",
	"sandbox/internal/confine/watcher_linux.go":        "a watcher's kill(-1), after its scope was proven, and its requests, which stay in its domain",
	"sandbox/internal/confine/watcher_linux_amd64.s":   "the same",
	"sandbox/internal/confine/watcher_linux_arm64.s":   "the same",
	"sandbox/internal/confine/filter_linux.go":         "rules, not calls",
	"sandbox/internal/confine/isolatedfilter_linux.go": "rules, not calls",
	"sandbox/internal/confine/question_linux.go":       "names of calls to judge",
	"sandbox/internal/confine/brokersignal_linux.go":   "a signal by pidfd, which cannot be mistaken",
	"sandbox/internal/confine/selftest_linux.go":       "a probe with signal 0",
	"sandbox/internal/confine/selftestcell_linux.go":   "a probe with signal 0",
	"sandbox/internal/confine/watcherend_linux.go":     "a question by signal 0 whether a thread is the server's",
	"sandbox/internal/confine/keeper_linux.go":         "a keeper's, which stays in its namespaces",
	"sandbox/internal/confine/cellrun_linux.go":        "a guard's, to the init that the kernel named to it",
}

// TestOnePlaceSignals walks the source: no signal leaves this program but through Signal.
func TestOnePlaceSignals(t *testing.T) {
	top := filepath.Join("..", "..", "..")
	files := 0
	err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		ext := filepath.Ext(path)
		if err != nil || d.IsDir() || ext != ".go" && ext != ".s" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		name, _ := filepath.Rel(top, path)
		text, err := os.ReadFile(path)
		if found := signalling.Find(text); found != nil && mayBeSignalling[filepath.ToSlash(name)] == "" {
			t.Errorf("%s signals by %q: use proc.Signal", name, found)
		}
		return err
	})
	must(t, err)
	if files < 100 {
		t.Errorf("only %d files were looked at", files)
	}
}
