package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
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
