//go:build linux

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
)

// confinedShell is a shell whose commands are confined by Landlock, or the test
// is skipped.
func confinedShell(t *testing.T, cfg Config) *Shell {
	t.Helper()
	cfg.Sandbox = Landlock
	return shellOf(t, Threads, cfg)
}

// isolatedShell is a shell whose commands are in namespaces, or the test is skipped.
func isolatedShell(t *testing.T, cfg Config) *Shell {
	t.Helper()
	cfg.Sandbox = Isolate
	return shellOf(t, Namespaces, cfg)
}

func shellOf(t *testing.T, tier Tier, cfg Config) *Shell {
	t.Helper()
	s, c := newShell(t, cfg)
	if ok, why := c.Confined(); !ok {
		t.Skip("commands are not confined here: ", why)
	}
	if c.confinement.decision.tier != tier {
		t.Skipf("commands are confined by %s here, not by %s", c.confinement.decision.tier, tier)
	}
	return s
}

// inEachTier runs a test in both.
func inEachTier(t *testing.T, test func(*testing.T, func(*testing.T, Config) *Shell)) {
	if !testlevel.Quick() { // the battery of the confinement tries both, always
		t.Run(string(Threads), func(t *testing.T) { test(t, confinedShell) })
	}
	t.Run(string(Namespaces), func(t *testing.T) { test(t, isolatedShell) })
}

// outside is a file that no policy allows, with its content.
func outside(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "outside.txt")
	if err := os.WriteFile(path, []byte("sesame"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfinedCommands(t *testing.T) { inEachTier(t, testConfinedCommands) }

func testConfinedCommands(t *testing.T, shell func(*testing.T, Config) *Shell) {
	secret := outside(t)
	if data, err := os.ReadFile(secret); err != nil || string(data) != "sesame" {
		t.Fatal("the control must be able to read it:", err)
	}
	s := shell(t, Config{})
	for name, script := range map[string]string{
		"read outside":   "cat " + secret,
		"write outside":  "echo x > " + filepath.Dir(secret) + "/new",
		"user database":  "cat /etc/shadow",
		"link outside":   "ln -s " + secret + " l && cat l",
		"server's env":   "cat /proc/$PPID/environ",
		"network":        "exec 3<>/dev/tcp/192.0.2.1/80",
		"signal outside": fmt.Sprintf("kill -0 %d", os.Getpid()),
	} {
		res := run(t, s, Command{Name: "bash", Args: []string{"-c", script}, Stdout: true, Stderr: true})
		if out, _ := res.Stdout.Text(100); res.ExitCode == 0 || strings.Contains(out, "sesame") {
			t.Errorf("%s: exit code %d, %q", name, res.ExitCode, out)
		}
	}
	for name, script := range map[string]string{
		"workspace":   "echo x > f && cat f",
		"TMPDIR":      "echo x > $TMPDIR/f && cat $TMPDIR/f",
		"HOME":        "echo x > ~/f && cat ~/f",
		"mktemp":      "rm $(mktemp)",
		"programs":    "ls /usr/bin > /dev/null",
		"dev":         "head -c 1 /dev/urandom > /dev/null",
		"own process": "kill -0 $$ && cat /proc/self/status > /dev/null",
		"background":  "sleep 60 & kill $!",
	} {
		if res := run(t, s, sh(script)); res.ExitCode != 0 {
			err, _ := res.Stderr.Text(1000)
			t.Errorf("%s must work: %s %v", name, err, res.Refused)
		}
	}
}

func TestRefusalsAreTold(t *testing.T) { inEachTier(t, testRefusalsAreTold) }

func testRefusalsAreTold(t *testing.T, shell func(*testing.T, Config) *Shell) {
	secret := outside(t)
	s := shell(t, Config{})
	res := run(t, s, sh("cat "+secret))
	want := "blocked by the sandbox: read " + secret + " (outside the workspace; ask the user to add --allow-read " + secret + " to the arguments of perstack-base)"
	if len(res.Refused) != 1 || res.Refused[0] != want {
		t.Errorf("told %q, want %q", res.Refused, want)
	}
	if res := run(t, s, sh("exit 3")); res.Refused != nil {
		t.Errorf("nothing was refused: %q", res.Refused)
	}
	res = run(t, s, Command{Name: "bash", Args: []string{"-c", "exec 3<>/dev/tcp/192.0.2.1/80"}, Stderr: true})
	if len(res.Refused) == 0 || !strings.Contains(res.Refused[0], "192.0.2.1") && s.c.confinement.decision.tier == Threads || !strings.Contains(res.Refused[0], "--network allow") {
		t.Errorf("told %q of the network", res.Refused)
	}
}

func TestAllowedPaths(t *testing.T) { inEachTier(t, testAllowedPaths) }

func testAllowedPaths(t *testing.T, shell func(*testing.T, Config) *Shell) {
	secret := outside(t)
	s := shell(t, Config{AllowRead: []string{secret}})
	if res := run(t, s, sh("cat "+secret)); res.ExitCode != 0 {
		t.Errorf("AllowRead must permit reading: %v", res.Refused)
	}
	if res := run(t, s, sh("echo x > "+secret)); res.ExitCode == 0 {
		t.Error("AllowRead must not permit writing")
	}
	s = shell(t, Config{AllowWrite: []string{filepath.Dir(secret)}})
	if res := run(t, s, sh("echo x > "+secret+" && touch "+filepath.Dir(secret)+"/new")); res.ExitCode != 0 {
		t.Errorf("AllowWrite must permit writing: %v", res.Refused)
	}
}

func TestProgramsOutsideAreRefused(t *testing.T) { inEachTier(t, testProgramsOutsideAreRefused) }

func testProgramsOutsideAreRefused(t *testing.T, shell func(*testing.T, Config) *Shell) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := shell(t, Config{})
	_, err := s.Run(t.Context(), Command{Name: program})
	var start *StartError
	if !errors.As(err, &start) || !errors.Is(err, ErrNotExecutable) || !strings.Contains(start.Hint(), "--allow-read "+program) {
		t.Errorf("%v, hint %q", err, start.Hint())
	}
}

// TestWorkspaceInSharedMemory: what the session has of its own hides no workspace.
func TestWorkspaceInSharedMemory(t *testing.T) { inEachTier(t, testWorkspaceInSharedMemory) }

func testWorkspaceInSharedMemory(t *testing.T, shell func(*testing.T, Config) *Shell) {
	dir, err := os.MkdirTemp("/dev/shm", "workspace-")
	if err != nil {
		t.Skip("there is no shared memory: ", err)
	}
	defer os.RemoveAll(dir)
	s := shell(t, Config{Dir: dir})
	if res := run(t, s, sh("echo x > f && cat f")); string(res.Stdout.Head) != "x\n" {
		t.Errorf("%s", res.Stderr.Head)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "f")); string(data) != "x\n" {
		t.Errorf("outside it is not there: %v", err)
	}
}

