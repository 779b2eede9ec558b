package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// confined skips a test where the kernel does not keep commands in.
func confined(t *testing.T) {
	t.Helper()
	if _, _, code := cli(t, workspace(t), nil, "doctor"); code != 0 {
		t.Skip("commands are not confined on this machine; perstack-base doctor says why")
	}
}

// TestCommandsAreConfined goes the way of a model that tries to look around.
func TestCommandsAreConfined(t *testing.T) {
	confined(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("sesame"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string // of the server
		line string
		open bool   // it is permitted
		hint string // a part of it
	}{
		{"read outside", nil, "cat " + secret, false, "ask the user to add --allow-read " + secret},
		{"read outside, permitted", []string{"--allow-read", secret}, "cat " + secret, true, ""},
		{"read outside, not confined", []string{"--sandbox", "off"}, "cat " + secret, true, ""},
		{"write outside", nil, "echo x > " + filepath.Dir(secret) + "/new", false, "--allow-write " + filepath.Dir(secret)},
		{"write outside, permitted", []string{"--allow-write", filepath.Dir(secret)}, "echo x > " + filepath.Dir(secret) + "/new", true, ""},
		{"passwords", nil, "cat /etc/shadow", false, "--allow-read /etc/shadow"},
		{"the server's memory", nil, "cat /proc/$PPID/environ", false, ""},
		{"the server", nil, "kill -9 $PPID", false, ""},
		{"strict", []string{"--sandbox", "strict"}, "cat " + secret, false, "--allow-read"},
		{"work", []string{"--sandbox", "strict"}, "echo x > $TMPDIR/a && cp $TMPDIR/a b && cat b && ls -la ~ /usr/bin > /dev/null", true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := start(t, workspace(t), append([]string{"serve"}, c.args...)...)
			server.initialize()
			result, err := server.call("exec", run(c.line))
			if err != nil {
				t.Fatal(err)
			}
			got := text(t, result)
			if result.IsError == c.open || !strings.Contains(got, c.hint) || !c.open && strings.Contains(got, "sesame") {
				t.Errorf("%s answered %s", c.line, got)
			}
		})
	}
}

// TestSecretsAreWithheld: names that look like secrets stay with the server.
func TestSecretsAreWithheld(t *testing.T) {
	t.Setenv("DEPLOY_TOKEN", "sesame")
	t.Setenv("GITHUB_TOKEN", "granted")
	c := start(t, workspace(t), "serve", "--pass-env", "GITHUB_*")
	c.initialize()
	result, err := c.call("exec", run("env"))
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, result); strings.Contains(got, "sesame") || !strings.Contains(got, "GITHUB_TOKEN=granted") {
		t.Errorf("commands see %s", got)
	}
}

func TestUnconfinedIsSaid(t *testing.T) {
	c := start(t, workspace(t), "serve", "--sandbox", "off")
	c.initialize()
	var list struct {
		Tools []struct{ Name, Description string }
	}
	if err := json.Unmarshal(c.request("tools/list", nil), &list); err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if tool.Name == "exec" && !strings.Contains(tool.Description, "nothing confines them") {
			t.Error("exec does not tell:", tool.Description)
		}
	}
	c.in.Close()
	c.end()
	if !strings.Contains(c.stderr.String(), "commands are not confined: switched off with --sandbox off") {
		t.Errorf("standard error says %q", c.stderr.String())
	}
}

func TestDoctor(t *testing.T) {
	confined(t)
	stdout, _, code := cli(t, workspace(t), []string{"DEPLOY_TOKEN=sesame"}, "doctor", "--json")
	var found struct {
		Confined bool
		Withheld []string
		Status   struct{ Files, Network, Signals struct{ Proven bool } }
	}
	if err := json.Unmarshal([]byte(stdout), &found); err != nil || code != 0 {
		t.Fatalf("exit code %d: %s (%v)", code, stdout, err)
	}
	if !found.Confined || !found.Status.Files.Proven || !found.Status.Network.Proven || !found.Status.Signals.Proven {
		t.Errorf("doctor found %s", stdout)
	}
	if strings.Contains(stdout, "sesame") || !strings.Contains(strings.Join(found.Withheld, " "), "DEPLOY_TOKEN") {
		t.Errorf("doctor names variables, not values: %s", stdout)
	}
	if stdout, _, code = cli(t, workspace(t), []string{"TMPDIR=/dev/null"}, "doctor"); code != 1 || !strings.Contains(stdout, "to do               Start the server with TMPDIR") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	if stdout, _, code = cli(t, workspace(t), nil, "doctor", "--sandbox", "off"); code != 1 || !strings.Contains(stdout, "NOT confined") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

// TestListingTriesNothing: a client that only lists gets no process, no probe and
// no directory; the first of a session is made by its first command.
func TestListingTriesNothing(t *testing.T) {
	confined(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	c := start(t, workspace(t), "serve", "--tools", "all")
	c.initialize()
	for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
		c.request(method, nil)
	}
	left := func() int {
		entries, err := os.ReadDir(tmp)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	if left() > 0 || len(childrenOf(t, c.cmd.Process.Pid)) > 0 {
		t.Errorf("%d directories, processes %q", left(), childrenOf(t, c.cmd.Process.Pid))
	}
	if _, err := c.call("exec", run("true")); err != nil {
		t.Fatal(err)
	}
	if left() == 0 || len(childrenOf(t, c.cmd.Process.Pid)) == 0 {
		t.Error("the first command made nothing: the test looks in the wrong place")
	}
}

// childrenOf lists the children of a process.
func childrenOf(t *testing.T, pid int) (children []string) {
	t.Helper()
	lists, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task/*/children"))
	if err != nil || len(lists) == 0 {
		t.Fatal("no list of children: ", err)
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread may have ended
		children = append(children, strings.Fields(string(text))...)
	}
	return children
}

// TestWithoutNamespaces: where they are forbidden, or a part of what makes them,
// commands are confined by Landlock, and doctor says why.
func TestWithoutNamespaces(t *testing.T) {
	confined(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("sesame"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ forbid, why string }{
		"no user namespace": {"echo 0 > /proc/sys/user/max_user_namespaces", "the system does not permit them"},
		"no mounts of proc": {"mount --bind /dev/null /proc/version", "/proc: operation not permitted"}, // as in Docker without seccomp
	} {
		t.Run(name, func(t *testing.T) {
			within := func(args ...string) (string, error) {
				line := c.forbid + ` && exec "$0" "$@"`
				cmd := exec.Command("unshare", append([]string{"-Urmpf", "--mount-proc", "sh", "-c", line, binary}, args...)...)
				cmd.Dir = workspace(t)
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			if out, err := within("version"); err != nil {
				t.Skip("this user cannot forbid them here: ", out, err)
			}
			for _, mode := range []string{"auto", "strict"} {
				out, err := within("doctor", "--sandbox", mode)
				if err != nil || !strings.Contains(out, "confined: landlock") || !strings.Contains(out, "not taken") || !strings.Contains(out, c.why) {
					t.Errorf("doctor, %s: %v %s", mode, err, out)
				}
				if out, _ := within("call", "--sandbox", mode, "exec", "cat", `args=["`+secret+`"]`); !strings.Contains(out, "blocked by the sandbox: read "+secret) || strings.Contains(out, "sesame") {
					t.Errorf("%s: %s", mode, out)
				}
			}
			if out, err := within("call", "--sandbox", "isolate", "exec", "true"); err == nil || !strings.Contains(out, "no namespaces") {
				t.Errorf("isolate: %v %s", err, out)
			}
		})
	}
}
