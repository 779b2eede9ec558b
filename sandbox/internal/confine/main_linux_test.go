//go:build amd64 || arm64

package confine

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/namespaces"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

func init() { runtime.LockOSThread() }

// probeVar makes the test binary be the confined program instead: it names a probe.
const probeVar = "CONFINE_TEST_PROBE"

// lacking is what namespaces are made without.
var lacking namespaces.Lacks

// withLacks has namespaces made without parts of the kernel.
func withLacks(t *testing.T, without namespaces.Lacks) {
	lacking = without
	t.Cleanup(func() { lacking = namespaces.Lacks{} })
}

// slow are the tests that take most of the time of the battery: they run where everything
// does, or when -run names them.
const slow = "^Test(PlainUser|Escape|EscapeFromCell|NoPacketLeaves|GoToolchain|Work|CellWork|RandomCalls|GatewayEnds|ReaperStopped|" +
	"DatagramsStayInside|GitIsGuarded|GitLinksAreGuarded|Thousands|WaitingConnectsHoldNoThreads|WaitingConnectsOfOthers|Datagrams|" +
	"ListenNeedsTheBrokersBind|CellOutlastsKill|ForkBomb|SignalsReachWhoWaits)$"

// long are those that -short leaves out besides: more attacks on what others prove whole,
// races, and what takes a second or many commands to come about.
const long = "^Test(UnixDatagramAttacks|RemovalOfLinksStaysInside|CoversOutlastTheirSession|KillsAtOnce|HungConnectsHoldNoOtherSession|" +
	"GitNamesAreGuarded|GuardFindsWhatIsHidden|LateCalls|IdleSessionsHoldNothing|NamesOfOthersAreNotReached|WatcherStopped|" +
	"PendingConnectsReachNobodyElse|DatagramsOfTheSession|StartCancelled|CloseKillsAll|Survivors|GatewayKeepsConnections|DatagramPairs|" +
	"BlockedQuestionsTakeNoThreads|CellsLeaveNothing|AllStopped|FullServersAreWaitedFor|GatewayForgets|KillFirstThreadEnded|Names)$"

