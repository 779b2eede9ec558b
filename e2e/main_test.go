package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

// binary is the path of the server under test, built as a release is.
var binary string

// userHome is the home directory of who runs the tests; they have one of their own.
var userHome = os.Getenv("HOME")

// endings are what the tests have to tidy up when all of them have run.
var endings struct {
	sync.Mutex
	all []func()
}

// atEnd has something done when all tests have run, the latest first.
func atEnd(f func()) {
	endings.Lock()
	defer endings.Unlock()
	endings.all = append(endings.all, f)
}

func runEndings() {
	for _, end := range slices.Backward(endings.all) {
		end()
	}
}

// slow are the tests that take most of the time, and what only some machines have: they run
// where everything does, or when -run names them.
const slow = "^Test(Container|InContainer|Kubernetes|Wine|TypeScript|Inspector|Views$|Bundle$|Conformance$|ManyClients|PackagesByName|NetworkByName|" +
	"Limits$|Bomb|FilesFillMemory)"

// main are the tests that -short leaves, unless -run names others: whether the program does
// what it is for.
const main = "^Test(CommandLine|Transcripts|Lists|CommandsAreConfined|SecretsAreWithheld|EndOfInputAnswersAll)$"

func TestMain(m *testing.M) {
	flag.Parse()
	if testlevel.Quick() {
		testlevel.Only(main)
	} else if !testlevel.All() {
		testlevel.Leave(slow)
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "perstack-base-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary = os.Getenv("E2E_BINARY"); binary != "" { // the test runs itself again
		return m.Run()
	}
	binary = filepath.Join(dir, "perstack-base")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "../cmd/perstack-base")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the binary: %v\n%s", err, out)
		return 1
	}
	defer runEndings()
	// Nobody's own skills and cache are looked at, but for that of the Go toolchain.
	env := map[string]string{"HOME": filepath.Join(dir, "home"), "XDG_CACHE_HOME": filepath.Join(dir, "cache")}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		env[name] = strings.TrimSpace(string(value))
	}
	for name, value := range env {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// workspace is a new directory whose spelling is its real path.
func workspace(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
