package proc

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
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
	select {
	case <-collected:
	case <-time.After(time.Minute):
		t.Error("no orphan was collected: nothing is proven")
	}
	status, err := Wait(pid)
	if err != nil || status.ExitStatus() != 7 {
		t.Errorf("got %v, %v", status, err)
	}
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

// TestCollectedIsForgotten: an id says nothing about who got it later.
func TestCollectedIsForgotten(t *testing.T) {
	pid, err := Start(func() (int, error) { return fork("exit 9") })
	must(t, err)
	if !Known(pid) {
		t.Error("a child that nobody has collected is not known")
	}
	if status, err := Wait(pid); err != nil || status.ExitStatus() != 9 {
		t.Errorf("got %v, %v", status, err)
	}
	if Known(pid) {
		t.Error("a collected child is known")
	}
	if _, err := Wait(pid); err != unix.ECHILD {
		t.Errorf("it can be collected twice: %v", err)
	}
}

// TestReaperLooksAgain: what was somebody's when it ended, and is nobody's later,
// is collected although no signal tells of the change.
func TestReaperLooksAgain(t *testing.T) {
	testlevel.NotQuick(t, "waits for looks that do not come")
	Adopt()
	pid, err := Start(func() (int, error) { return fork("exit 0") })
	must(t, err)
	eventually(t, "it does not end", isZombie(pid))
	fd, err := unix.PidfdOpen(pid, 0) // as package os holds its children
	must(t, err)
	Release(pid)
	lookSoon()
	time.Sleep(2 * rest) // enough for every look but those that come again and again
	if !isZombie(pid)() {
		t.Error("it was collected although somebody holds it")
	}
	must(t, unix.Close(fd))
	eventually(t, "it was not collected", func() bool { _, ok := Read(pid); return !ok })
}

// TestFilteredChildIsItsStarters: a child of package os that has filters of its own, as
// browsers and the clients of container engines have, is no command of ours.
func TestFilteredChildIsItsStarters(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	Adopt()
	held := exec.Command(exe)
	held.Env = append(os.Environ(), filteredVar+"=1")
	held.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := held.StdoutPipe()
	must(t, err)
	must(t, held.Start())
	line := make([]byte, 1)
	_, err = io.ReadFull(out, line)
	must(t, err)
	eventually(t, "it does not end", isZombie(held.Process.Pid))
	if !Confined(held.Process.Pid) {
		t.Skip("this kernel does not count filters")
	}
	for range 20 { // the reaper looks
		lookSoon()
		time.Sleep(time.Millisecond)
	}
	if err := held.Wait(); held.ProcessState == nil || held.ProcessState.ExitCode() != filteredStatus {
		t.Errorf("got %v", err)
	}
}

// filteredVar makes the test binary be a child that ends under a filter.
const (
	filteredVar    = "PROC_TEST_FILTERED"
	filteredStatus = 9
)

func endFiltered() {
	allow := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000}} // SECCOMP_RET_ALLOW
	program := unix.SockFprog{Len: 1, Filter: &allow[0]}
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	const everyThread = 1 // SECCOMP_FILTER_FLAG_TSYNC
	_, _, _ = unix.Syscall(unix.SYS_SECCOMP, 1, everyThread, uintptr(unsafe.Pointer(&program)))
	fmt.Print("f")
	os.Exit(filteredStatus)
}

// reuseVar makes the test binary be the first process of a namespace.
const reuseVar = "PROC_TEST_REUSE"

func TestMain(m *testing.M) {
	if os.Getenv(filteredVar) != "" {
		endFiltered()
	}
	if os.Getenv(reuseVar) != "" {
		if err := reuse(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// reuse has an orphan get the id of a child that was collected before.
func reuse() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("no ids: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("no ids: %w", err)
	}
	Adopt()
	pid, err := Start(func() (int, error) { return fork("exit 0") })
	if err != nil {
		return err
	}
	if _, err := Wait(pid); err != nil {
		return err
	}
	for range 100 { // a new thread of ours may take the id
		parent := exec.Command("/bin/sh", "-c", "read go; setsid sleep 0.1 >&- & echo $!")
		parent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		in, _ := parent.StdinPipe()
		out, _ := parent.StdoutPipe()
		if err := parent.Start(); err != nil {
			return err
		}
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
			return fmt.Errorf("no ids: %w", err)
		}
		_, _ = io.WriteString(in, "go\n")
		said, _ := io.ReadAll(out)
		if err := parent.Wait(); err != nil {
			return err
		}
		if strings.TrimSpace(string(said)) != strconv.Itoa(pid) {
			continue
		}
		for range 6000 {
			if _, ok := Read(pid); !ok {
				return nil
			}
			time.Sleep(10 * time.Millisecond)
		}
		return fmt.Errorf("orphan %d was not collected", pid)
	}
	return fmt.Errorf("no ids: none got %d", pid)
}

// TestOrphanWithAnOldID: an orphan is collected also under the id that a child had.
func TestOrphanWithAnOldID(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	first := exec.Command(exe)
	first.Env = append(os.Environ(), reuseVar+"=1")
	first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	out, err := first.CombinedOutput()
	if strings.Contains(string(out), "no ids:") || err != nil && os.Getuid() != 0 {
		t.Skipf("ids cannot be given here: %v %s", err, out)
	}
	if err != nil {
		t.Error(err, string(out))
	}
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
	"sandbox/internal/proc/signal_unix.go":                   "Signal itself",
	"sandbox/internal/confine/threads/watcher_linux.go":      "a watcher's kill(-1), after its scope was proven, and its requests, which stay in its domain",
	"sandbox/internal/confine/threads/watcher_linux_amd64.s": "the same",
	"sandbox/internal/confine/threads/watcher_linux_arm64.s": "the same",
	"sandbox/internal/confine/seccomp/filter_linux.go":       "rules, not calls",
	"sandbox/internal/confine/seccomp/isolated_linux.go":     "rules, not calls",
	"sandbox/internal/confine/broker/question_linux.go":      "names of calls to judge",
	"sandbox/internal/confine/broker/signal_linux.go":        "a signal by pidfd, which cannot be mistaken",
	"sandbox/internal/confine/selftest/probes_linux.go":      "a probe with signal 0",
	"sandbox/internal/confine/namespaces/selftest_linux.go":  "a probe with signal 0",
	"sandbox/internal/confine/threads/watcherend_linux.go":   "a question by signal 0 whether a thread is the server's",
	"sandbox/internal/confine/broker/task_linux.go":          "a question by signal 0 whether a thread is still the asker's",
	"sandbox/internal/confine/namespaces/keeper_linux.go":    "a keeper's, which stays in its namespaces",
	"sandbox/internal/confine/namespaces/cellrun_linux.go":   "a guard's, to the init that the kernel named to it",
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
