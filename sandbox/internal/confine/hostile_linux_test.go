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
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// attacks go for one thread of another process, by its id.
var attacks = map[string]func(pid, tid int) error{
	"kill":       func(_, tid int) error { return unix.Kill(tid, unix.SIGCONT) },
	"tkill":      func(_, tid int) error { return syscallErr(unix.SYS_TKILL, uintptr(tid), uintptr(unix.SIGCONT)) },
	"tgkill":     func(pid, tid int) error { return unix.Tgkill(pid, tid, unix.SIGCONT) },
	"queue":      func(_, tid int) error { return queueSignal(unix.SYS_RT_SIGQUEUEINFO, tid) },
	"thread-fd":  threadPidfd,
	"seize":      func(_, tid int) error { return ptraceSeize(tid) },
	"mem":        func(pid, tid int) error { return openProc(pid, tid, "mem", unix.O_RDWR) },
	"environ":    func(pid, tid int) error { return openProc(pid, tid, "environ", unix.O_RDONLY) },
	"limits":     func(_, tid int) error { return unix.Prlimit(tid, unix.RLIMIT_CORE, nil, new(unix.Rlimit)) },
	"scheduling": func(_, tid int) error { return unix.Setpriority(unix.PRIO_PROCESS, tid, 1) },
	"signal-io":  func(_, tid int) error { return ownSocket(tid) },
}

func queueSignal(nr uintptr, tid int) error {
	info := [32]int32{0, 0, -1} // si_code SI_QUEUE
	info[0] = int32(unix.SIGCONT)
	return syscallErr(nr, uintptr(tid), uintptr(unix.SIGCONT), ptr(&info))
}

func threadPidfd(_, tid int) error {
	fd, err := unix.PidfdOpen(tid, unix.O_EXCL /* PIDFD_THREAD */)
	if err != nil {
		return err
	}
	return unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
}

func openProc(pid, tid int, name string, flags int) error {
	return withFD(fmt.Sprintf("/proc/%d/task/%d/%s", pid, tid, name), flags, func(int) error { return nil })
}

// ownSocket makes another task the one that is told of a socket's input.
func ownSocket(tid int) error {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	_, err = unix.FcntlInt(uintptr(p[0]), unix.F_SETOWN, tid)
	return err
}

// attackAll is the attacker: it tries everything on every thread of a process
// and tells what worked.
func attackAll() error {
	dir := fmt.Sprintf("/proc/%s/task", os.Getenv("PROBE_TARGET"))
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	worked := map[string]bool{}
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name())
		for name, attack := range attacks {
			if attack(number("PROBE_TARGET"), tid) == nil {
				worked[name] = true
			}
		}
	}
	for name := range worked {
		fmt.Println("worked:", name)
	}
	return nil
}

// TestServerThreadIsOutOfReach attacks the server from a command while the
// thread that started the command, which is in the command's own domain, still
// lives: the hardest moment.
func TestServerThreadIsOutOfReach(t *testing.T) {
	p := newPlace(t)
	exe, err := os.Executable()
	must(t, err)
	c := confiner(t, p.policy(), kernel.Missing{})
	attacker := func(target int) *exec.Cmd {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), probeVar+"=attack", fmt.Sprintf("PROBE_TARGET=%d", target))
		return cmd
	}
	free, err := attacker(bystander(t, "")).CombinedOutput()
	must(t, err)
	for name := range attacks {
		if !strings.Contains(string(free), "worked: "+name+"\n") {
			t.Logf("unconfined, %s does not work here either", name)
		}
	}
	if n := strings.Count(string(free), "worked"); n < 8 {
		t.Fatalf("only %d attacks work unconfined: %s", n, free)
	}
	var caged []byte
	d, err := c.Start(func() (int, error) { // the thread lives for as long as this runs
		caged, err = attacker(os.Getpid()).CombinedOutput()
		return 1 << 30, err
	})
	must(t, err)
	waitDone(t, d)
	for line := range strings.Lines(string(caged)) {
		// F_SETOWN accepts anybody; whom the kernel then signals is the scope's
		// matter, except for the starting thread, which the filter names.
		if strings.TrimSpace(line) != "worked: signal-io" {
			t.Errorf("%s", line)
		}
	}
}

