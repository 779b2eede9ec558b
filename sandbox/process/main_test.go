//go:build linux

package process

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/process/internal/tree"
)

// testMode names the variable that sets the mode of all tests that leave it open.
const testMode = "SANDBOX_TEST_MODE"

// TestMain also plays a server that is killed, for the tests of the watchdog.
func TestMain(m *testing.M) {
	tree.Helpers()
	actAsEngine()
	if script := os.Getenv("SANDBOX_TEST_SERVER"); script != "" {
		serveForTest(script)
	}
	os.Exit(withOwnCaches(m))
}

// withOwnCaches runs the tests with a place of their own for caches of workspaces.
func withOwnCaches(m *testing.M) int {
	dir, err := os.MkdirTemp("", "caches-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv("XDG_CACHE_HOME", dir); err != nil {
		panic(err)
	}
	return m.Run()
}

func serveForTest(script string) {
	c, err := NewCommands(Config{Dir: os.TempDir(), Sandbox: Mode(os.Getenv(testMode))})
	if err != nil {
		panic(err)
	}
	res, err := c.NewShell().Run(context.Background(), Command{Name: "sh", Args: []string{"-c", script}, Stdout: true})
	fmt.Printf("%s|%v|%d\n", res.Stdout.Head, err, res.ExitCode)
	time.Sleep(time.Minute)
	os.Exit(1)
}
