//go:build linux

package process

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/tree"
)

// testMode names the variable that sets the mode of all tests that leave it open.
const testMode = "SANDBOX_TEST_MODE"

// long are the tests that -short leaves out: those that wait until a silence or a grace is
// over, those that try every attack on a repository or every setting of a tool, and those
// that need hundreds of commands. Of each kind the others keep at least one.
const long = "^Test(TakenOverRunnerIs(Mute|Deaf)|RunnerNeedsItsServer|RunnersThatMisuseTheSocket|EngineThat(IsNone|Hangs)|SilentEngine|" +
	"UnconfinedContainersAreMadeAgain|AwayTimeoutAndCancel|AwayKill|AwayErrors|RunningApart|QuotaRests|LivingServerKeepsItsCommands|" +
	"IsolatedCommandsStopTheirReaper|RepositoryOutside|LinksIntoMainRepository|AlternatesOfMainRepository|MainRepositoryIsExplained|" +
	"ForgedWorktree|CargoSettings|ClosedNetworkIsKnown|Users|KeeperLost|ForgedRepository|MovedWorkspace|FloodStaysSmall|" +
	"AwayMakesNoSetID|RunningClaimsNothing|QuotaIsOfOneSession|EmbedderKeepsItsChildren|StartupFilesAreNotRaced)$"

// TestMain also plays a server that is killed, for the tests of the watchdog.
func TestMain(m *testing.M) {
	tree.Helpers()
	actAsEngine()
	if script := os.Getenv("SANDBOX_TEST_SERVER"); script != "" {
		serveForTest(script)
	}
	if flag.Parse(); testlevel.Quick() {
		testlevel.Leave(long)
	}
	testlevel.SideBySide() // what is parallel waits
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