// TestInheritedDescriptors: what the server inherited without close-on-exec does
// not reach commands once Harden ran.
func TestInheritedDescriptors(t *testing.T) {
	p := newPlace(t)
	c := confiner(t, p.policy(), kernel.Missing{})
	fd, err := unix.Open(filepath.Join(p.outside, "secret"), unix.O_RDONLY, 0)
	must(t, err)
	defer unix.Close(fd)
	exe, err := os.Executable()
	must(t, err)
	env := []string{probeVar + "=inherited", fmt.Sprintf("PROBE_FD=%d", fd)}
	if r := p.do(t, c, env, exe); r.err != nil {
		t.Fatalf("the descriptor is not inherited, so it proves nothing: %v %s", r.err, r.out)
	}
	must(t, kernel.Harden())
	if r := p.do(t, c, env, exe); r.err == nil {
		t.Error("the command read through it")
	}
	if r := p.sh(t, c, "ulimit -c"); strings.TrimSpace(r.out) != "0" {
		t.Errorf("commands may leave core files of %s", r.out)
	}
}

const int80 = `
#include <stdio.h>
static char name[4096];
int main(int argc, char **argv) {
	snprintf(name, sizeof name, "%s", argv[1]);
	long fd;
	__asm__ volatile("int $0x80" : "=a"(fd) : "a"(5), "b"(name), "c"(0), "d"(0) : "r8", "r9", "r10", "r11", "memory");
	printf("%ld\n", fd);
	return fd < 0;
}
`

// TestForeignArchitecture calls the kernel by the door of 32-bit programs.
func TestForeignArchitecture(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("this architecture has no such door")
	}
	p := newPlace(t)
	src, prog := filepath.Join(p.ws, "p.c"), filepath.Join(p.ws, "p")
	must(t, os.WriteFile(src, []byte(int80), 0o644))
	if out, err := exec.Command("gcc", "-static", "-no-pie", "-o", prog, src).CombinedOutput(); err != nil {
		t.Skipf("no compiler for it: %s", out)
	}
	if out, err := exec.Command(prog, "/usr/bin/env").CombinedOutput(); err != nil {
		t.Skipf("this kernel has no such door: %s", out)
	}
	c := confiner(t, p.policy(), kernel.Missing{})
	if r := p.do(t, c, nil, prog, "/usr/bin/env"); r.err == nil || strings.TrimSpace(r.out) != "-38" {
		t.Errorf("got %v %s, want ENOSYS", r.err, r.out)
	}
}

// TestPlainUser runs the battery again as a user without privileges.
func TestPlainUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this is the plain user's run already")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "confine-user-*")
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chown(dir, nobody, nobody))
	exe, err := os.Executable()
	must(t, err)
	bin, err := os.ReadFile(exe)
	must(t, err)
	copied := filepath.Join(dir, "confine.test")
	must(t, os.WriteFile(copied, bin, 0o755))
	cmd := exec.Command(copied, "-test.v", "-test.short", "-test.run", "TestEscape|TestKillLeavesNobody/scope|TestServer|TestSurvivors|TestStatus|TestLoopback|TestFile|TestCell|TestClosedDirectories|TestGitIsGuarded")
	cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=/usr/bin:/bin"}
	cmd.Dir = dir
	cmd.SysProcAttr = &unix.SysProcAttr{Credential: credential(nobody)}
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "FAIL") || strings.Contains(line, "_test.go") && err != nil {
			t.Log(strings.TrimSpace(line))
		}
	}
	if err != nil {
		t.Errorf("as a plain user: %v", err)
	}
	if !strings.Contains(string(out), "--- PASS: TestClosedDirectoriesAreGuarded") {
		t.Error("closed directories were not tried as a plain user")
	}
	for _, battery := range []string{"TestEscape", "TestEscapeFromCell"} {
		if n := strings.Count(string(out), "--- PASS: "+battery+"/"); n < 40 {
			t.Errorf("only %d probes of %s ran as a plain user", n, battery)
		}
	}
}
