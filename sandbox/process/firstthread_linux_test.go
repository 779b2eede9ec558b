package process

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
)

// TestFirstThreadEnded: where nothing confines, the end of a session ends also what
// commands have left running without its first thread.
func TestFirstThreadEnded(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, _ := newShell(t, Config{Limits: quick, Sandbox: Off})
	res := run(t, s, sh(`setsid sh -c 'echo $$; `+filetest.FirstThreadEnds+` exec `+self+` > /dev/null 2>&1' & sleep 0.2`))
	out, _ := res.Stdout.Text(100)
	pid, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	defer unix.Kill(pid, unix.SIGKILL)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("it does not run without its first thread: %s %v", stat, err)
		}
		if strings.Contains(string(stat), ") Z ") {
			break
		}
	}
	_ = s.Close()
	for deadline := time.Now().Add(time.Minute); unix.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it has outlived its session")
		}
	}
}
