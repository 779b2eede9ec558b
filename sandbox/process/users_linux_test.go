package process

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
)

// TestUsers: programs that ask who they are get an answer, and in namespaces
// nothing about anybody else.
func TestUsers(t *testing.T) {
	t.Parallel()
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		s := shell(t, Config{Env: []string{"PATH=" + os.Getenv("PATH")}})
		res := run(t, s, sh(`echo "$USER,$LOGNAME,$SHELL"; test -d "$HOME" && whoami && id -gn && cat /etc/passwd`))
		out := string(res.Stdout.Head)
		name := environ.UserName(nil)
		if res.ExitCode != 0 || !strings.HasPrefix(out, fmt.Sprintf("%s,%[1]s,/bin/sh\n%[1]s\n", name)) {
			t.Errorf("%s %s", out, res.Stderr.Head)
		}
		real, err := os.ReadFile("/etc/passwd")
		if err != nil {
			t.Fatal(err)
		}
		if seen := strings.Contains(out, string(real)); seen != (s.c.confinement.decision.tier == Threads) {
			t.Errorf("the machine's users are seen: %v\n%s", seen, out)
		}
		for _, script := range []string{"cat /etc/shadow", "echo x >> /etc/passwd", "rm /etc/passwd", "mv /etc/passwd /etc/x", "umount /etc/passwd"} {
			if res := run(t, s, sh(script)); res.ExitCode == 0 {
				t.Errorf("%s went well", script)
			}
		}
		for _, line := range []string{"dpkg -l", "apt list --installed", "ssh -V", "cat /etc/machine-id"} {
			if _, err := exec.LookPath(strings.Fields(line)[0]); err != nil || line == "cat /etc/machine-id" && !environ.Exists("/etc/machine-id") {
				continue
			}
			if res := run(t, s, sh(line)); res.ExitCode != 0 {
				t.Errorf("%s: %s", line, res.Stderr.Head)
			}
		}
	})
}

// TestPolicyIsListed: what doctor shows is what commands may reach.
func TestPolicyIsListed(t *testing.T) {
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		dir := t.TempDir()
		s := shell(t, Config{AllowRead: []string{dir}})
		policy := s.c.confinement.policy()
		found := map[string]string{}
		for _, rule := range s.c.Policy() {
			if rule.Reason == "" {
				t.Errorf("%+v has no reason", rule)
			}
			found[rule.Path] = rule.Access
		}
		for path, want := range map[string]string{dir: "read", s.c.cfg.Dir: "write", "/usr": "read", "/dev/null": "device", "$TMPDIR": "write"} {
			if found[path] != want {
				t.Errorf("%s: %q", path, found[path])
			}
		}
		for path, access := range found {
			if strings.HasPrefix(path, "/") && access != "no" && path != "/tmp" && !policy.Allows(path, access != "read") {
				t.Errorf("%s %s is listed and not so", access, path)
			}
		}
		for _, place := range policy.Places {
			if _, listed := found[place.Real]; !listed && !place.Covered {
				t.Errorf("%s is granted and not listed", place.Real)
			}
		}
	})
}