func TestMain(m *testing.M) {
	if name := os.Getenv(probeVar); name != "" {
		if err := probeTable[name].try(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if whom := os.Getenv(stopperVar); whom != "" {
		beStopper(whom)
	}
	if file := os.Getenv(firstEndsVar); file != "" {
		beWithoutFirst(file)
	}
	if os.Getenv(tracedVar) != "" {
		beTraced()
	}
	if dir := os.Getenv(netVar); dir != "" {
		beNetwork(dir)
	}
	if dir := os.Getenv(pileVar); dir != "" {
		bePiled(dir)
	}
	if dir := os.Getenv(bombVar); dir != "" {
		beBombed(dir)
	}
	if dir := os.Getenv(serverVar); dir != "" {
		beServer(dir)
	}
	if role := os.Getenv(passVar); role != "" {
		bePassing(role)
	}
	if dir := os.Getenv(sameIDVar); dir != "" {
		beSameID(dir)
	}
	if os.Getenv(numbersVar) != "" {
		if err := ownProc(); err != nil {
			fmt.Println("--- SKIP: no /proc of the namespace:", err)
			os.Exit(0)
		}
	}
	flag.Parse()
	if testlevel.Quick() {
		testlevel.Leave(slow + "|" + long)
	} else if !testlevel.All() {
		testlevel.Leave(slow)
	}
	code := m.Run()
	if kept := keptIDs(); code == 0 && kept > 0 {
		fmt.Println(kept, "ids of children that were collected are taken for their ids still")
		code = 1
	}
	os.Exit(code)
}

// keptIDs counts the ids that the ledger of children holds although they are
// nobody's, or of a child that has ended.
func keptIDs() (n int) {
	text, _ := os.ReadFile("/proc/sys/kernel/pid_max")
	most, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		n = 0
		for pid := range most {
			if proc.Known(pid) {
				if p, ok := proc.Read(pid); !ok || p.Dead {
					n++
				}
			}
		}
		if n == 0 {
			break
		}
	}
	return n
}

// numbersVar makes the test binary run in namespaces of its own where it can say which
// number the next process or System V object gets, and no other program takes it.
const numbersVar = "CONFINE_TEST_NUMBERS"

// withOwnNumbers reports whether the test runs so; if not, it has it run so.
func withOwnNumbers(t *testing.T) bool {
	t.Helper()
	if os.Getenv(numbersVar) != "" {
		return true
	}
	if os.Getuid() != 0 {
		t.Skip("only root may say which number comes next")
	}
	exe, err := os.Executable()
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "-test.v", "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), numbersVar+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC}
	out, err := cmd.CombinedOutput()
	switch _, ran := err.(*exec.ExitError); {
	case err != nil && !ran, strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%v %s", err, out)
	case err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("%v %s", err, out)
	}
	return false
}

// serverVar makes the test binary be a server that is going to be killed.
const serverVar = "CONFINE_TEST_SERVER"

// A place is a workspace, and a directory outside it that commands must not reach.
type place struct{ ws, outside string }

func newPlace(t testing.TB) place {
	t.Helper()
	dir, err := os.MkdirTemp("", "c-*") // t.TempDir's names are too long for sockets
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := place{filepath.Join(dir, "ws"), filepath.Join(dir, "outside")}
	for _, d := range []string{p.ws, p.outside} {
		must(t, os.Mkdir(d, 0o755))
	}
	must(t, os.WriteFile(filepath.Join(p.outside, "secret"), []byte("secret"), 0o644))
	return p
}

func (p place) policy() policy.Policy {
	exe, _ := os.Executable()
	tmp := filepath.Join(p.ws, ".tmp")
	_ = os.Mkdir(tmp, 0o755)
	return policy.DefaultPolicy(policy.Inputs{Workspace: p.ws, Home: os.Getenv("HOME"), Path: os.Getenv("PATH"), AllowRead: []string{exe}})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func confiner(t testing.TB, p policy.Policy, without kernel.Missing) *threads.Confiner {
	t.Helper()
	c, err := threads.NewWithout(p, threads.Options{}, without)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// A result is how a confined command went.
type result struct {
	out    string
	err    error
	domain *threads.Domain
}

// commandTime is the longest that do lets a command run.
var commandTime = 2 * time.Minute

// do runs a command confined (c may be nil: unconfined) in the workspace.
func (p place) do(t testing.TB, c *threads.Confiner, env []string, argv ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = p.ws
	tmp := filepath.Join(p.ws, ".tmp")
	cmd.Env = append(os.Environ(), append([]string{"HOME=" + tmp, "TMPDIR=" + tmp}, env...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	var r result
	if c == nil {
		r.err = cmd.Run()
	} else if r.domain, r.err = c.Start(starting(cmd)); r.err == nil {
		r.err = wait(cmd)
	}
	r.out = out.String()
	return r
}

func (p place) sh(t testing.TB, c *threads.Confiner, script string) result {
	t.Helper()
	return p.do(t, c, nil, "/bin/sh", "-c", script)
}

// wantRefusal fails unless the domain recorded a refusal that contains what.
func (r result) wantRefusal(t *testing.T, what string) {
	t.Helper()
	for _, f := range r.domain.Refusals() {
		if strings.Contains(f.What, what) && f.Count > 0 && f.Command != "" {
			return
		}
	}
	t.Errorf("no refusal %q in %+v", what, r.domain.Refusals())
}

func waitDone(t testing.TB, d *threads.Domain) {
	t.Helper()
	select {
	case <-d.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the domain still has processes")
	}
}

func ptr[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

func credential(id uint32) *syscall.Credential { return &syscall.Credential{Uid: id, Gid: id} }
