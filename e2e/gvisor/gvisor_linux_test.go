package gvisor

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// sandboxTime is for what hangs, on a machine that is busy besides.
const sandboxTime = 5 * time.Minute

// dir is where everything is built.
var dir string

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "confine-gvisor-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// build makes a static program of ours and returns where it is.
func build(t *testing.T, name string, args ...string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	cmd := exec.Command("go", slices.Concat(args[:1], []string{"-o", path}, args[1:])...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Dir = "../.." // of the product's module, not this one
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return path
}

func program(t *testing.T) string { return build(t, "perstack-base", "build", "./cmd/perstack-base") }

// A sandbox is a gVisor that shows the machine's files, read only.
type sandbox struct{ runsc string }

// current is one of today.
func current(t *testing.T) sandbox {
	t.Helper()
	if out, err := exec.Command("go", "mod", "download", "gvisor.dev/gvisor").CombinedOutput(); err != nil {
		t.Skipf("no gVisor is to be had: %v, %s", err, out)
	}
	cmd := exec.Command("go", "tool", "-n", "runsc") // builds it, once for many runs of the tests, and says where it is
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	s := sandbox{strings.TrimSpace(string(out))}
	s.works(t)
	return s
}

// debians is that of the distribution.
func debians(t *testing.T) sandbox {
	t.Helper()
	path, err := exec.LookPath("runsc")
	if err != nil {
		t.Skip("runsc is missing (apt-get install runsc)")
	}
	s := sandbox{path}
	s.works(t)
	return s
}

// works skips the test where this machine permits no such sandbox.
func (s sandbox) works(t *testing.T) {
	t.Helper()
	if out, code := s.run(t, "true"); code != 0 {
		t.Skipf("gVisor does not run here: code %d, %s", code, out)
	}
}

// run runs a program in a sandbox of its own and returns what it says.
func (s sandbox) run(t *testing.T, argv ...string) (out string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sandboxTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.runsc, append([]string{"--rootless", "--network=none", "--ignore-cgroups", "do"}, argv...)...)
	cmd.Dir, cmd.WaitDelay = t.TempDir(), 5*time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if cmd.ProcessState == nil || ctx.Err() != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, said.String())
	}
	return said.String(), cmd.ProcessState.ExitCode()
}

// findings are what doctor --json says, as far as it is looked at.
type findings struct {
	Confined bool
	Why      string
	Remedies []string
	Status   *struct {
		Tier                          string
		Seccomp                       bool
		Files, Network, Signals, Kill struct{ Proven bool }
	}
}

func (s sandbox) doctor(t *testing.T, mode string) (f findings) {
	t.Helper()
	out, code := s.run(t, program(t), "doctor", "--json", "--sandbox", mode)
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		t.Fatalf("%v: code %d, %s", err, code, out)
	}
	if f.Confined != (code == 0) {
		t.Errorf("exit code %d, confined %v", code, f.Confined)
	}
	return f
}

// TestDoctorProves: namespaces confine commands as doctor says, and what gVisor has not
// is not claimed.
func TestDoctorProves(t *testing.T) {
	s := current(t)
	for _, mode := range []string{"auto", "isolate", "strict"} {
		f := s.doctor(t, mode)
		if st := f.Status; !f.Confined || st == nil || st.Tier != "namespaces" || !st.Seccomp ||
			!st.Files.Proven || !st.Network.Proven || !st.Signals.Proven || !st.Kill.Proven {
			t.Errorf("%s: %+v", mode, f)
		}
	}
	if f := s.doctor(t, "landlock"); f.Confined || !strings.Contains(f.Why, "Landlock") {
		t.Errorf("landlock: %+v", f)
	}
}

// TestOldDoctorTellsTheTruth: where nothing confines commands, doctor says that, why and
// what to do, and strict runs none.
func TestOldDoctorTellsTheTruth(t *testing.T) {
	s := debians(t)
	for _, mode := range []string{"auto", "isolate", "landlock", "strict"} {
		if f := s.doctor(t, mode); f.Confined || f.Why == "" || len(f.Remedies) == 0 {
			t.Errorf("%s: %+v, want that nothing is confined, why, and what to do", mode, f)
		}
	}
	out, code := s.run(t, program(t), "call", "exec", "touch", `args=["ran"]`, "--sandbox", "strict")
	if code == 0 || !strings.Contains(out, "commands are refused") {
		t.Errorf("strict: code %d, %s", code, out)
	}
}

// unproven are the probes that fail in gVisor without our confinement, too, so it proves
// nothing that they fail: kinds of sockets, calls and files that it does not have.
var unproven = []string{"abstract-by-other-kind", "alg", "core-pattern", "dial-link", "exit-stop-old", "fanotify", "fast-open", "fchmodat2", "inode-flags",
	"inode-generation", "io-uring", "keyctl", "lease", "mptcp", "netlink-bind", "netlink-connect", "netlink-group", "open-by-handle", "packet",
	"perf", "raw", "udp", "unix-pair", "userfaultfd", "vsock"}

// notKept are the probes of what is not kept in gVisor: it refuses to write to a device that
// is shown read only, so root's commands can change its mode. docs/security.md says so.
const notKept = "^TestEscapeFromCell$/^device-mode"

// TestBatteries runs those of the confinement that are for namespaces. TestKeeper is not
// among them: in gVisor a command can end the first process of its own session, and all
// that runs there with it; docs/security.md says so.
func TestBatteries(t *testing.T) {
	s := current(t)
	battery := build(t, "confine.test", "test", "-c", "./sandbox/internal/confine")
	for _, b := range []struct {
		pattern string // of tests, and below them
		passes  []string
	}{
		{"^TestEscapeFromCell$/./^no_landlock$", []string{"TestEscapeFromCell", "TestEscapeFromCell/create/no_landlock", "TestEscapeFromCell/kill/no_landlock"}},
		{"^Test(Cell(Kill|OutlastsKill|View)|IsolatingServerKilled)$", []string{"TestCellKill", "TestCellOutlastsKill", "TestCellView", "TestIsolatingServerKilled"}},
	} {
		t.Run(b.passes[0], func(t *testing.T) {
			t.Parallel()
			out, code := s.run(t, battery, "-test.short", "-test.v", "-test.skip", notKept, "-test.run", b.pattern)
			judge(t, out, code, b.passes)
		})
	}
}

var verdicts = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+)`)

// judge wants that the tests have passed, and that nothing was skipped but what is known
// to prove nothing.
func judge(t *testing.T, out string, code int, passes []string) {
	t.Helper()
	ended := map[string]string{}
	for _, verdict := range verdicts.FindAllStringSubmatch(out, -1) {
		ended[verdict[2]] = verdict[1]
	}
	for _, test := range passes {
		if ended[test] != "PASS" {
			t.Errorf("%s did not pass: %q", test, ended[test])
		}
	}
	for name, verdict := range ended {
		_, probe, _ := strings.Cut(name, "/")
		if verdict == "SKIP" && slices.Contains(unproven, probe) {
			t.Logf("skipped: %s fails in gVisor unconfined, too", probe)
		} else if verdict == "SKIP" {
			t.Errorf("%s was skipped", name)
		}
	}
	if code != 0 || t.Failed() {
		t.Errorf("code %d\n%s", code, out)
	}
}