// TestLinksOnPath: a program is found by a link to it in a directory of PATH,
// although what the link leads to can be read anyway.
func TestLinksOnPath(t *testing.T) { inEachTier(t, testLinksOnPath) }

func testLinksOnPath(t *testing.T, shell func(*testing.T, Config) *Shell) {
	dir := t.TempDir()
	if err := os.Symlink("/bin/echo", filepath.Join(dir, "told")); err != nil {
		t.Fatal(err)
	}
	s := shell(t, Config{Env: []string{"PATH=" + dir + ":/usr/bin:/bin"}})
	if res := run(t, s, sh("told yes")); string(res.Stdout.Head) != "yes\n" {
		t.Errorf("%s", res.Stderr.Head)
	}
}

// TestPrivateDirectoriesComeBack: a command may remove them, the next has new ones.
func TestPrivateDirectoriesComeBack(t *testing.T) { inEachTier(t, testPrivateDirectoriesComeBack) }

func testPrivateDirectoriesComeBack(t *testing.T, shell func(*testing.T, Config) *Shell) {
	s := shell(t, Config{})
	run(t, s, sh("rm -rf $TMPDIR $HOME"))
	if res := run(t, s, sh("echo x > $TMPDIR/f && echo x > ~/f")); res.ExitCode != 0 {
		t.Errorf("%v %s", res.Refused, res.Stderr.Head)
	}
}

func TestModes(t *testing.T) {
	secret := outside(t)
	s, c := newShell(t, Config{Sandbox: Off})
	if res := run(t, s, sh("cat "+secret)); res.ExitCode != 0 {
		t.Error("Off must not confine")
	}
	if ok, why := c.Confined(); ok || !strings.Contains(why, "--sandbox off") {
		t.Errorf("Off says %v, %q", ok, why)
	}
	if rules := c.Rules(); !strings.Contains(rules, "nothing confines them") {
		t.Error(rules)
	}
	if _, err := c.SelfTest(); err == nil {
		t.Error("there is nothing to test")
	}
}

