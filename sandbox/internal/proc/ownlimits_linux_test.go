//go:build amd64 || arm64

package proc

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// behindWalls is set in the process of a test that may not touch the limits of others.
const behindWalls = "PERSTACK_BASE_TEST_BEHIND_WALLS"

// TestBoundsBehindWalls: where a filter refuses the limits of all other processes, as in
// the sandbox of another server, programs are under their bounds from the start.
func TestBoundsBehindWalls(t *testing.T) {
	if os.Getenv(behindWalls) == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		inside := exec.Command(self, "-test.run=^TestBoundsBehindWalls$", "-test.v")
		inside.Env = append(os.Environ(), behindWalls+"=1")
		out, err := inside.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestBoundsBehindWalls") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	refuseOthersLimits(t)
	t.Run("from the start", TestBoundsHoldFromTheStart)
	t.Run("no such program", TestBoundsOfNoProgram)
	t.Run("marks", TestSessionMarks)
	t.Run("lowered only", testLoweredBehindWalls)
	t.Run("the program is left as it was", testUntouchedBehindWalls)
}

// refuseOthersLimits puts this process under a filter, and shows that it holds.
func refuseOthersLimits(t *testing.T) {
	t.Helper()
	const nr, firstArg = 0, 16 // in seccomp_data
	code := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: nr},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PRLIMIT64, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: firstArg},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	runtime.LockOSThread() // the other threads get both from this one
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))); e != 0 {
		t.Fatal(e)
	}
	child := exec.Command("/bin/sleep", "1005")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	var has unix.Rlimit
	if err := unix.Prlimit(child.Process.Pid, unix.RLIMIT_CORE, nil, &has); !errors.Is(err, unix.EPERM) {
		t.Fatal("the filter does not hold: ", err)
	}
}

// testLoweredBehindWalls: a limit that is lower already stays, with the others beside it.
func testLoweredBehindWalls(t *testing.T) {
	text := outputUnder(t, Bounds{Limits: map[int]unix.Rlimit{
		unix.RLIMIT_NOFILE: {Cur: 1 << 40, Max: 1 << 40}, unix.RLIMIT_CORE: {}, unix.RLIMIT_FSIZE: {Cur: 1 << 20, Max: 2 << 20}}},
		"/bin/sh", "-c", "ulimit -n; ulimit -c; head -c 2000000 /dev/zero > $0 || echo too large", t.TempDir()+"/file")
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		t.Fatal(err)
	}
	if fields := strings.Fields(text); len(fields) < 3 || fields[1] != "0" || strings.HasPrefix(fields[0], "1099511627776") {
		t.Errorf("%q: its own limit was %d", text, own.Cur)
	}
}

// testUntouchedBehindWalls: a program begins with the arguments and variables that it was
// given, and runs its own code.
func testUntouchedBehindWalls(t *testing.T) {
	text := outputUnder(t, SessionMark().Bounds(), "/bin/sh", "-c", `echo "$0 $# $1" && /bin/cat /proc/self/comm`, "zero", "one", "two")
	if text != "zero 2 one\ncat\n" {
		t.Errorf("%q", text)
	}
}

// outputUnder is what a program prints that runs under bounds and exits as it should.
func outputUnder(t *testing.T, b Bounds, argv ...string) string {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pid, err := Start(func() (int, error) { return b.Start(forking(file, argv...)) })
	if err != nil {
		t.Fatal(err)
	}
	status, err := Wait(pid)
	if err != nil || status.ExitStatus() != 0 {
		t.Errorf("%v: %v %v", argv, status, err)
	}
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
