//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"golang.org/x/sys/unix"
)

// bombVar makes the test binary be a server, whose command makes processes
// without end, for a user with a limit.
const bombVar = "CONFINE_TEST_BOMB"

// beBombed runs commands beside the bomb. Some may fail; the server must not.
func beBombed(dir string) {
	p := place{ws: dir}
	err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 300, Max: 300})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	c, err := threads.New(p.policy(), threads.Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	bomb := exec.Command("/bin/sh", "-c", "f() { f & f & wait; }; f")
	bomb.Dir = dir
	d, err := c.Start(starting(bomb))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	failed, ran := 0, 0
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); {
		var all sync.WaitGroup
		var mu sync.Mutex
		for range 40 {
			all.Go(func() {
				err := runIn(c, exec.Command("/bin/true"))
				mu.Lock()
				defer mu.Unlock()
				if ran++; err != nil {
					failed++
				}
			})
		}
		all.Wait()
	}
	err = d.Kill()
	_ = wait(bomb)
	fmt.Println("alive:", failed, "of", ran, "failed;", err, len(p.living()), "left")
	os.Exit(0)
}

// TestForkBomb: a command that makes processes up to the user's limit ends
// neither the server nor the commands beside it, and can be killed.
func TestForkBomb(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes a user who has no other processes")
	}
	const user = 54321
	dir, err := os.MkdirTemp("", "bomb-*")
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chown(dir, user, user))
	exe := copyOfTest(t, dir)
	server := exec.Command(exe)
	server.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=/usr/bin:/bin", bombVar + "=" + dir}
	server.Dir = dir
	server.SysProcAttr = &unix.SysProcAttr{Credential: credential(user)}
	out, err := server.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "alive:") {
		t.Errorf("the server did not survive: %v %.2000s", err, out)
	}
	t.Logf("%s", out)
	eventually(t, "the bomb goes on", func() bool { return len(place{ws: dir}.living()) == 0 })
}

// copyOfTest is this test's program where another user can execute it.
func copyOfTest(t *testing.T, dir string) string {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	bin, err := os.ReadFile(exe)
	must(t, err)
	copied := filepath.Join(dir, "confine.test")
	must(t, os.WriteFile(copied, bin, 0o755))
	return copied
}

// TestIdleSessionsHoldNothing: a session whose commands have ended gives back
// its spare threads, their watchers and descriptors, and still runs the next.
func TestIdleSessionsHoldNothing(t *testing.T) {
	p := newPlace(t)
	warm := confiner(t, p.policy(), kernel.Missing{})
	must(t, runIn(warm, exec.Command("/bin/true"))) // what all sessions share is made once
	must(t, warm.Close())
	eventually(t, "threads stayed confined", func() bool { return confinedThreads(t) == 0 })
	before := openFDs(t)
	const sessions = 20
	var all []*threads.Confiner
	for range sessions {
		c := confiner(t, p.policy(), kernel.Missing{})
		c.Spares.Keep = time.Second
		must(t, runIn(c, exec.Command("/bin/true")))
		all = append(all, c)
	}
	eventually(t, "there are no spares: nothing is proven", func() bool { return confinedThreads(t) > 0 })
	eventually(t, "idle sessions keep threads", func() bool { return confinedThreads(t) == 0 })
	eventually(t, "idle sessions keep processes", func() bool { return countChildren(false) == 0 })
	eventually(t, "idle sessions keep descriptors", func() bool { return openFDs(t) <= before+sessions })
	for _, c := range all {
		must(t, runIn(c, exec.Command("/bin/true")))
	}
}