func TestSelfTest(t *testing.T) { inEachTier(t, testSelfTest) }

func testSelfTest(t *testing.T, shell func(*testing.T, Config) *Shell) {
	s := shell(t, Config{})
	status, err := s.c.SelfTest()
	if err != nil {
		t.Fatal(err)
	}
	for name, check := range map[string]Check{"files": status.Files, "network": status.Network, "signals": status.Signals} {
		if !check.Proven || check.Detail == "" {
			t.Errorf("%s: %+v", name, check)
		}
	}
	if rules := s.c.Rules(); !strings.Contains(rules, "$TMPDIR") || !strings.Contains(rules, "no network") {
		t.Error(rules)
	}
}

// without makes a tier fail, as on a machine that lacks it.
func without(t *testing.T, tier Tier) {
	t.Helper()
	real := jails[tier]
	jails[tier] = func(confine.Isolation) (confine.Jail, error) { return nil, errors.New("there is no " + string(tier)) }
	t.Cleanup(func() { jails[tier] = real })
}

// TestTiers: which one each mode takes, on machines that lack some.
func TestTiers(t *testing.T) {
	isolatedShell(t, Config{})
	confinedShell(t, Config{})
	both := []Tier{Threads, Namespaces}
	for _, tt := range []struct {
		mode    Mode
		lacks   []Tier
		want    Tier
		refuses bool
	}{
		{Auto, nil, Namespaces, false},
		{Auto, []Tier{Threads}, Namespaces, false},
		{Auto, []Tier{Namespaces}, Threads, false},
		{Auto, both, "", false},
		{Strict, nil, Namespaces, false},
		{Strict, []Tier{Threads}, Namespaces, false},
		{Strict, []Tier{Namespaces}, Threads, false},
		{Strict, both, "", true},
		{Landlock, []Tier{Namespaces}, Threads, false},
		{Landlock, []Tier{Threads}, "", true},
		{Isolate, []Tier{Threads}, Namespaces, false},
		{Isolate, []Tier{Namespaces}, "", true},
	} {
		t.Run(fmt.Sprint(tt.mode, tt.lacks), func(t *testing.T) {
			for _, tier := range tt.lacks {
				without(t, tier)
			}
			s, c := newShell(t, Config{Sandbox: tt.mode})
			if ok, why := c.Confined(); ok != (tt.want != "") || ok && c.confinement.decision.tier != tt.want {
				t.Fatalf("confined %v by %s, want %q: %s", ok, c.confinement.decision.tier, tt.want, why)
			}
			_, err := s.Run(t.Context(), sh("true"))
			if errors.Is(err, ErrUnconfined) != tt.refuses || !tt.refuses && err != nil {
				t.Errorf("a command: %v", err)
			}
			if missing := slices.Contains(tt.lacks, Namespaces) && tt.want == Threads && tt.mode != Landlock; missing != strings.Contains(strings.Join(c.NotTaken(), ""), "there is no namespaces") {
				t.Errorf("of what is not taken it says %q", c.NotTaken())
			}
			if status, err := c.SelfTest(); tt.want != "" && (err != nil || status.Tier != tt.want || !status.Enforced()) {
				t.Errorf("%+v %v", status, err)
			}
		})
	}
}

// TestIsolatedSession: what commands of one session have in common.
func TestIsolatedSession(t *testing.T) {
	s, other := isolatedShell(t, Config{}), isolatedShell(t, Config{})
	run(t, s, sh("echo mine > /tmp/f"))
	if res := run(t, s, sh("cat /tmp/f")); string(res.Stdout.Head) != "mine\n" {
		t.Errorf("the session's /tmp: %q", res.Stderr.Head)
	}
	if res := run(t, other, sh("cat /tmp/f")); res.ExitCode == 0 {
		t.Error("another session sees it")
	}
	run(t, s, sh("sleep 1234 &"))
	const signal = "kill $(grep -l sleep /proc/[0-9]*/comm | cut -d/ -f3)"
	if res := run(t, other, sh(signal)); res.ExitCode == 0 {
		t.Error("another session sees the processes")
	}
	if res := run(t, s, sh(signal)); res.ExitCode != 0 {
		t.Errorf("what an earlier command left cannot be signalled: %s", res.Stderr.Head)
	}
	hosts := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(hosts, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	res := run(t, s, sh("touch /usr/x; cat "+hosts+" /no/such"))
	told := strings.Join(res.Refused, "\n")
	if len(res.Refused) != 2 || !strings.Contains(told, "write /usr/x") || !strings.Contains(told, "read "+hosts) {
		t.Errorf("told %q", told)
	}
}

// TestNoPlaceForTemporaryFiles is what a container with a read-only root meets.
func TestNoPlaceForTemporaryFiles(t *testing.T) {
	for _, mode := range []Mode{Off, Auto} {
		s, c := newShell(t, Config{Sandbox: mode})
		t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "gone"))
		_, err := s.Run(t.Context(), sh("true"))
		var missing *PrivateDirError
		if !errors.As(err, &missing) || missing.Dir != os.TempDir() || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(missing.Hint(), "TMPDIR") {
			t.Errorf("%s: a command answered %v", mode, err)
		}
		if _, err := c.SelfTest(); mode == Auto && !errors.As(err, &missing) {
			t.Errorf("the self-test answered %v", err)
		}
		t.Setenv("TMPDIR", t.TempDir())
		if res := run(t, s, sh("true")); res.ExitCode != 0 {
			t.Errorf("%s: with a place a command answered %+v", mode, res)
		}
	}
}

// TestNoCageNoCommand: when the cage of a session cannot be made, none of its
// commands runs, neither the first nor a later one.
func TestNoCageNoCommand(t *testing.T) { inEachTier(t, testNoCageNoCommand) }

func testNoCageNoCommand(t *testing.T, shell func(*testing.T, Config) *Shell) {
	first := shell(t, Config{})
	run(t, first, sh("true")) // takes what was made to decide
	s := first.c.NewShell()
	tier := s.c.confinement.decision.tier
	works := jails[tier]
	defer func() { jails[tier] = works }()
	jails[tier] = func(confine.Isolation) (confine.Jail, error) { return nil, errors.New("no more descriptors") }
	for range 3 {
		if res, err := s.Run(t.Context(), sh("echo free")); err == nil || len(res.Stdout.Head) > 0 {
			t.Fatalf("a command ran without a cage: %+v, %v", res, err)
		}
	}
	jails[tier] = works
	if res := run(t, s, sh("echo caged")); res.ExitCode != 0 {
		t.Error("a cage that can be made again must be made")
	}
}

// TestMachinesSharedMemory: a place in it that the user names shows nothing of the
// rest to commands in namespaces, and is theirs to read only.
func TestMachinesSharedMemory(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "named-")
	if err != nil {
		t.Skip("there is no shared memory: ", err)
	}
	defer os.RemoveAll(dir)
	theirs := dir + "-theirs" // of another program of the same user
	defer os.Remove(theirs)
	for _, file := range []string{theirs, filepath.Join(dir, "f")} {
		if err := os.WriteFile(file, []byte("theirs\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	attack := "cat " + theirs + "; echo changed > " + theirs + "; rm -f " + theirs + "; echo changed > " + dir + "/f; cat " + dir + "/f; touch /dev/shm/own && echo own"
	s := isolatedShell(t, Config{AllowRead: []string{dir}})
	if res := run(t, s, sh(attack)); string(res.Stdout.Head) != "theirs\nown\n" {
		t.Errorf("%s%s", res.Stdout.Head, res.Stderr.Head)
	}
	s = isolatedShell(t, Config{AllowWrite: []string{dir}})
	if res := run(t, s, sh(attack)); string(res.Stdout.Head) != "changed\nown\n" {
		t.Errorf("%s%s", res.Stdout.Head, res.Stderr.Head)
	}
	if data, err := os.ReadFile(theirs); string(data) != "theirs\n" {
		t.Errorf("outside there is %q, %v", data, err)
	}
}

// TestExposedSocket: a socket that commands can come to is found by any of its names.
func TestExposedSocket(t *testing.T) {
	ws, read := t.TempDir(), t.TempDir()
	_, c := newShell(t, Config{Dir: ws, Sandbox: Auto, AllowRead: []string{read}})
	if c.confinement.foreseen() != nil {
		t.Skip("commands are not confined here")
	}
	for _, dir := range []string{ws, read} {
		t.Chdir(dir)
		if !c.Exposed(&net.UnixAddr{Name: "mcp.sock", Net: "unix"}) {
			t.Errorf("by a relative name the server is open to commands in %s", dir)
		}
	}
	for name, want := range map[string]bool{filepath.Join(ws, "s"): true, filepath.Join(read, "s"): false, "@abstract": false} {
		if c.Exposed(&net.UnixAddr{Name: name, Net: "unix"}) != want {
			t.Errorf("%s: exposed is %v", name, !want)
		}
	}
}
